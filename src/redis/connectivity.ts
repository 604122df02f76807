/**
 * Whether a process is up to date with a Redis. A lost subscription is one thing if Redis answers: other processes go on
 * and this one misses their messages; and another if Redis does not: then nobody can publish anything.
 */
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import type { RedisLink } from './connection.ts';

/**
 * - `connected`: messages arrive, and what was missed before has been looked up: copies are up to date
 * - `subscriptionLost`: Redis answers, but messages may not arrive: nothing is used without asking Redis
 * - `disconnected`: Redis does not answer, so nothing changes there either
 */
export type Connectivity = 'connected' | 'subscriptionLost' | 'disconnected';

export interface ConnectivityWatchOptions {
  readonly link: Changing & { readonly subscriber: Changing & Pick<RedisLink['subscriber'], 'isUp'> };
  /** Looks up what may have been missed; rejects if Redis does not answer. */
  readonly look: () => Promise<void>;
  readonly clock: Clock;
  readonly timers: Timers;
  /** `reason`: why Redis does not answer; null otherwise. */
  readonly onChange: (now: Connectivity, before: Connectivity, reason: unknown) => void;
}

type Changing = Pick<RedisLink, 'onUp' | 'onDown'>;

/** The heartbeat: a lost message is made up for within this and the time of a command. */
const LOOK_EVERY_MS = 500;
/** When Redis comes back, its two connections don't come back together: the second has this long. */
const GRACE_MS = 1000;

/** Looks up missed changes again and again, and reports each change of the connectivity. */
export class ConnectivityWatch {
  readonly #options: ConnectivityWatchOptions;
  readonly #unsubscribes: (() => void)[];
  #now: Connectivity = 'disconnected';
  #upToDateAtMs = Number.NEGATIVE_INFINITY;
  #losses = 0;
  /** Since when Redis has answered while messages did not arrive. */
  #answersSinceMs: number | null = null;
  readonly #settled = Promise.withResolvers<void>();
  #isClosed = false;
  #cancelNext: () => void = () => undefined;
  /** Looks, and later again. Never rejects. */
  readonly #lookNow = oneAtATime(async () => {
    if (this.#isClosed) return;
    this.#cancelNext();
    await this.#look();
    if (!this.#isClosed) this.#cancelNext = this.#options.timers.after(LOOK_EVERY_MS, () => void this.#lookNow());
  });

  constructor(options: ConnectivityWatchOptions) {
    this.#options = options;
    const { link } = options;
    const lookSoon = (): void => void this.#lookNow();
    this.#unsubscribes = [
      link.onUp(lookSoon),
      link.onDown(() => {
        this.#settled.resolve();
        lookSoon();
      }),
      link.subscriber.onUp(lookSoon),
      link.subscriber.onDown(() => {
        this.#losses += 1;
        this.#upToDateAtMs = Number.NEGATIVE_INFINITY;
        lookSoon();
      }),
    ];
    lookSoon();
  }

  get now(): Connectivity {
    return this.#now;
  }

  /**
   * All that was published by then has arrived, on a clock that never goes back. A process that was held up finds here
   * that it was, before it uses a copy.
   */
  get upToDateAtMs(): number {
    return this.#upToDateAtMs;
  }

  /** Resolves once messages arrive, or Redis can't be reached; for a Redis that neither answers nor refuses, never. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelNext();
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  async #look(): Promise<void> {
    const { link, look, clock } = this.#options;
    const sentAtMs = clock.nowMicros() / 1000;
    const [wasUp, losses] = [link.subscriber.isUp(), this.#losses];
    try {
      await look();
    } catch (error) {
      this.#answersSinceMs = null;
      this.#become('disconnected', error);
      return;
    }
    // The look found all that was published before it, and all later messages have arrived.
    if (wasUp && losses === this.#losses && link.subscriber.isUp()) {
      this.#answersSinceMs = null;
      this.#upToDateAtMs = sentAtMs;
      this.#become('connected', null);
    } else {
      this.#onMissedMessages();
    }
  }

  #onMissedMessages(): void {
    const nowMs = this.#options.clock.nowMs();
    this.#answersSinceMs ??= nowMs;
    const isInGrace = this.#now === 'disconnected' && Math.abs(nowMs - this.#answersSinceMs) < GRACE_MS;
    if (!isInGrace) this.#become('subscriptionLost', null);
  }

  #become(now: Connectivity, reason: unknown): void {
    const before = this.#now;
    this.#now = now;
    if (now === 'connected') this.#settled.resolve();
    if (before !== now && !this.#isClosed) this.#options.onChange(now, before, reason);
  }
}

/**
 * The same function, of which one call runs at a time: a call meanwhile gets one more run after it, together with all other
 * calls of that time. So each call is followed by a whole run that began after it. Rejects as the run does.
 */
export function oneAtATime(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  const call = (): Promise<void> => {
    if (running === null) {
      running = run().finally(() => {
        running = null;
      });
      return running;
    }
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return call();
      });
    return next;
  };
  return call;
}
