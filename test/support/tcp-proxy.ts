/** A TCP proxy whose connections can be spoiled while it runs: `proxy.delay('downstream', 300)`, `proxy.heal()`. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort, listenOnLoopback, type RunningServer } from './loopback.ts';

/** `downstream` is what the server sends to the client. */
type Direction = 'upstream' | 'downstream';

/** `opening`: the first bytes of the client. */
type Pair = { readonly client: Socket; readonly server: Socket; opening: string };

const NO_DELAY = { ms: 0, jitterMs: 0 };

export class TcpProxy {
  readonly #target: URL;
  readonly #server: Server;
  readonly #running: RunningServer;
  readonly #pairs = new Set<Pair>();
  readonly #delays: Record<Direction, typeof NO_DELAY> = { upstream: NO_DELAY, downstream: NO_DELAY };
  /** Called when a hold ends: everything that was held is passed on. */
  readonly #releases = new Set<() => void>();
  #held: Direction | null = null;
  #mode: 'pass' | 'swallow' | 'reset' | 'cut' = 'pass';

  private constructor(target: URL, server: Server, running: RunningServer) {
    this.#target = target;
    this.#server = server;
    this.#running = running;
    server.on('connection', (client: Socket) => this.#accept(client));
  }

  /**
   * `target` is any address with a host and a port: `redis://127.0.0.1:6379`, `http://127.0.0.1:8080`. The proxy listens at
   * `host`.
   */
  static async start(target: string, host = '127.0.0.1'): Promise<TcpProxy> {
    // Half-closed connections are passed on as such.
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    // It listens there again after it has refused.
    return new TcpProxy(new URL(target), server, await listenOnLoopback(server, host, await freePort()));
  }

  /** The target's address with the proxy in its place. */
  get url(): string {
    const { hostname, port } = new URL(this.#running.url);
    return Object.assign(new URL(this.#target), { hostname, port }).href.replace(/\/$/, '');
  }

  /** Takes everything back, but for refusing. Bytes that were swallowed stay lost. */
  heal(): void {
    this.#mode = 'pass';
    this.#delays.upstream = NO_DELAY;
    this.#delays.downstream = NO_DELAY;
  }

  /** Delays bytes in that direction, in order. */
  delay(direction: Direction, ms: number, jitterMs = 0): void {
    this.#delays[direction] = { ms, jitterMs };
  }

  /** Holds bytes in that direction until `release` is called, in order. */
  hold(direction: Direction): void {
    this.#held = direction;
  }

  release(): void {
    this.#held = null;
    for (const passOn of this.#releases) passOn();
  }

  /** Nothing gets through and nobody notices: open connections and new ones stand, and deliver nothing. */
  blackHole(): void {
    this.#mode = 'swallow';
  }

  /** Resets each connection (RST) as soon as its client sends anything. */
  reset(): void {
    this.#mode = 'reset';
  }

  resetPeers(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  /** Ends all connections, and each new one as it comes. */
  cut(): void {
    this.#mode = 'cut';
    for (const { client } of this.#pairs) client.destroy();
  }

  /** The present connections to Redis of that name stand and deliver nothing. Returns how many there were. */
  stall(name: string): number {
    const stalled = [...this.#pairs].filter(({ opening }) => opening.includes(name));
    for (const { client, server } of stalled) for (const socket of [client, server]) socket.pause();
    return stalled.length;
  }

  /** Ends all connections and listens no more: new ones are refused by the system, until `listen`. */
  async refuse(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const { client } of this.#pairs) client.destroy();
    await closed;
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#running.port, new URL(this.#running.url).hostname);
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.#running.close();
  }

  #accept(client: Socket): void {
    if (this.#mode === 'cut') {
      client.destroy();
      return;
    }
    const options = { host: this.#target.hostname, port: Number(this.#target.port) };
    const server = connect({ ...options, allowHalfOpen: true, noDelay: true });
    const pair: Pair = { client, server, opening: '' };
    this.#pairs.add(pair);
    client.on('data', (chunk: Buffer) => {
      if (pair.opening.length < 4096) pair.opening += chunk.toString('latin1');
      if (this.#mode !== 'reset') return;
      for (const socket of [client, server]) socket.resetAndDestroy();
    });
    const end = (): void => {
      client.destroy();
      server.destroy();
      this.#pairs.delete(pair);
    };
    for (const socket of [client, server]) socket.on('error', end).on('close', end);
    this.#pass(client, server, 'upstream');
    this.#pass(server, client, 'downstream');
  }

  #pass(from: Socket, to: Socket, direction: Direction): void {
    const queue: { readonly dueMs: number; readonly run: () => void }[] = [];
    let timer: NodeJS.Timeout | null = null;
    const flush = (): void => {
      timer = null;
      if (this.#held === direction) return;
      while ((queue[0]?.dueMs ?? Infinity) <= performance.now()) queue.shift()?.run();
      const next = queue[0];
      if (next !== undefined) timer = setTimeout(flush, Math.max(1, next.dueMs - performance.now()));
    };
    const later = (run: () => void): void => {
      const { ms, jitterMs } = this.#delays[direction];
      const dueMs = performance.now() + Math.max(0, ms + jitterMs * (2 * Math.random() - 1));
      // Never before what came earlier.
      queue.push({ dueMs: Math.max(dueMs, queue.at(-1)?.dueMs ?? 0), run });
      if (timer === null) flush();
    };
    const release = (): void => {
      if (timer === null) flush();
    };
    this.#releases.add(release);
    from.once('close', () => this.#releases.delete(release));
    from.on('data', (chunk: Buffer) => {
      if (this.#mode !== 'swallow') later(() => void (to.writable && (to.write(chunk) || from.pause())));
    });
    from.on('end', () => later(() => to.end()));
    to.on('drain', () => from.resume());
  }
}
