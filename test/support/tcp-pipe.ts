/** One direction of a connection through the proxy: what arrives at one socket goes to the other, as the toxics say. */
import type { Socket } from 'node:net';

export type Direction = 'upstream' | 'downstream';

/** As Toxiproxy names them, with units. Several hold together. */
export interface Toxics {
  /** Everything comes that much later ... */
  readonly latencyMs?: number;
  /** ... give or take up to this much, in its order all the same. */
  readonly jitterMs?: number;
  /** At most so much gets through. */
  readonly bandwidthBytesPerMs?: number;
  /** Nothing gets through; the connection is ended after that time, or never where it is 0. */
  readonly timeoutMs?: number;
  /** The connection is reset (RST) that long after the first byte. */
  readonly resetPeerMs?: number;
  /** Pieces of so many bytes at most ... */
  readonly sliceBytes?: number;
  /** ... that far apart. */
  readonly sliceDelayMs?: number;
  /** The connection is ended when so many bytes have gone through. */
  readonly limitBytes?: number;
  /** The end of the connection is passed on that much later. */
  readonly slowCloseMs?: number;
}

/** Passes on what arrives, until either end closes. Asks for the toxics as bytes arrive and as they leave. */
export function join(from: Socket, to: Socket, toxics: () => Toxics): void {
  new Pipe(from, to, toxics).open();
}

/** Bytes that are on their way. */
interface Parcel {
  readonly bytes: Buffer;
  readonly dueMs: number;
}

class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #toxics: () => Toxics;
  readonly #queue: Parcel[] = [];
  readonly #timers = new Set<NodeJS.Timeout>();
  #passedBytes = 0;
  #lastDueMs = 0;
  #isWaiting = false;
  #isEnding = false;
  #isResetting = false;

  constructor(from: Socket, to: Socket, toxics: () => Toxics) {
    this.#from = from;
    this.#to = to;
    this.#toxics = toxics;
  }

  open(): void {
    const [from, to] = [this.#from, this.#to];
    from.on('data', (chunk: Buffer) => this.#take(chunk));
    from.on('end', () => this.#after(this.#toxics().slowCloseMs ?? 0, () => this.#end()));
    const stop = (): void => {
      for (const timer of this.#timers) clearTimeout(timer);
    };
    from.on('close', stop);
    to.on('close', stop);
    to.on('drain', () => from.resume());
  }

  #take(chunk: Buffer): void {
    const { timeoutMs, resetPeerMs, latencyMs = 0, jitterMs = 0, sliceBytes = chunk.length } = this.#toxics();
    if (resetPeerMs !== undefined && !this.#isResetting) {
      this.#isResetting = true;
      this.#after(resetPeerMs, () => this.#reset());
    }
    if (timeoutMs !== undefined) {
      if (timeoutMs > 0) this.#after(timeoutMs, () => this.#to.destroy());
      return;
    }
    const dueMs = performance.now() + Math.max(0, latencyMs + jitterMs * (2 * Math.random() - 1));
    for (let at = 0; at < chunk.length; at += sliceBytes) {
      // Never before what came earlier.
      this.#lastDueMs = Math.max(dueMs, this.#lastDueMs);
      this.#queue.push({ bytes: chunk.subarray(at, at + sliceBytes), dueMs: this.#lastDueMs });
    }
    this.#send();
  }

  /** Sends what is due, and comes back for the rest. */
  #send(): void {
    while (!this.#isWaiting) {
      const parcel = this.#queue[0];
      if (parcel === undefined) break;
      const waitMs = parcel.dueMs - performance.now();
      if (waitMs > 0) {
        this.#wait(waitMs);
        return;
      }
      this.#queue.shift();
      this.#pass(parcel.bytes);
    }
    if (this.#isEnding && this.#queue.length === 0 && !this.#isWaiting) this.#to.end();
  }

  #pass(bytes: Buffer): void {
    const { limitBytes = Number.POSITIVE_INFINITY, bandwidthBytesPerMs, sliceDelayMs = 0 } = this.#toxics();
    const allowed = bytes.subarray(0, Math.max(0, limitBytes - this.#passedBytes));
    this.#passedBytes += allowed.length;
    if (allowed.length > 0 && this.#to.writable && !this.#to.write(allowed)) this.#from.pause();
    if (this.#passedBytes >= limitBytes) {
      this.#queue.length = 0;
      this.#to.end(() => this.#to.destroy());
      return;
    }
    const paceMs = bandwidthBytesPerMs === undefined ? 0 : bytes.length / bandwidthBytesPerMs;
    const waitMs = Math.max(paceMs, this.#queue.length > 0 ? sliceDelayMs : 0);
    if (waitMs > 0) this.#wait(waitMs);
  }

  #wait(ms: number): void {
    this.#isWaiting = true;
    this.#after(ms, () => {
      this.#isWaiting = false;
      this.#send();
    });
  }

  #end(): void {
    this.#isEnding = true;
    this.#send();
  }

  #reset(): void {
    this.#to.resetAndDestroy();
    this.#from.resetAndDestroy();
  }

  /** Timers only where there is something to wait for: a proxy without toxics adds no turn of the event loop. */
  #after(ms: number, then: () => void): void {
    if (ms <= 0) {
      then();
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      then();
    }, ms);
    this.#timers.add(timer);
  }
}
