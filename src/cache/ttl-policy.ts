/**
 * How long each class of answers may be served (C1: fresh, stale and error times of each class): the configured TTLs, and the
 * values that operators set over them while the gateway runs, for good or for a while (C6a: a change rules stored copies).
 * Values set for a while end by themselves, by the clock of each process; then the value that was set for good is in force
 * again, else the configured one.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../time/clock.ts';
import { RESOURCE_KINDS } from '../upstream/resources.ts';

/** The classes that have TTLs of their own: each kind of resource, and negative entries. */
export const CACHE_CLASSES = [...RESOURCE_KINDS, 'notFound'] as const;
export type CacheClass = (typeof CACHE_CLASSES)[number];

/** `staleMs` and `errorMs` both count from the end of freshness. */
export interface CacheTtl {
  /** Served as it is. */
  readonly freshMs: number;
  /** Served at once, while one refresh runs in the background. */
  readonly staleMs: number;
  /** Served when the store fails. */
  readonly errorMs: number;
}

export type TtlName = keyof CacheTtl;
export type TtlByClass = Readonly<Record<CacheClass, CacheTtl>>;

export const TTL_NAMES = ['freshMs', 'staleMs', 'errorMs'] as const satisfies readonly TtlName[];

/** Whether an answer of the class is ever of use after it was given. */
export function isCacheable({ freshMs, staleMs, errorMs }: CacheTtl): boolean {
  return freshMs > 0 || staleMs > 0 || errorMs > 0;
}

/** A TTL that an operator set over the configured one. One with an end covers one of the same name without. */
export interface TtlOverride {
  readonly name: TtlName;
  readonly ms: number;
  /** In force until then, in Unix milliseconds; null for no end. */
  readonly untilMs: number | null;
}

/** Some thirty years: what is longer is a mistake. */
const MAX_TTL_MS = 1e12;

export function isTtl(ms: number): boolean {
  return Number.isSafeInteger(ms) && ms >= 0 && ms <= MAX_TTL_MS;
}

/** Throws a RangeError for a TTL that is no whole number of milliseconds. */
export function overridesFor(ttl: Partial<CacheTtl>, untilMs: number | null): readonly TtlOverride[] {
  return TTL_NAMES.flatMap((name) => {
    const ms = ttl[name];
    if (ms === undefined) return [];
    if (!isTtl(ms)) throw new RangeError(`${name} must be a whole number of milliseconds from 0 to ${MAX_TTL_MS}`);
    return [{ name, ms, untilMs }];
  });
}

/** The overrides of `present` that `added` leaves, and `added`: one without an end also ends the one that covers it. */
export function mergeOverrides(present: readonly TtlOverride[], added: readonly TtlOverride[]): readonly TtlOverride[] {
  const isReplaced = (old: TtlOverride): boolean =>
    added.some(({ name, untilMs }) => name === old.name && (untilMs === null || old.untilMs !== null));
  return [...present.filter((old) => !isReplaced(old)), ...added];
}

export function withoutEnded(overrides: readonly TtlOverride[], nowMs: number): readonly TtlOverride[] {
  return overrides.filter(({ untilMs }) => untilMs === null || nowMs < untilMs);
}

/** The TTLs of a class at one moment, for operators. */
export interface TtlState {
  readonly ttl: CacheTtl;
  /** Which of them are set, each with its end in Unix milliseconds; null for one without. */
  readonly set: Partial<Readonly<Record<TtlName, number | null>>>;
  /** In force once all that have an end have ended. */
  readonly afterwards: CacheTtl;
}

/** The TTLs in force in one process. Read at every request (C2: a change rules stored copies). */
export class TtlPolicy {
  readonly #clock: Clock;
  #configured: TtlByClass;
  readonly #overrides = new Map<CacheClass, readonly TtlOverride[]>();

  constructor(clock: Clock, configured: TtlByClass) {
    this.#clock = clock;
    this.#configured = configured;
  }

  of(cacheClass: CacheClass): CacheTtl {
    return this.#overrides.has(cacheClass) ? this.stateOf(cacheClass).ttl : this.#configured[cacheClass];
  }

  /** All that are set, also those that have ended and were not taken away yet. */
  overridesOf(cacheClass: CacheClass): readonly TtlOverride[] {
    return this.#overrides.get(cacheClass) ?? [];
  }

  stateOf(cacheClass: CacheClass): TtlState {
    return this.stateWith(cacheClass, withoutEnded(this.overridesOf(cacheClass), this.#clock.nowMs()));
  }

  /** The state of a class if exactly these overrides are in force. */
  stateWith(cacheClass: CacheClass, overrides: readonly TtlOverride[]): TtlState {
    const configured = this.#configured[cacheClass];
    if (overrides.length === 0) return { ttl: configured, set: {}, afterwards: configured };
    const lasting = overrides.filter(({ untilMs }) => untilMs === null);
    const temporary = overrides.filter(({ untilMs }) => untilMs !== null);
    const values = (some: readonly TtlOverride[]) => Object.fromEntries(some.map(({ name, ms }) => [name, ms]));
    const afterwards = { ...configured, ...values(lasting) };
    return {
      ttl: { ...afterwards, ...values(temporary) },
      set: Object.fromEntries([...lasting, ...temporary].map(({ name, untilMs }) => [name, untilMs])),
      afterwards,
    };
  }

  /** Puts these overrides in the place of all earlier ones of the class. */
  override(cacheClass: CacheClass, overrides: readonly TtlOverride[]): void {
    if (overrides.length === 0) this.#overrides.delete(cacheClass);
    else this.#overrides.set(cacheClass, overrides);
  }

  /** Another configuration; overrides stay. Returns whether it differs from the one before. */
  configure(configured: TtlByClass): boolean {
    const isOther = !isDeepStrictEqual(configured, this.#configured);
    this.#configured = configured;
    return isOther;
  }
}

export interface TtlChange {
  readonly from: TtlState;
  readonly to: TtlState;
}

/** TTLs of a class that have ended by themselves. */
export interface TtlEnd extends TtlChange {
  readonly cacheClass: CacheClass;
}
