/**
 * The memory of answers under way: read from the store, parsed, rendered, compressed, and not yet handed over to be sent. At
 * its height an answer takes some ten times its size, so what is under way at a time is bounded; calls beyond that wait with
 * the answer in the socket, in a fair turn per API key (shares.ts). Large answers have four fifths of it, and the rest is for
 * those of up to a megabyte, so that none of these waits for a large one. Small answers are not counted: as many as there may
 * be connections to the store are nothing.
 *
 * It fails in two ways. An answer of undeclared length may take a megabyte before it waits, per connection. An answer that
 * the memory tier holds is counted there only, also while it is rendered anew.
 */
import { getHeapStatistics } from 'node:v8';
import { FairQueue, type QueueParts, type Release, RESERVE_PERCENT } from '../shares/shares.ts';
import { StoreError } from './store-error.ts';

/** A part of the heap's limit. Answers under way fill a third of the heap then, and leave room for the cache and the rest. */
const HEAP_SHARE = 1 / 32;
/** More is not faster, because one thread parses and renders. */
const MAX_DEFAULT_BYTES = 10_000_000;
/** Up to here an answer is not counted. */
const SMALL_BYTES = 64 * 1024;
/** An answer of up to that size is of medium size. */
const MEDIUM_BYTES = 1_000_000;
/** As these an answer is counted whose length is not declared, until it is longer; then as the longest there may be. */
const UNDECLARED_BYTES = [4 * SMALL_BYTES, MEDIUM_BYTES];

/** A refused call may go better as soon as those before it are answered. */
const RETRY_AFTER_MS = 1000;

/** `upstream.memory` unless it is set: of V8's `heap_size_limit`. */
export function defaultAnswerBytes(): number {
  return Math.min(MAX_DEFAULT_BYTES, Math.floor(getHeapStatistics().heap_size_limit * HEAP_SHARE));
}

/** An answer that readers make responses from. */
interface Used {
  readonly release: Release;
  users: number;
}

type Room = FairQueue<string | undefined>;
/** The room for an answer of that many bytes. */
type RoomFor = (bytes: number) => Room;

export class AnswerMemory {
  readonly #rooms: readonly [medium: Room, large: Room];
  readonly #used = new Map<object, Used>();

  constructor(maxBytes: number, parts: QueueParts) {
    const mediumBytes = Math.floor((maxBytes * RESERVE_PERCENT) / 100);
    const room = (capacity: number): Room =>
      new FairQueue({ capacity, reservePercent: RESERVE_PERCENT, maxWaiting: Number.POSITIVE_INFINITY }, parts);
    this.#rooms = [room(mediumBytes), room(maxBytes - mediumBytes)];
  }

  /** Bytes under way, and calls that wait for room. */
  load(): { readonly bytes: number; readonly waiting: number } {
    const [medium, large] = [this.#rooms[0].load(), this.#rooms[1].load()];
    return { bytes: medium.held + large.held, waiting: medium.waiting + large.waiting };
  }

  /** For an answer that is about to arrive. */
  reservation(keyId: string | undefined, waitMs: number): Reservation {
    return new Reservation(this.#roomFor, keyId, waitMs);
  }

  readonly #roomFor: RoomFor = (bytes) => this.#rooms[bytes <= MEDIUM_BYTES ? 0 : 1];

  /**
   * Counts an answer that a request makes its response from, once however many do; never waits. Returns what ends that, which
   * is called once; null for a small one.
   */
  use(answer: { readonly bytes: number }, keyId: string): Release | null {
    if (answer.bytes <= SMALL_BYTES) return null;
    const { bytes } = answer;
    const used = this.#used.get(answer) ?? { release: this.#roomFor(bytes).take(keyId, bytes), users: 0 };
    used.users += 1;
    this.#used.set(answer, used);
    return () => {
      used.users -= 1;
      if (used.users > 0) return;
      this.#used.delete(answer);
      used.release();
    };
  }
}

/** The memory of one answer while it arrives and is read. It holds nothing while it waits, so that none waits for another. */
export class Reservation {
  readonly #roomFor: RoomFor;
  readonly #keyId: string | undefined;
  readonly #waitMs: number;
  #bytes = 0;
  #release: Release | null = null;

  constructor(roomFor: RoomFor, keyId: string | undefined, waitMs: number) {
    this.#roomFor = roomFor;
    this.#keyId = keyId;
    this.#waitMs = waitMs;
  }

  /** Whether an answer of that size needs no more room. */
  covers(bytes: number): boolean {
    return bytes <= SMALL_BYTES || bytes <= this.#bytes;
  }

  /**
   * Waits until there is room for an answer of that size, or for one that has grown to it and may reach `maxBytes`. Rejects
   * with a StoreError of kind `overloaded` if there is none in time.
   */
  async cover(bytes: number, maxBytes: number): Promise<void> {
    const amount = Math.min(maxBytes, UNDECLARED_BYTES.find((step) => bytes <= step) ?? maxBytes);
    this.release();
    const release = await this.#roomFor(amount).acquire({ holder: this.#keyId, amount, waitMs: this.#waitMs });
    if (typeof release === 'string') {
      const message = `there was no memory for the answer within ${this.#waitMs} ms: too many others are under way`;
      throw new StoreError('overloaded', message, { retryAfterMs: RETRY_AFTER_MS });
    }
    this.#release = release;
    this.#bytes = amount;
  }

  /** The answer has arrived whole, and is no longer than that. */
  settle(bytes: number): void {
    if (bytes >= this.#bytes) return;
    this.release();
    if (bytes <= SMALL_BYTES) return;
    this.#release = this.#roomFor(bytes).take(this.#keyId, bytes);
    this.#bytes = bytes;
  }

  /** The answer is no longer under way. Called as often as it may. */
  release(): void {
    this.#release?.();
    this.#release = null;
    this.#bytes = 0;
  }
}
