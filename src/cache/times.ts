/** How long each class of answers may be served: the defaults, and the times in force at this moment. */
import type { ResourceKind } from '../upstream/resources.ts';

/** What has times of its own: each kind of resource, and the knowledge that something is absent. */
export type CacheClass = ResourceKind | 'notFound';

export const CACHE_CLASSES = [
  'list',
  'evaluation',
  'transcript',
  'scorecard',
  'rubric',
  'dealInsights',
  'notFound',
] as const satisfies readonly CacheClass[];

/** `staleMs` and `errorMs` both count from the end of freshness. */
export interface CacheTimes {
  /** Served as it is. */
  readonly freshMs: number;
  /** Served at once, while one refresh runs behind. */
  readonly staleMs: number;
  /** Served when the store fails. */
  readonly errorMs: number;
}

export type TimesByClass = Readonly<Record<CacheClass, CacheTimes>>;

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const DEFAULT_TIMES: TimesByClass = {
  list: { freshMs: 30 * SECOND_MS, staleMs: 5 * MINUTE_MS, errorMs: HOUR_MS },
  evaluation: { freshMs: 5 * MINUTE_MS, staleMs: HOUR_MS, errorMs: DAY_MS },
  transcript: { freshMs: HOUR_MS, staleMs: DAY_MS, errorMs: 7 * DAY_MS },
  scorecard: { freshMs: 15 * MINUTE_MS, staleMs: HOUR_MS, errorMs: DAY_MS },
  rubric: { freshMs: 10 * MINUTE_MS, staleMs: HOUR_MS, errorMs: DAY_MS },
  dealInsights: { freshMs: 5 * MINUTE_MS, staleMs: HOUR_MS, errorMs: DAY_MS },
  notFound: { freshMs: 15 * SECOND_MS, staleMs: 0, errorMs: 0 },
};

/** Asked at every read, so that a change rules what is already stored too. */
export interface TimesInForce {
  of(cacheClass: CacheClass): CacheTimes;
}

/** Whether an answer of the class is ever of use after it was given. */
export function isKept(times: CacheTimes): boolean {
  return times.freshMs > 0 || times.staleMs > 0 || times.errorMs > 0;
}

/** The times in force of one process: those of the configuration, and what was set over them while it runs. */
export class AdjustableTimes implements TimesInForce {
  #configured: TimesByClass;
  readonly #set = new Map<CacheClass, Partial<CacheTimes>>();
  readonly #inForce = new Map<CacheClass, CacheTimes>();

  constructor(configured: TimesByClass = DEFAULT_TIMES) {
    this.#configured = configured;
  }

  of(cacheClass: CacheClass): CacheTimes {
    return this.#inForce.get(cacheClass) ?? this.#configured[cacheClass];
  }

  /** Where nothing is set over it, this is in force. */
  configuredOf(cacheClass: CacheClass): CacheTimes {
    return this.#configured[cacheClass];
  }

  /** What was set over the configuration; empty where nothing was. */
  setOf(cacheClass: CacheClass): Partial<CacheTimes> {
    return this.#set.get(cacheClass) ?? {};
  }

  /** Sets some of a class's times; those left out stay as they are. */
  set(cacheClass: CacheClass, times: Partial<CacheTimes>): void {
    this.#set.set(cacheClass, { ...this.setOf(cacheClass), ...times });
    this.#compute(cacheClass);
  }

  /** Back to the configuration. */
  reset(cacheClass: CacheClass): void {
    this.#set.delete(cacheClass);
    this.#compute(cacheClass);
  }

  /** Another configuration; what was set over the old one stays set. */
  configure(configured: TimesByClass): void {
    this.#configured = configured;
    for (const cacheClass of CACHE_CLASSES) this.#compute(cacheClass);
  }

  #compute(cacheClass: CacheClass): void {
    this.#inForce.set(cacheClass, { ...this.#configured[cacheClass], ...this.setOf(cacheClass) });
  }
}
