/**
 * Who may send a call to the store, and when: a bounded number at a time, at a bounded rate; the others wait, not many
 * and not long. Those that somebody waits for go before those that nobody does.
 */
import type { Timers } from '../../timers.ts';
import { type CallRate, unlimitedRate } from './call-rate.ts';
import type { GuardRefusal } from './hooks.ts';

export interface TurnsOptions {
  /** Most calls in flight. */
  readonly maxInFlight: number;
  /** Most calls that wait. */
  readonly maxQueue: number;
  readonly timers: Timers;
}

export interface Asking {
  readonly isBackground: boolean;
  /** How long it may wait. */
  readonly waitMs: number;
}

/** `release` must be called once the call is over. */
export type TurnAnswer =
  | { readonly kind: 'granted'; readonly release: () => void }
  | { readonly kind: 'refused'; readonly reason: GuardRefusal };

interface Waiting {
  readonly resolve: (answer: TurnAnswer) => void;
  /** Ends its timer. */
  readonly leave: () => void;
}

export class Turns {
  readonly #options: TurnsOptions;
  /** In order of arrival. */
  readonly #queues = { awaited: new Set<Waiting>(), background: new Set<Waiting>() };
  #rate: CallRate = unlimitedRate;
  #inFlight = 0;
  #isWaitingForRate = false;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get queued(): number {
    return this.#queues.awaited.size + this.#queues.background.size;
  }

  /** From now on no more than that rate allows. */
  limitBy(rate: CallRate): void {
    this.#rate = rate;
  }

  /** Resolves as soon as it is decided; never rejects. */
  take(asking: Asking): Promise<TurnAnswer> {
    if (this.queued === 0 && this.#isFree()) return Promise.resolve(this.#granted());
    const isFull = this.queued >= this.#options.maxQueue;
    if (isFull && (asking.isBackground || !this.#makeRoom())) {
      return Promise.resolve({ kind: 'refused', reason: 'queue-full' });
    }
    return this.#wait(asking);
  }

  /** Sends all away that wait. */
  refuseAll(reason: GuardRefusal): void {
    for (const queue of Object.values(this.#queues)) {
      for (const waiting of queue) this.#refuse(queue, waiting, reason);
    }
  }

  #wait({ isBackground, waitMs }: Asking): Promise<TurnAnswer> {
    const { promise, resolve } = Promise.withResolvers<TurnAnswer>();
    const queue = isBackground ? this.#queues.background : this.#queues.awaited;
    const leave = this.#options.timers.after(waitMs, () => this.#refuse(queue, waiting, 'queue-timeout'));
    const waiting: Waiting = { resolve, leave };
    queue.add(waiting);
    return promise;
  }

  /** The oldest call that nobody waits for gives up its place. */
  #makeRoom(): boolean {
    const { background } = this.#queues;
    const oldest = first(background);
    if (oldest !== undefined) this.#refuse(background, oldest, 'queue-full');
    return oldest !== undefined;
  }

  #refuse(queue: Set<Waiting>, waiting: Waiting, reason: GuardRefusal): void {
    queue.delete(waiting);
    waiting.leave();
    waiting.resolve({ kind: 'refused', reason });
  }

  /** Whether one more may go now, which is then counted in the rate. */
  #isFree(): boolean {
    if (this.#inFlight >= this.#options.maxInFlight || this.#isWaitingForRate) return false;
    this.#isWaitingForRate = !this.#rate.take(() => this.#goOn());
    return !this.#isWaitingForRate;
  }

  #goOn(): void {
    this.#isWaitingForRate = false;
    this.#serve();
  }

  #serve(): void {
    const { awaited, background } = this.#queues;
    while (this.queued > 0 && this.#isFree()) {
      const queue = awaited.size > 0 ? awaited : background;
      const waiting = first(queue);
      if (waiting === undefined) return;
      queue.delete(waiting);
      waiting.leave();
      waiting.resolve(this.#granted());
    }
  }

  #granted(): TurnAnswer {
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

function first<T>(values: ReadonlySet<T>): T | undefined {
  for (const value of values) return value;
  return undefined;
}
