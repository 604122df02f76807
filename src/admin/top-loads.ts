/** Which keys and routes cost the store most of late: what this process asked it, in bounded memory. */
import type { StoreCallReport } from '../telemetry/events.ts';
import type { CacheClass } from '../cache/ttl-policy.ts';
import type { Clock } from '../clock.ts';
import { HeavyHitters } from './heavy-hitters.ts';

export interface Load {
  readonly storeCalls: number;
  /** How long the store was at it, all calls together. */
  readonly storeMs: number;
}

export interface KeyLoad extends Load {
  readonly key: string;
  readonly class: CacheClass;
}

export interface RouteLoad extends Load {
  /** The path's template; null for calls that no request is known of. */
  readonly route: string | null;
}

export interface TopView {
  /** From when on calls are counted in, Unix milliseconds: at most an hour ago. */
  readonly sinceMs: number;
  /** The costliest first. */
  readonly keys: readonly KeyLoad[];
  readonly routes: readonly RouteLoad[];
}

/** The last one whole and the one that runs: what is told is of the last 30 to 60 minutes. */
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

  note({ key, class: cacheClass, route, durationMs }: StoreCallReport): void {
    this.#turn();
    this.#current.keys.add(key, cacheClass, durationMs);
    this.#current.routes.add(route ?? '', route, durationMs);
  }

  /** At most so many keys, and as many routes. What is told of a key that was seen lately for the first time may lack calls. */
  view(limit: number): TopView {
    this.#turn();
    const periods = this.#last === null ? [this.#current] : [this.#last, this.#current];
    const keys = costliest(periods.map((period) => period.keys));
    const routes = costliest(periods.map((period) => period.routes));
    return {
      sinceMs: periods[0]?.startedAtMs ?? this.#current.startedAtMs,
      keys: keys.slice(0, limit).map(([key, { about, ...load }]) => ({ key, class: about, ...load })),
      routes: routes.slice(0, limit).map(([, { about, ...load }]) => ({ route: about, ...load })),
    };
  }

  #turn(): void {
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

interface Counted<A> extends Load {
  readonly about: A;
}

function countedIn<A>(hitters: HeavyHitters<A>): readonly (readonly [string, Counted<A>])[] {
  return hitters.counted().map(({ name, about, calls, ms }) => [name, { about, storeCalls: calls, storeMs: ms }]);
}

/** Adds up what several periods have counted. */
function costliest<A>(periods: readonly HeavyHitters<A>[]): readonly (readonly [string, Counted<A>])[] {
  const sums = new Map<string, Counted<A>>();
  for (const [name, { about, storeCalls, storeMs }] of periods.flatMap(countedIn)) {
    const before = sums.get(name) ?? { storeCalls: 0, storeMs: 0 };
    sums.set(name, { about, storeCalls: before.storeCalls + storeCalls, storeMs: before.storeMs + storeMs });
  }
  return [...sums].toSorted(([, a], [, b]) => b.storeMs - a.storeMs || b.storeCalls - a.storeCalls);
}
