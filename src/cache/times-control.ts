/** Changing the times in force while the gateway runs, for operators. */
import type { AdjustableTimes, CacheClass, CacheTimes } from './times.ts';

/** The times in force of a class before and after a change. */
export interface TimesChange {
  readonly from: CacheTimes;
  readonly to: CacheTimes;
}

/** Once a change resolves it is in force here; in every other process of the fleet within a second. */
export interface TimesControl {
  /** Sets some of a class's times; those left out stay. Rejects with a RangeError for what is no whole number of ms. */
  set(cacheClass: CacheClass, times: Partial<CacheTimes>): Promise<TimesChange>;
  /** Back to the configuration. */
  reset(cacheClass: CacheClass): Promise<TimesChange>;
}

const NAMES = ['freshMs', 'staleMs', 'errorMs'] as const satisfies readonly (keyof CacheTimes)[];
/** Some thirty years: what is longer is a mistake. */
const MAX_TIME_MS = 1e12;

/** The times given and nothing else. Throws a RangeError for one that can't be. */
export function checkedTimes(times: Partial<CacheTimes>): Partial<CacheTimes> {
  const given = NAMES.flatMap((name) => (times[name] === undefined ? [] : ([[name, times[name]]] as const)));
  for (const [name, valueMs] of given) {
    if (isTime(valueMs)) continue;
    throw new RangeError(`${name} must be a whole number of milliseconds from 0 to ${MAX_TIME_MS}`);
  }
  return Object.fromEntries(given);
}

export function isTime(valueMs: number): boolean {
  return Number.isSafeInteger(valueMs) && valueMs >= 0 && valueMs <= MAX_TIME_MS;
}

/** Of a gateway that is alone: forgotten when it stops. */
export class LocalTimesControl implements TimesControl {
  readonly #times: AdjustableTimes;

  constructor(times: AdjustableTimes) {
    this.#times = times;
  }

  async set(cacheClass: CacheClass, times: Partial<CacheTimes>): Promise<TimesChange> {
    const checked = checkedTimes(times);
    return this.#change(cacheClass, () => this.#times.set(cacheClass, checked));
  }

  async reset(cacheClass: CacheClass): Promise<TimesChange> {
    return this.#change(cacheClass, () => this.#times.reset(cacheClass));
  }

  #change(cacheClass: CacheClass, run: () => void): TimesChange {
    const from = this.#times.of(cacheClass);
    run();
    return { from, to: this.#times.of(cacheClass) };
  }
}
