/**
 * Which calls to the store are sent, and when: a bounded number in flight, at a bounded rate. The others wait in a queue
 * that is fair to API keys, so that one busy key does not take the store from the rest.
 * - A free connection goes to the waiting key with the fewest calls in flight.
 * - Calls that somebody waits for go before background refreshes.
 * - A full queue drops a call of the key that has most calls in it.
 * - No key takes the reserved connections: they are free for whoever comes next.
 */
import type { Timers } from '../timers.ts';
import { type CallRate, unlimitedRate } from './call-rate.ts';

/**
 * Why a call was not sent:
 * - `queue-full`: as many calls as may wait were waiting, and its key had most of them
 * - `queue-timeout`: it had waited as long as it may
 * - `store-failing`: too many of the last calls had failed
 */
export type Rejection = 'queue-full' | 'queue-timeout' | 'store-failing';

export interface RequestQueueOptions {
  readonly maxInFlight: number;
  readonly maxQueue: number;
  /** The share of `maxInFlight` that one key leaves to others, in percent. */
  readonly reservePercent: number;
  readonly timers: Timers;
}

export interface QueuedCall {
  /** The API key that caused the call. Calls of no key are treated as those of one more key. */
  readonly keyId: string | undefined;
  readonly isBackground: boolean;
  /** How long it may wait. */
  readonly waitMs: number;
}

/** `release` must be called once the call is over. */
export type Permit =
  | { readonly kind: 'granted'; readonly release: () => void }
  | { readonly kind: 'rejected'; readonly reason: Rejection };

interface WaitingCall {
  readonly resolve: (permit: Permit) => void;
  readonly clearTimer: () => void;
}

type Priority = 'awaited' | 'background';
const PRIORITIES: readonly Priority[] = ['awaited', 'background'];

/** One API key's calls. Those that wait are in order of arrival. */
interface Consumer {
  readonly keyId: string | undefined;
  inFlight: number;
  readonly awaited: Set<WaitingCall>;
  readonly background: Set<WaitingCall>;
}

export class RequestQueue {
  readonly #options: RequestQueueOptions;
  /** The most calls that one key has in flight. */
  readonly #maxPerKey: number;
  /** Keys with calls that wait or are in flight; the one that was served last is last. */
  readonly #consumers = new Map<string | undefined, Consumer>();
  #rate: CallRate = unlimitedRate;
  #inFlight = 0;
  #queued = 0;
  #isWaitingForRate = false;

  constructor(options: RequestQueueOptions) {
    const { maxInFlight, reservePercent } = options;
    this.#options = options;
    this.#maxPerKey = Math.max(1, maxInFlight - Math.floor((maxInFlight * reservePercent) / 100));
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get queued(): number {
    return this.#queued;
  }

  /** From now on no more calls than that rate allows. */
  limitBy(rate: CallRate): void {
    this.#rate = rate;
  }

  /** Resolves as soon as it is decided; never rejects. */
  acquire({ keyId, isBackground, waitMs }: QueuedCall): Promise<Permit> {
    const consumer = this.#consumers.get(keyId) ?? { keyId, inFlight: 0, awaited: new Set(), background: new Set() };
    // Calls that wait while there is a free connection wait for the rate, or their keys may have no more in flight.
    if (this.#mayStart(consumer) && this.#takeFromRate()) return Promise.resolve(this.#grant(consumer));
    const priority = isBackground ? 'background' : 'awaited';
    if (this.#queued >= this.#options.maxQueue && !this.#makeRoomFor(consumer, priority)) {
      return Promise.resolve({ kind: 'rejected', reason: 'queue-full' });
    }
    const { promise, resolve } = Promise.withResolvers<Permit>();
    const clearTimer = this.#options.timers.after(waitMs, () => {
      this.#remove(consumer, priority, call);
      resolve({ kind: 'rejected', reason: 'queue-timeout' });
    });
    const call: WaitingCall = { resolve, clearTimer };
    consumer[priority].add(call);
    this.#queued += 1;
    this.#consumers.set(keyId, consumer);
    return promise;
  }

  rejectAll(reason: Rejection): void {
    for (const consumer of this.#consumers.values()) {
      for (const priority of PRIORITIES) {
        for (const call of consumer[priority]) this.#reject(consumer, priority, call, reason);
      }
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
    const call = dropped === 'background' ? calls[0] : calls.at(-1);
    if (call === undefined) return false;
    this.#reject(largest, dropped, call, 'queue-full');
    return true;
  }

  /** The key with most waiting calls of that priority; undefined if there are none. */
  #largest(priority: Priority): Consumer | undefined {
    let largest: Consumer | undefined;
    for (const consumer of this.#consumers.values()) {
      if (consumer[priority].size > (largest?.[priority].size ?? 0)) largest = consumer;
    }
    return largest;
  }

  #reject(consumer: Consumer, priority: Priority, call: WaitingCall, reason: Rejection): void {
    this.#remove(consumer, priority, call);
    call.clearTimer();
    call.resolve({ kind: 'rejected', reason });
  }

  #remove(consumer: Consumer, priority: Priority, call: WaitingCall): void {
    consumer[priority].delete(call);
    this.#queued -= 1;
    this.#forgetIfIdle(consumer);
  }

  #forgetIfIdle({ keyId, inFlight, awaited, background }: Consumer): void {
    if (inFlight + awaited.size + background.size === 0) this.#consumers.delete(keyId);
  }

  #mayStart({ inFlight }: Consumer): boolean {
    return this.#inFlight < this.#options.maxInFlight && inFlight < this.#maxPerKey;
  }

  /** Whether the rate allows one more call now, which it then counts. If not, waiting calls are served once it does. */
  #takeFromRate(): boolean {
    if (this.#isWaitingForRate) return false;
    this.#isWaitingForRate = !this.#rate.take(() => {
      this.#isWaitingForRate = false;
      this.#serve();
    });
    return !this.#isWaitingForRate;
  }

  #serve(): void {
    for (;;) {
      const next = this.#next('awaited') ?? this.#next('background');
      if (next === undefined || !this.#takeFromRate()) return;
      this.#remove(next.consumer, next.priority, next.call);
      next.call.clearTimer();
      next.call.resolve(this.#grant(next.consumer));
    }
  }

  /** The call whose turn it is: of the keys with the fewest calls in flight the one that was served longest ago. */
  #next(priority: Priority): { consumer: Consumer; priority: Priority; call: WaitingCall } | undefined {
    let next: Consumer | undefined;
    for (const consumer of this.#consumers.values()) {
      if (consumer[priority].size === 0 || !this.#mayStart(consumer)) continue;
      if (next === undefined || consumer.inFlight < next.inFlight) next = consumer;
    }
    const [call] = next?.[priority] ?? [];
    return next === undefined || call === undefined ? undefined : { consumer: next, priority, call };
  }

  #grant(consumer: Consumer): Permit {
    const { keyId } = consumer;
    this.#inFlight += 1;
    consumer.inFlight += 1;
    this.#consumers.delete(keyId);
    this.#consumers.set(keyId, consumer);
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      this.#inFlight -= 1;
      consumer.inFlight -= 1;
      this.#forgetIfIdle(consumer);
      this.#serve();
    };
    return { kind: 'granted', release };
  }
}
