/** Which keys and routes cost the store most of late: what this process requested, in bounded memory. */
import type { CacheClass } from '../../cache/ttl-policy.ts';
import type { Clock } from '../../clock.ts';
import type { StoreCallReport } from '../../telemetry/events.ts';

export interface Load {
  readonly storeCalls: number;
  /** How long the store was at it, all calls together. */
  readonly storeMs: number;
}

export interface TopView {
  /** Calls since then are counted, Unix milliseconds: at most an hour ago. */
  readonly sinceMs: number;
  /** The costliest first. */
  readonly keys: readonly (Load & { readonly key: string; readonly class: CacheClass })[];
  /** By the path's template; null for calls that no request is known for. */
  readonly routes: readonly (Load & { readonly route: string | null })[];
}

/** The last whole period and the current one are shown: the last 30 to 60 minutes. */
const PERIOD_MS = 1_800_000;
const MOST_KEYS = 512;
const MOST_ROUTES = 64;

interface Period {
  readonly startedAtMs: number;
  readonly keys: HeavyHitters<CacheClass>;
  readonly routes: HeavyHitters<string | null>;
}

export class TopLoads {
  readonly #clock: Clock;
  #current: Period;
  #last: Period | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#current = periodFrom(clock.nowMs());
  }

  add({ key, class: cacheClass, route, durationMs }: StoreCallReport): void {
    this.#advance();
    this.#current.keys.add(key, cacheClass, durationMs);
    this.#current.routes.add(route ?? '', route, durationMs);
  }

  /** At most so many keys, and as many routes. The counts of a key that was first seen lately may lack calls. */
  view(limit: number): TopView {
    this.#advance();
    const periods = this.#last === null ? [this.#current] : [this.#last, this.#current];
    const keys = costliest(periods.map((period) => period.keys)).slice(0, limit);
    const routes = costliest(periods.map((period) => period.routes)).slice(0, limit);
    return {
      sinceMs: (this.#last ?? this.#current).startedAtMs,
      keys: keys.map(({ name, about, ...load }) => ({ key: name, class: about, ...load })),
      routes: routes.map(({ about, storeCalls, storeMs }) => ({ route: about, storeCalls, storeMs })),
    };
  }

  #advance(): void {
    const nowMs = this.#clock.nowMs();
    const sinceMs = nowMs - this.#current.startedAtMs;
    if (sinceMs < PERIOD_MS) return;
    this.#last = sinceMs < 2 * PERIOD_MS ? this.#current : null;
    this.#current = periodFrom(nowMs);
  }
}

function periodFrom(startedAtMs: number): Period {
  return { startedAtMs, keys: new HeavyHitters(MOST_KEYS), routes: new HeavyHitters(MOST_ROUTES) };
}

/** Adds up what several periods have counted. */
function costliest<A>(periods: readonly HeavyHitters<A>[]): readonly Hitter<A>[] {
  const sums = new Map<string, Hitter<A>>();
  for (const hitter of periods.flatMap((period) => period.counted())) {
    const { storeCalls, storeMs } = sums.get(hitter.name) ?? { storeCalls: 0, storeMs: 0 };
    sums.set(hitter.name, {
      name: hitter.name,
      about: hitter.about,
      storeCalls: hitter.storeCalls + storeCalls,
      storeMs: hitter.storeMs + storeMs,
    });
  }
  return [...sums.values()].toSorted((a, b) => b.storeMs - a.storeMs || b.storeCalls - a.storeCalls);
}

/** A name and its load since it has its place: never more than its own. */
interface Hitter<A> extends Load {
  readonly name: string;
  readonly about: A;
}

interface Counter<A> extends Hitter<A> {
  storeCalls: number;
  storeMs: number;
  /** The load of its place: its own, and that of the names that had the place before. */
  weight: number;
}

/**
 * Space-Saving (Metwally, Agrawal and El Abbadi, 2005), weighted: a name that is not counted takes the place of the
 * lightest, together with its weight, so that a name with more than its share of the load is always counted.
 */
class HeavyHitters<A> {
  readonly #most: number;
  readonly #counters = new Map<string, Counter<A>>();

  constructor(most: number) {
    this.#most = most;
  }

  add(name: string, about: A, ms: number): void {
    const counter = this.#counters.get(name) ?? this.#begin(name, about);
    counter.storeCalls += 1;
    counter.storeMs += ms;
    // A call that takes no time is load too.
    counter.weight += 1 + ms;
  }

  counted(): readonly Hitter<A>[] {
    return [...this.#counters.values()];
  }

  #begin(name: string, about: A): Counter<A> {
    const weight = this.#counters.size < this.#most ? 0 : this.#dropLightest();
    const counter = { name, about, storeCalls: 0, storeMs: 0, weight };
    this.#counters.set(name, counter);
    return counter;
  }

  /** Looks at all of them: some microseconds, once per call to the store at most. Returns the weight. */
  #dropLightest(): number {
    let lightest: Counter<A> | null = null;
    for (const counter of this.#counters.values()) {
      if (lightest === null || counter.weight < lightest.weight) lightest = counter;
    }
    if (lightest === null) return 0;
    this.#counters.delete(lightest.name);
    return lightest.weight;
  }
}
