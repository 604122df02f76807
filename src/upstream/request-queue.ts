/**
 * Which calls to the store are sent, and when: a bounded number in flight, at a bounded rate. The others wait in a queue
 * that is fair to API keys, so that one busy key does not take the store from the rest.
 * - A free connection goes to the waiting key with the fewest calls in flight.
 * - Calls that somebody waits for go before background refreshes.
 * - A full queue drops a call of the key that has most calls in it.
 * - No key takes the reserved connections: they are free for whoever comes next.
 */
import type { Timers } from '../time/timers.ts';
import type { CallRate } from './call-rate.ts';

/**
 * Why a call was not sent:
 * - `queue-full`: as many calls as may wait were waiting, and its key had most of them
 * - `queue-timeout`: it had waited as long as it may
 * - `store-failing`: too many of the last calls had failed
 * - `key-failing`: too many of the last calls of its key had failed
 */
export type Rejection = 'queue-full' | 'queue-timeout' | 'store-failing' | 'key-failing';

/** Leave to send one call, to be called once the call is over; or why there is none. */
export type Permit = (() => void) | Rejection;

export interface QueueLimits {
  /** Calls in flight. */
  readonly maxConnections: number;
  readonly maxQueue: number;
  /** The share of `maxConnections` that one API key leaves to others, in percent. */
  readonly reservePercent: number;
}

export interface QueuedCall {
  /** The API key that caused the call. Calls of no key are treated as those of one more key. */
  readonly keyId: string | undefined;
  readonly isBackground: boolean;
  /** How long it may wait. */
  readonly waitMs: number;
}

type Priority = 'awaited' | 'background';
/** Takes the call out of the queue, with that result. */
type WaitingCall = (permit: Permit) => void;

/** One API key's calls. Those that wait are in order of arrival. */
interface Consumer extends Readonly<Record<Priority, Set<WaitingCall>>> {
  readonly keyId: string | undefined;
  inFlight: number;
}

export class RequestQueue {
  readonly #limits: QueueLimits;
  readonly #timers: Timers;
  /** The most calls that one key has in flight. */
  readonly #maxPerKey: number;
  /** Keys with calls that wait or are in flight; the one that was served last is last. */
  readonly #consumers = new Map<string | undefined, Consumer>();
  #rate: CallRate | null = null;
  #inFlight = 0;
  #queued = 0;
  #isWaitingForRate = false;

  constructor(limits: QueueLimits, timers: Timers) {
    const { maxConnections, reservePercent } = limits;
    this.#limits = limits;
    this.#timers = timers;
    this.#maxPerKey = Math.max(1, maxConnections - Math.floor((maxConnections * reservePercent) / 100));
  }

  load(): { readonly inFlight: number; readonly queued: number } {
    return { inFlight: this.#inFlight, queued: this.#queued };
  }

  /** From now on no more calls than that rate allows. */
  limitBy(rate: CallRate): void {
    this.#rate = rate;
  }

  /** Resolves as soon as it is decided; never rejects. */
  async acquire({ keyId, isBackground, waitMs }: QueuedCall): Promise<Permit> {
    const consumer = this.#consumers.get(keyId) ?? { keyId, inFlight: 0, awaited: new Set(), background: new Set() };
    // Calls that wait while there is a free connection wait for the rate, or their keys may have no more in flight.
    if (this.#mayStart(consumer) && this.#takeFromRate()) return this.#grant(consumer);
    const priority = isBackground ? 'background' : 'awaited';
    if (this.#queued >= this.#limits.maxQueue && !this.#makeRoomFor(consumer, priority)) return 'queue-full';
    const { promise, resolve } = Promise.withResolvers<Permit>();
    const leave: WaitingCall = (permit) => {
      cancel();
      consumer[priority].delete(leave);
      this.#queued -= 1;
      this.#forgetIfIdle(consumer);
      resolve(permit);
    };
    const cancel = this.#timers.after(waitMs, () => leave('queue-timeout'));
    consumer[priority].add(leave);
    this.#queued += 1;
    this.#consumers.set(keyId, consumer);
    return promise;
  }

  rejectAll(reason: Rejection): void {
    for (const { awaited, background } of this.#consumers.values()) {
      for (const leave of [...awaited, ...background]) leave(reason);
    }
  }

  /**
   * Drops a waiting call so that one more of that key can wait; false if that one is to be dropped itself. Refreshes give
   * up their places to calls that somebody waits for.
   */
  #makeRoomFor(consumer: Consumer, priority: Priority): boolean {
    const background = this.#largest('background');
    const dropped = background === undefined ? 'awaited' : 'background';
    const largest = background ?? this.#largest('awaited');
    if (largest === undefined || (priority === 'background' && dropped === 'awaited')) return false;
    if (priority === dropped && consumer[priority].size + 1 >= largest[dropped].size) return false;
    // The refresh that waited longest is the least worth; of calls that are waited for the last would be served last.
    const calls = [...largest[dropped]];
    const leave = dropped === 'background' ? calls[0] : calls.at(-1);
    leave?.('queue-full');
    return leave !== undefined;
  }

  /** The key with most waiting calls of that priority; undefined if there are none. */
  #largest(priority: Priority): Consumer | undefined {
    let largest: Consumer | undefined;
    for (const consumer of this.#consumers.values()) {
      if (consumer[priority].size > (largest?.[priority].size ?? 0)) largest = consumer;
    }
    return largest;
  }

  #forgetIfIdle({ keyId, inFlight, awaited, background }: Consumer): void {
    if (inFlight + awaited.size + background.size === 0) this.#consumers.delete(keyId);
  }

  #mayStart({ inFlight }: Consumer): boolean {
    return this.#inFlight < this.#limits.maxConnections && inFlight < this.#maxPerKey;
  }

  /** Whether the rate allows one more call now, which it then counts. If not, waiting calls are served once it does. */
  #takeFromRate(): boolean {
    if (this.#rate === null) return true;
    if (this.#isWaitingForRate) return false;
    this.#isWaitingForRate = !this.#rate.take(() => {
      this.#isWaitingForRate = false;
      this.#serve();
    });
    return !this.#isWaitingForRate;
  }

  #serve(): void {
    for (;;) {
      const awaited = this.#next('awaited');
      const next = awaited ?? this.#next('background');
      if (next === undefined || !this.#takeFromRate()) return;
      const [leave] = next[awaited === undefined ? 'background' : 'awaited'];
      leave?.(this.#grant(next));
    }
  }

  /** The key whose turn it is: of those with the fewest calls in flight the one that was served longest ago. */
  #next(priority: Priority): Consumer | undefined {
    let next: Consumer | undefined;
    for (const consumer of this.#consumers.values()) {
      if (consumer[priority].size === 0 || !this.#mayStart(consumer)) continue;
      if (next === undefined || consumer.inFlight < next.inFlight) next = consumer;
    }
    return next;
  }

  #grant(consumer: Consumer): Permit {
    const { keyId } = consumer;
    this.#inFlight += 1;
    consumer.inFlight += 1;
    this.#consumers.delete(keyId);
    this.#consumers.set(keyId, consumer);
    return () => {
      this.#inFlight -= 1;
      consumer.inFlight -= 1;
      this.#forgetIfIdle(consumer);
      this.#serve();
    };
  }
}
