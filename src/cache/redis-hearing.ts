/**
 * Whether a process hears of what happens in a Redis. A lost subscription is one thing where Redis answers: others go on
 * and this process doesn't hear of it; and another where Redis doesn't: then nothing can be told to anybody.
 */
import type { Clock } from '../clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { Timers } from '../timers.ts';

/**
 * - `hearing`: messages arrive, and what was missed before has been looked up
 * - `deaf`: Redis answers, but messages may not arrive
 * - `alone`: Redis doesn't answer
 */
export type Hearing = 'hearing' | 'deaf' | 'alone';

/** What of a link tells that something has changed. */
export interface HeardLink extends Pick<RedisLink, 'onUp' | 'onDown'> {
  readonly subscriber: Pick<RedisLink['subscriber'], 'isUp' | 'onUp' | 'onDown'>;
}

export interface RedisHearingOptions {
  readonly link: HeardLink;
  /** Asks Redis for what may have been missed; rejects where it doesn't answer. */
  readonly look: () => Promise<void>;
  readonly clock: Clock;
  readonly timers: Timers;
  /** `reason` is why Redis doesn't answer; null else. */
  readonly onChange: (now: Hearing, before: Hearing, reason: unknown) => void;
}

/** The beat of a fleet: what a message should have told is found out within this and the time of a command. */
const LOOK_EVERY_MS = 250;
/** When Redis comes back, its two connections don't come back together: the second has this long. */
const GRACE_MS = 1000;

export class RedisHearing {
  readonly #options: RedisHearingOptions;
  readonly #endings: (() => void)[];
  #now: Hearing = 'alone';
  #losses = 0;
  /** Since when Redis answers without that messages arrive. */
  #answersSinceMs: number | null = null;
  #isLooking = false;
  #isLookedForAgain = false;
  #isClosed = false;
  #cancelNext: () => void = () => undefined;

  constructor(options: RedisHearingOptions) {
    this.#options = options;
    const { link } = options;
    const lookSoon = (): void => void this.#lookNow();
    this.#endings = [
      link.onUp(lookSoon),
      link.onDown(lookSoon),
      link.subscriber.onUp(lookSoon),
      link.subscriber.onDown(() => {
        this.#losses += 1;
        lookSoon();
      }),
    ];
    lookSoon();
  }

  get now(): Hearing {
    return this.#now;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelNext();
    for (const end of this.#endings) end();
  }

  /** Rejects never. One at a time; who calls meanwhile gets another one after it. */
  async #lookNow(): Promise<void> {
    if (this.#isLooking || this.#isClosed) {
      this.#isLookedForAgain = true;
      return;
    }
    this.#cancelNext();
    this.#isLooking = true;
    do {
      this.#isLookedForAgain = false;
      await this.#look();
    } while (this.#isLookedForAgain && !this.#isClosed);
    this.#isLooking = false;
    if (!this.#isClosed) this.#cancelNext = this.#options.timers.after(LOOK_EVERY_MS, () => void this.#lookNow());
  }

  async #look(): Promise<void> {
    const { link, look } = this.#options;
    const [wasUp, losses] = [link.subscriber.isUp(), this.#losses];
    try {
      await look();
    } catch (error) {
      this.#answersSinceMs = null;
      this.#become('alone', error);
      return;
    }
    // Whatever was published before the look was looked up, and what came after was heard.
    const isHeard = wasUp && losses === this.#losses && link.subscriber.isUp();
    if (isHeard) this.#answersSinceMs = null;
    if (isHeard) this.#become('hearing', null);
    else this.#notHeard();
  }

  #notHeard(): void {
    const nowMs = this.#options.clock.nowMs();
    this.#answersSinceMs ??= nowMs;
    const isInGrace = this.#now === 'alone' && Math.abs(nowMs - this.#answersSinceMs) < GRACE_MS;
    if (!isInGrace) this.#become('deaf', null);
  }

  #become(now: Hearing, reason: unknown): void {
    const before = this.#now;
    this.#now = now;
    if (before !== now && !this.#isClosed) this.#options.onChange(now, before, reason);
  }
}
