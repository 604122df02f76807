/**
 * Whether a Cluster answers: only where every one of its primaries does, and says that all slots are served. What is
 * shared lies in all of them, so one that is gone is not less than all.
 */
import type { Cluster, Redis } from 'ioredis';
import { ASK_EVERY_MS, DROP_AFTER_MS, type LinkHealth } from './health.ts';
import { UpDown } from './up-down.ts';

const ASKED_LATELY_MS = 0.9 * ASK_EVERY_MS;

export class ClusterHealth implements LinkHealth {
  readonly #cluster: Cluster;
  readonly #state = new UpDown();
  readonly #timer: NodeJS.Timeout;
  #lastError: Error = new Error('The Cluster did not answer yet.');
  #asking: Promise<void> | null = null;
  /** Whether it has to be asked first which nodes there are. */
  #isStale = false;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** When a node last told which there are, or all of them answered. */
  #toldAtMs = 0;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    cluster.on('error', (error: Error) => {
      // Of all nodes failing at once the last one's reason says more.
      this.#lastError = causeOf(error);
      this.#state.setDown(this.#lastError);
    });
    cluster.on('node error', (error: Error) => {
      this.#lastError = error;
    });
    cluster.on('ready', () => this.#askSoon());
    cluster.on('close', () => this.#state.setDown(this.#lastError));
    cluster.on('-node', (node: Redis) => {
      if (!this.#isPrimary(node)) return;
      this.#isStale = true;
      // While it is down, it is the one that is gone, tried again.
      if (!this.#state.isUp()) return;
      this.#state.setDown(this.#lastError);
      this.#askSoon();
    });
    this.#timer = setInterval(() => this.#askIfDue(), ASK_EVERY_MS).unref();
  }

  isUp(): boolean {
    return this.#state.isUp();
  }

  onUp(listener: () => void): () => void {
    return this.#state.onUp(listener);
  }

  onDown(listener: (reason: Error) => void): () => void {
    return this.#state.onDown(listener);
  }

  /** Resolves once all primaries have answered; those who ask at the same time share the answer. Rejects in bounded time. */
  ask(): Promise<void> {
    this.#asking ??= this.#askNow().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#state.close();
  }

  /** Whether it has slots, as far as is known: one that was replaced is no loss. */
  #isPrimary({ options: { host, port } }: Redis): boolean {
    const key = `${host}:${port}`;
    return this.#cluster.slots.some(([primary]) => primary === key);
  }

  /** Not where others have just had it asked. */
  #askIfDue(): void {
    if (performance.now() - this.#answeredAtMs > ASKED_LATELY_MS) this.#askSoon();
  }

  #askSoon(): void {
    // Told by the state.
    this.ask().catch(() => undefined);
  }

  async #askNow(): Promise<void> {
    // While it connects there is nobody to ask; how that ends is told by events.
    if (this.#cluster.status !== 'ready') throw this.#lastError;
    try {
      if (this.#isStale) await this.#refresh();
      await Promise.all(this.#cluster.nodes('master').map(asksWell));
      // Another one may have gone meanwhile.
      if (this.#isStale || this.#cluster.status !== 'ready') throw this.#lastError;
      this.#answered();
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      this.#isStale = true;
      this.#state.setDown(reason);
      throw reason;
    }
  }

  /** Takes over which nodes there are now, as one of them says. */
  async #refresh(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#cluster.refreshSlotsCache((error) => {
      if (error) reject(causeOf(error));
      else resolve();
    });
    try {
      await promise;
      this.#toldAtMs = performance.now();
      this.#isStale = false;
    } catch (error) {
      this.#dropWhenLost();
      throw error;
    }
  }

  #answered(): void {
    this.#answeredAtMs = performance.now();
    this.#toldAtMs = this.#answeredAtMs;
    this.#lastError = new Error('The connection to a node of the Cluster was closed.');
    this.#state.setUp();
  }

  /** Where none of the nodes that are known has answered for long: begins again with those of the address. */
  #dropWhenLost(): void {
    const isLost = performance.now() - this.#toldAtMs > DROP_AFTER_MS;
    if (!isLost || this.#cluster.status !== 'ready' || this.#cluster.nodes().length === 0) return;
    this.#toldAtMs = performance.now();
    this.#cluster.disconnect(true);
  }
}

/** Rejects where it doesn't answer in time, or doesn't know that all slots are served. */
async function asksWell(node: Redis): Promise<void> {
  const info: unknown = await node.cluster('INFO');
  if (!String(info).includes('cluster_state:ok')) throw new Error('The Cluster does not serve all of its slots.');
}

function causeOf(error: Error): Error {
  return 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
}
