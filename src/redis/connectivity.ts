/**
 * How much a process can know of changes by others in a Redis. News that do not arrive are one thing if Redis answers: other
 * processes go on, and this one misses what they do; and another if Redis does not: then nobody can change anything.
 */
import type { Timers } from '../time/timers.ts';
import type { RedisLink } from './connection.ts';
import { replyCode } from './errors.ts';

/**
 * - `hearing`: news arrive, and what was missed before has been looked up: copies are up to date
 * - `deaf`: Redis answers, but news may not arrive: nothing is used without asking Redis
 * - `alone`: Redis does not answer, so nothing changes there either
 *
 * The names are public, in a metric.
 */
export const CONNECTIVITIES = ['hearing', 'deaf', 'alone'] as const;
export type Connectivity = (typeof CONNECTIVITIES)[number];

export interface ConnectivityReportOptions {
  readonly link: Pick<RedisLink, 'isUp' | 'onUp' | 'onDown' | 'downReason'>;
  /** Whether all news arrive, as far as is known. */
  readonly isCurrent: () => boolean;
  /** Why Redis could not be asked for news though it answers; null if it could. */
  readonly failure?: () => unknown;
  /** Why news do not arrive though Redis could be asked for them; null if they do. */
  readonly silence?: () => unknown;
  readonly timers: Timers;
  /** `reason`: why Redis does not answer, or why news do not arrive if that is known; null otherwise. */
  readonly onChange: (now: Connectivity, reason: unknown) => void;
}

const CHECK_EVERY_MS = 250;
/** When Redis comes back, its connections don't come back together: the last one has this many checks. */
const GRACE_CHECKS = 4;

/** Reports each change of the connectivity, for operators. Who uses copies does not go by it, but asks for proof. */
export class ConnectivityReport {
  readonly #options: ConnectivityReportOptions;
  readonly #stops: readonly (() => void)[];
  #now: Connectivity = 'alone';
  #reason: unknown = null;
  /** How often Redis has answered in turn while news did not arrive. */
  #checksWithoutNews = 0;
  #cancelNext: () => void = () => undefined;

  constructor(options: ConnectivityReportOptions) {
    this.#options = options;
    const { link } = options;
    this.#stops = [link.onUp(() => this.#check()), link.onDown(() => this.#check())];
    this.#checkLater();
  }

  get now(): Connectivity {
    return this.#now;
  }

  /** Checks at once, after what may have changed it. */
  update(): void {
    this.#check();
  }

  close(): void {
    this.#cancelNext();
    for (const stop of this.#stops) stop();
  }

  #checkLater(): void {
    this.#cancelNext = this.#options.timers.after(CHECK_EVERY_MS, () => {
      this.#checksWithoutNews += 1;
      this.#check();
      this.#checkLater();
    });
  }

  #check(): void {
    const { link, isCurrent, failure, silence } = this.#options;
    const refusal = failure?.() ?? null;
    if (!link.isUp() || isCurrent()) this.#checksWithoutNews = 0;
    if (!link.isUp()) this.#become('alone', link.downReason);
    else if (isCurrent()) this.#become('hearing', null);
    else if (replyCode(refusal) !== null) this.#become('alone', refusal);
    else if (this.#now !== 'alone' || this.#checksWithoutNews > GRACE_CHECKS) {
      this.#become('deaf', silence?.() ?? null);
    }
  }

  #become(now: Connectivity, reason: unknown): void {
    const [before, reasonBefore] = [this.#now, this.#reason];
    this.#now = now;
    this.#reason = reason;
    const isSame = before === now && replyCode(reason) === replyCode(reasonBefore);
    if (!isSame) this.#options.onChange(now, reason);
  }
}
