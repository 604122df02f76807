/**
 * The exact rate limit as an algorithm: two sliding windows over one log of the times at which requests were admitted. Here
 * it is decided that a refused request costs nothing: it is not added. The script in `redis-limiter.ts` does the same; one
 * contract suite holds both to this one.
 *
 * Windows are closed: a request is in a window of length L until more than L has gone by. So no stretch of time of that
 * length, wherever it begins, ever holds more admitted requests than the limit, its two ends included (R1: limits are exact).
 *
 * An entry from the future shows that the clock went back. It then counts as made now, and so for at most one window
 * from now; the log is corrected, so that `retryAtMicros` stays true by the clock that clients live in.
 */
import type { QuotaDecision, QuotaLimits, QuotaUsage, WindowState } from './limiter.ts';

export const MINUTE_MICROS = 60_000_000;
export const HOUR_MICROS = 3_600_000_000;

/** The numbers in a log that a decision depends on. Times mean nothing if the window is empty. */
export interface LogSummary {
  readonly nowMicros: number;
  readonly newestMicros: number;
  readonly minuteUsed: number;
  readonly minuteOldestMicros: number;
  readonly hourUsed: number;
  readonly hourOldestMicros: number;
}

/** Both windows after `admitted` more requests at `nowMicros`. */
export function usageAfter(admitted: number, log: LogSummary, limits: QuotaLimits): QuotaUsage {
  const { nowMicros } = log;
  const newestMicros = admitted > 0 ? nowMicros : log.newestMicros;
  const stateOf = (limit: number, before: number, oldestMicros: number, lengthMicros: number): WindowState => {
    const used = before + admitted;
    if (used === 0) return { limit, remaining: limit, emptyAtMicros: nowMicros, nextFreeAtMicros: nowMicros };
    return {
      limit,
      remaining: Math.max(0, limit - used),
      emptyAtMicros: newestMicros + lengthMicros,
      nextFreeAtMicros: (before === 0 ? nowMicros : oldestMicros) + lengthMicros,
    };
  };
  return {
    nowMicros,
    minute: stateOf(limits.perMinute, log.minuteUsed, log.minuteOldestMicros, MINUTE_MICROS),
    hour: stateOf(limits.perHour, log.hourUsed, log.hourOldestMicros, HOUR_MICROS),
  };
}

/** Index of the first number that is at least `least`, in a list that never falls. */
function firstFrom(least: number, sorted: readonly number[]): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? Infinity) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Times of admitted requests, oldest first, as runs of requests at one time. With `maxRuns` it stays of that size: older
 * neighbours are put together at the time of the later one, so that no request is ever taken for older than it is.
 */
export class SlidingWindowLog {
  readonly #maxRuns: number;
  readonly #times: number[] = [];
  /** How many requests were ever added up to the end of each run. */
  readonly #ends: number[] = [];
  #dropped = 0;

  constructor(maxRuns = Infinity) {
    this.#maxRuns = maxRuns;
  }

