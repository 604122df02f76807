/**
 * Responses that their clients have not taken yet. Their bytes are the memory of the process, so they are bounded, in all and
 * per holder (shares.ts): the largest holder's response that has waited longest is cut. A client also loses its connection
 * if it takes nothing for 30 s, or its response more slowly than at 10 kB/s.
 *
 * A large body is written in pieces, because Node only reports when a whole write was taken. A response counts with all its
 * bytes until it is taken: what is left holds the whole body.
 */
import type { ServerResponse } from 'node:http';
import { getHeapStatistics } from 'node:v8';
import { RESERVE_PERCENT, Shares } from '../shares/shares.ts';
import { Batches } from '../time/turns.ts';
import type { CutReason } from './connections.ts';

/** For a client to take some of its response; also for the whole of one, with the time that it takes at the least rate. */
const STALL_MS = 30_000;
const MIN_BYTES_PER_MS = 10;
const PIECE_BYTES = 256 * 1024;
const SWEEP_MS = 250;

const HEAP_SHARE = 1 / 8;
const MAX_DEFAULT_BYTES = 256_000_000;

/** `server.maxUnsent` unless it is set: of V8's `heap_size_limit`. */
export function defaultUnsentBytes(): number {
  return Math.min(MAX_DEFAULT_BYTES, Math.floor(getHeapStatistics().heap_size_limit * HEAP_SHARE));
}

export interface UnsentOptions {
  readonly maxBytes: number;
  /** Milliseconds by a clock that is never set back. */
  readonly nowMs: () => number;
  readonly onCut?: ((reason: CutReason) => void) | undefined;
}

interface Sending {
  holder: string;
  readonly bytes: number;
  readonly sinceMs: number;
  /** When the client last took a piece, or the response began. */
  progressMs: number;
  readonly inPieces: boolean;
}

export class Unsent {
  readonly #options: UnsentOptions;
  readonly #shares: Shares;
  /** Oldest first. */
  readonly #sending = new Map<ServerResponse, Sending>();
  /** Responses whose client took the last piece. */
  readonly #taken = new Batches();
  #sweep: NodeJS.Timeout | null = null;

  constructor(options: UnsentOptions) {
    this.#options = options;
    this.#shares = new Shares({ capacity: options.maxBytes, reservePercent: RESERVE_PERCENT });
  }

  get bytes(): number {
    return this.#shares.total;
  }

  /** Sends a body. Its bytes are counted as the holder's as long as the client has not taken them. */
  send(response: ServerResponse, body: Buffer, holder: string): void {
    if (body.length <= PIECE_BYTES) {
      response.end(body);
      this.#reckon(response, holder, response.writableLength);
      return;
    }
    let offset = 0;
    const write = (): void => {
      while (body.length - offset > PIECE_BYTES) {
        const piece = body.subarray(offset, offset + PIECE_BYTES);
        offset += PIECE_BYTES;
        if (response.write(piece)) continue;
        this.#watch(response, holder, { bytes: body.length, inPieces: true });
        response.once('drain', () => void this.#goOn(response, write));
        return;
      }
      response.end(body.subarray(offset));
      this.#reckon(response, holder, response.writableLength);
    };
    write();
  }

  /**
   * Writes the next piece of a response whose client took the last one, in its turn of the event loop. The system takes
   * some megabytes of each response at once: without turns, a hundred large responses would hold the event loop together.
   */
  async #goOn(response: ServerResponse, write: () => void): Promise<void> {
    const sending = this.#sending.get(response);
    if (sending !== undefined) sending.progressMs = this.#options.nowMs();
    await this.#taken.next();
    // It may have been cut before its turn.
    if (this.#sending.has(response)) write();
  }

  /** For a response that was not sent by `send`: whatever it still holds when it has ended. */
  watchEnd(response: ServerResponse, holder: string): void {
    if (!this.#sending.has(response)) this.#reckon(response, holder, response.writableLength);
  }

  #reckon(response: ServerResponse, holder: string, bytes: number): void {
    // The system takes most responses at once.
    if (bytes > 0) this.#watch(response, holder, { bytes, inPieces: false });
  }

  #watch(response: ServerResponse, holder: string, about: Pick<Sending, 'bytes' | 'inPieces'>): void {
    const known = this.#sending.get(response);
    if (known !== undefined) {
      this.#shares.giveBack(known.holder, known.bytes);
      this.#shares.take(holder, known.bytes);
      known.holder = holder;
      return;
    }
    const nowMs = this.#options.nowMs();
    this.#sending.set(response, { holder, ...about, sinceMs: nowMs, progressMs: nowMs });
    this.#shares.take(holder, about.bytes);
    response.once('close', () => this.#forget(response));
    this.#sweep ??= setInterval(() => this.#cutLate(), SWEEP_MS).unref();
    this.#makeRoom(holder);
  }

  #makeRoom(holder: string): void {
    while (!this.#shares.hasRoom(0) || !this.#shares.isWithinShare(holder, 0)) {
      const most = this.#shares.hasRoom(0) ? holder : this.#shares.largest();
      const own = [...this.#sending].filter(([, sending]) => sending.holder === most);
      const [oldest, ...others] = own.toSorted(([, one], [, other]) => one.progressMs - other.progressMs);
      // A body that is larger than all that may be unsent is sent by itself.
      if (oldest === undefined || others.length === 0) return;
      this.#cut(oldest[0], 'unsent');
    }
  }

  #cutLate(): void {
    const nowMs = this.#options.nowMs();
    for (const [response, { bytes, sinceMs, progressMs, inPieces }] of this.#sending) {
      if (inPieces && nowMs - progressMs > STALL_MS) this.#cut(response, 'stalled');
      else if (nowMs - sinceMs > STALL_MS + bytes / MIN_BYTES_PER_MS) this.#cut(response, 'slow');
    }
  }

  #cut(response: ServerResponse, reason: CutReason): void {
    this.#options.onCut?.(reason);
    this.#forget(response);
    // A response behind another one has no connection of its own yet.
    response.req.socket.destroy();
  }

  #forget(response: ServerResponse): void {
    const sending = this.#sending.get(response);
    if (sending === undefined) return;
    this.#sending.delete(response);
    this.#shares.giveBack(sending.holder, sending.bytes);
    if (this.#sending.size > 0 || this.#sweep === null) return;
    clearInterval(this.#sweep);
    this.#sweep = null;
  }
}
