/**
 * The quota in the plainest words (R1 to R4): a list of all admitted times, gone through from end to
 * end for every question. It shares nothing with the algorithms that it is there to judge.
 */
export interface Limits {
  readonly perMinute: number;
  readonly perHour: number;
}

interface WindowState {
  readonly limit: number;
  readonly remaining: number;
  readonly emptyAtMicros: number;
  readonly nextFreeAtMicros: number;
}

export interface Usage {
  readonly nowMicros: number;
  readonly minute: WindowState;
  readonly hour: WindowState;
}

export interface Decision extends Usage {
  readonly admitted: boolean;
  readonly retryAtMicros: number | null;
}

export const MINUTE_MICROS = 60_000_000;
export const HOUR_MICROS = 3_600_000_000;

export class QuotaOracle {
  readonly admitted: number[] = [];

  /** Decides on a request at that time, and remembers it if it is admitted. Entries from the future become those of now. */
  consume(nowMicros: number, limits: Limits): Decision {
    for (const [index, time] of this.admitted.entries()) this.admitted[index] = Math.min(time, nowMicros);
    const admitted = this.#fits(nowMicros, limits);
    const retryAtMicros = admitted ? null : this.#firstFit(nowMicros, limits);
    if (admitted) this.admitted.push(nowMicros);
    return { admitted, ...this.usage(nowMicros, limits), retryAtMicros };
  }

  /** The same, but nothing is remembered. */
  foresee(nowMicros: number, limits: Limits): Decision {
    const decision = this.consume(nowMicros, limits);
    if (decision.admitted) this.admitted.pop();
    return decision;
  }

  usage(nowMicros: number, limits: Limits): Usage {
    return {
      nowMicros,
      minute: this.#state(nowMicros, MINUTE_MICROS, limits.perMinute),
      hour: this.#state(nowMicros, HOUR_MICROS, limits.perHour),
    };
  }

  /** Closed at both ends: what was admitted exactly the window's length ago still counts. */
  #within(nowMicros: number, lengthMicros: number): number[] {
    return this.admitted.filter((time) => !(nowMicros - time > lengthMicros));
  }

  #fits(nowMicros: number, limits: Limits): boolean {
    return (
      this.#within(nowMicros, MINUTE_MICROS).length < limits.perMinute &&
      this.#within(nowMicros, HOUR_MICROS).length < limits.perHour
    );
  }

  /** Use only falls just after an entry's time is up, so these are all the moments that need a look. */
  #firstFit(nowMicros: number, limits: Limits): number {
    const moments = this.admitted.flatMap((time) => [time + MINUTE_MICROS + 1, time + HOUR_MICROS + 1]);
    return Math.min(...moments.filter((moment) => moment > nowMicros && this.#fits(moment, limits)));
  }

  #state(nowMicros: number, lengthMicros: number, limit: number): WindowState {
    const ends = this.#within(nowMicros, lengthMicros).map((time) => time + lengthMicros);
    return {
      limit,
      remaining: Math.max(0, limit - ends.length),
      emptyAtMicros: ends.length === 0 ? nowMicros : Math.max(...ends),
      nextFreeAtMicros: ends.length === 0 ? nowMicros : Math.min(...ends),
    };
  }
}

/** The smallest whole number of seconds that is not less, counted in integers. */
function secondsUp(micros: number): string {
  const exact = BigInt(micros);
  return String(exact / 1_000_000n + (exact % 1_000_000n > 0n ? 1n : 0n));
}

/** The rate-limit headers of an answer (R2 to R4); without `Retry-After` for a look. */
export function headersByTheBook(decision: Usage & Partial<Decision>): Record<string, string> {
  const { nowMicros, minute, hour, retryAtMicros = null } = decision;
  const active = minute.remaining <= hour.remaining ? minute : hour;
  const headers: Record<string, string> = {
    'x-ratelimit-active-window': active === minute ? 'minute' : 'hour',
    'ratelimit-policy': `"minute";q=${minute.limit};w=60, "hour";q=${hour.limit};w=3600`,
    ratelimit:
      `"minute";r=${minute.remaining};t=${secondsUp(minute.nextFreeAtMicros - nowMicros)}, ` +
      `"hour";r=${hour.remaining};t=${secondsUp(hour.nextFreeAtMicros - nowMicros)}`,
  };
  for (const [prefix, window] of [['', active] as const, ['minute-', minute] as const, ['hour-', hour] as const]) {
    headers[`x-ratelimit-${prefix}limit`] = String(window.limit);
    headers[`x-ratelimit-${prefix}remaining`] = String(window.remaining);
    headers[`x-ratelimit-${prefix}reset`] = secondsUp(window.emptyAtMicros);
  }
  if (retryAtMicros !== null) headers['retry-after'] = secondsUp(retryAtMicros - nowMicros);
  return headers;
}
