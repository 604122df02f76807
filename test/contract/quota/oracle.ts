/**
 * The quota as decisions R1 to R3 say it, in the plainest words: a list of all admitted times, gone through from end to
 * end for every question. It shares nothing with the algorithm that it is there to judge.
 */
import type { QuotaWindows } from '../../../src/quota/log.ts';
import type { QuotaDecision, QuotaLimits, QuotaStanding, WindowState } from '../../../src/quota/quota.ts';

export class QuotaOracle {
  readonly admitted: number[] = [];
  readonly #windows: QuotaWindows;

  constructor(windows: QuotaWindows) {
    this.#windows = windows;
  }

  /** Decides on a request at that time, and remembers it where it is admitted. */
  take(clockMicros: number, limits: QuotaLimits): QuotaDecision {
    const nowMicros = Math.max(clockMicros, ...this.admitted);
    const admitted = this.#fits(nowMicros, limits);
    const retryAtMicros = admitted ? null : this.#firstFit(nowMicros, limits);
    if (admitted) this.admitted.push(nowMicros);
    return {
      admitted,
      nowMicros,
      minute: this.#state(nowMicros, this.#windows.minuteMicros, limits.perMinute),
      hour: this.#state(nowMicros, this.#windows.hourMicros, limits.perHour),
      retryAtMicros,
    };
  }

  /** How both windows stand at that time. */
  peek(clockMicros: number, limits: QuotaLimits): QuotaStanding {
    const nowMicros = Math.max(clockMicros, ...this.admitted);
    return {
      nowMicros,
      minute: this.#state(nowMicros, this.#windows.minuteMicros, limits.perMinute),
      hour: this.#state(nowMicros, this.#windows.hourMicros, limits.perHour),
    };
  }

  /** The most requests in any closed stretch of that length that ends with an admitted one. */
  mostWithin(lengthMicros: number): number {
    return Math.max(
      0,
      ...this.admitted.map((end) => this.#within(end, lengthMicros).filter((time) => time <= end).length),
    );
  }

  #within(nowMicros: number, lengthMicros: number): number[] {
    return this.admitted.filter((time) => !(nowMicros - time > lengthMicros));
  }

  #fits(nowMicros: number, limits: QuotaLimits): boolean {
    return (
      this.#within(nowMicros, this.#windows.minuteMicros).length < limits.perMinute &&
      this.#within(nowMicros, this.#windows.hourMicros).length < limits.perHour
    );
  }

  /** Use only falls just after an entry's time is up, so these are all the moments that need a look. */
  #firstFit(nowMicros: number, limits: QuotaLimits): number {
    const { minuteMicros, hourMicros } = this.#windows;
    const moments = this.admitted.flatMap((time) => [time + minuteMicros + 1, time + hourMicros + 1]);
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
