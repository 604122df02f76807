/**
 * Which calls to the store may be sent, and when: a bounded number at a time, at a bounded rate. The others wait, not many
 * and not long. Calls that somebody waits for go before background refreshes.
 */
import type { Timers } from '../timers.ts';
import { type CallRate, unlimitedRate } from './call-rate.ts';

/**
 * Why a call was not sent:
 * - `queue-full`: as many calls as may wait were waiting
 * - `queue-timeout`: it had waited as long as it may
 * - `store-failing`: too many of the last calls had failed
 */
export type Rejection = 'queue-full' | 'queue-timeout' | 'store-failing';

export interface RequestQueueOptions {
  readonly maxInFlight: number;
  readonly maxQueue: number;
  readonly timers: Timers;
}

export interface QueuedCall {
  readonly isBackground: boolean;
  /** How long it may wait. */
  readonly waitMs: number;
}

/** `release` must be called once the call is over. */
export type Permit =
  | { readonly kind: 'granted'; readonly release: () => void }
  | { readonly kind: 'rejected'; readonly reason: Rejection };

interface Waiting {
  readonly resolve: (permit: Permit) => void;
  readonly clearTimer: () => void;
}

export class RequestQueue {
  readonly #options: RequestQueueOptions;
  /** In order of arrival. */
  readonly #awaited = new Set<Waiting>();
  readonly #background = new Set<Waiting>();
  #rate: CallRate = unlimitedRate;
  #inFlight = 0;
  #isWaitingForRate = false;

  constructor(options: RequestQueueOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get queued(): number {
    return this.#awaited.size + this.#background.size;
  }

  /** From now on no more calls than that rate allows. */
  limitBy(rate: CallRate): void {
    this.#rate = rate;
  }

  /** Resolves as soon as it is decided; never rejects. */
  acquire({ isBackground, waitMs }: QueuedCall): Promise<Permit> {
    if (this.queued === 0 && this.#isFree()) return Promise.resolve(this.#grant());
    if (this.queued >= this.#options.maxQueue) {
      // The oldest background refresh gives up its place to a call that somebody waits for.
      const [oldest] = this.#background;
      if (isBackground || oldest === undefined) return Promise.resolve({ kind: 'rejected', reason: 'queue-full' });
      this.#reject(this.#background, oldest, 'queue-full');
    }
    const { promise, resolve } = Promise.withResolvers<Permit>();
    const queue = isBackground ? this.#background : this.#awaited;
    const clearTimer = this.#options.timers.after(waitMs, () => this.#reject(queue, waiting, 'queue-timeout'));
    const waiting: Waiting = { resolve, clearTimer };
    queue.add(waiting);
    return promise;
  }

  rejectAll(reason: Rejection): void {
    for (const queue of [this.#awaited, this.#background]) {
      for (const waiting of queue) this.#reject(queue, waiting, reason);
    }
  }

  #reject(queue: Set<Waiting>, waiting: Waiting, reason: Rejection): void {
    queue.delete(waiting);
    waiting.clearTimer();
    waiting.resolve({ kind: 'rejected', reason });
  }

  /** Whether one more call may be sent now, which the rate then counts. */
  #isFree(): boolean {
    if (this.#inFlight >= this.#options.maxInFlight || this.#isWaitingForRate) return false;
    this.#isWaitingForRate = !this.#rate.take(() => {
      this.#isWaitingForRate = false;
      this.#serve();
    });
    return !this.#isWaitingForRate;
  }

  #serve(): void {
    while (this.queued > 0 && this.#isFree()) {
      const queue = this.#awaited.size > 0 ? this.#awaited : this.#background;
      const [next] = queue;
      if (next === undefined) return;
      queue.delete(next);
      next.clearTimer();
      next.resolve(this.#grant());
    }
  }

  #grant(): Permit {
    this.#inFlight += 1;
    let isReleased = false;
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      this.#inFlight -= 1;
      this.#serve();
    };
    return { kind: 'granted', release };
  }
}