  get length(): number {
    return (this.#ends.at(-1) ?? this.#dropped) - this.#dropped;
  }

  /** -Infinity for an empty log. */
  get newestMicros(): number {
    return this.#times.at(-1) ?? -Infinity;
  }

  /**
   * Decides on one more request: admitted only if both windows have room, and then added, `weight` times. A refused one
   * drops nothing from the log either.
   */
  consume(nowMicros: number, limits: QuotaLimits, weight = 1): QuotaDecision {
    const log = this.#summarize(nowMicros);
    if (log.minuteUsed >= limits.perMinute || log.hourUsed >= limits.perHour) {
      const { minute, hour } = usageAfter(0, log, limits);
      return { admitted: false, nowMicros, minute, hour, retryAtMicros: this.#retryAt(log, limits) };
    }
    this.dropOldest(this.length - log.hourUsed);
    this.add(nowMicros, weight);
    const { minute, hour } = usageAfter(weight, log, limits);
    return { admitted: true, nowMicros, minute, hour, retryAtMicros: null };
  }

  usage(nowMicros: number, limits: QuotaLimits): QuotaUsage {
    return usageAfter(0, this.#summarize(nowMicros), limits);
  }

  /** Adds `count` requests, from 1, at a time that may be before that of newer ones. */
  add(timeMicros: number, count: number): void {
    const run = timeMicros > this.newestMicros ? this.#times.length : firstFrom(timeMicros, this.#times);
    if (run === this.#times.length) {
      this.#times.push(timeMicros);
      this.#ends.push(this.#endBefore(run));
    } else if (this.#times[run] !== timeMicros) {
      this.#times.splice(run, 0, timeMicros);
      this.#ends.splice(run, 0, this.#endBefore(run));
    }
    for (let later = run; later < this.#ends.length; later += 1) this.#ends[later] = (this.#ends[later] ?? 0) + count;
    if (this.#times.length > this.#maxRuns) this.#coarsen();
  }

  /** Drops the `count` oldest; `count` is at most the length. */
  dropOldest(count: number): void {
    if (count <= 0) return;
    this.#dropped += count;
    const runs = firstFrom(this.#dropped + 1, this.#ends);
    this.#times.splice(0, runs);
    this.#ends.splice(0, runs);
  }

  /** Brings the log up to a time: drops what has left the hour, and corrects what is from the future. */
  advanceTo(nowMicros: number): void {
    this.#correct(nowMicros);
    this.dropOldest(this.#endBefore(firstFrom(nowMicros - HOUR_MICROS, this.#times)) - this.#dropped);
  }

  /** Pairs of time and count, oldest first. */
  runs(): (readonly [timeMicros: number, count: number])[] {
    return this.#times.map((time, run) => [time, this.#endBefore(run + 1) - this.#endBefore(run)] as const);
  }

  #summarize(nowMicros: number): LogSummary {
    this.#correct(nowMicros);
    const minuteRun = firstFrom(nowMicros - MINUTE_MICROS, this.#times);
    const hourRun = firstFrom(nowMicros - HOUR_MICROS, this.#times);
    const end = this.#endBefore(this.#ends.length);
    return {
      nowMicros,
      newestMicros: this.newestMicros,
      minuteUsed: end - this.#endBefore(minuteRun),
      minuteOldestMicros: this.#times[minuteRun] ?? nowMicros,
      hourUsed: end - this.#endBefore(hourRun),
      hourOldestMicros: this.#times[hourRun] ?? nowMicros,
    };
  }

  #correct(nowMicros: number): void {
    if (this.newestMicros <= nowMicros) return;
    const count = this.#endBefore(this.#ends.length) - this.#endBefore(firstFrom(nowMicros + 1, this.#times));
    this.#times.length = firstFrom(nowMicros + 1, this.#times);
    this.#ends.length = this.#times.length;
    this.add(nowMicros, count);
  }

  /** If a limit was lowered below the use, more than one request must leave. */
  #retryAt(log: LogSummary, { perMinute, perHour }: QuotaLimits): number {
    const minute = log.minuteUsed < perMinute ? 0 : this.#nthNewest(perMinute) + MINUTE_MICROS + 1;
    const hour = log.hourUsed < perHour ? 0 : this.#nthNewest(perHour) + HOUR_MICROS + 1;
    return Math.max(minute, hour);
  }

  #nthNewest(n: number): number {
    return this.#times[firstFrom(this.#dropped + this.length - n + 1, this.#ends)] ?? Infinity;
  }

  #endBefore(run: number): number {
    return this.#ends[run - 1] ?? this.#dropped;
  }

  /** A run that is taken out leaves its requests to the next, for ends count from the beginning. */
  #coarsen(): void {
    const half = this.#times.length >>> 1;
    for (let run = half - (half % 2); run >= 0; run -= 2) {
      this.#times.splice(run, 1);
      this.#ends.splice(run, 1);
    }
  }
}
