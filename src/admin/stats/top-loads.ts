/** Which keys and routes cost the store most in one step of time, in bounded memory. */
import { z } from 'zod';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import type { StoreCallReport } from '../../telemetry/events.ts';

const MOST_KEYS = 512;
const MOST_ROUTES = 64;
/** So many of each are written for other processes: more would be much to send, and are no load to speak of. */
const MOST_WRITTEN = 200;

const count = z.number().min(0);
/** Calls and milliseconds of a key with its class, or of a route. */
export const writtenLoadsSchema = z.object({
  keys: z.array(z.tuple([z.string(), z.enum(CACHE_CLASSES), count, count])),
  routes: z.array(z.tuple([z.string().nullable(), z.null(), count, count])),
});
type WrittenLoads = z.output<typeof writtenLoadsSchema>;

/** The calls of one process to the store in one step. */
export class TopLoads {
  readonly #keys = new HeavyHitters<string, CacheClass>(MOST_KEYS);
  readonly #routes = new HeavyHitters<string | null, null>(MOST_ROUTES);

  add({ key, class: cacheClass, route, durationMs }: StoreCallReport): void {
    this.#keys.add(key, cacheClass, durationMs);
    this.#routes.add(route, null, durationMs);
  }

  toJSON(): WrittenLoads {
    return { keys: this.#keys.heaviest(), routes: this.#routes.heaviest() };
  }
}

/**
 * The costliest keys and routes first, at most so many of each; a route is null for calls that no request is known for.
 * The counts of a key that has become heavy only lately may lack calls. Times are whole milliseconds.
 */
export function topOf(all: readonly WrittenLoads[], limit: number) {
  const keys = costliest(all.flatMap((one) => one.keys)).slice(0, limit);
  const routes = costliest(all.flatMap((one) => one.routes)).slice(0, limit);
  return {
    keys: keys.map(({ name, about, load }) => ({ key: name, class: about, ...rounded(load) })),
    routes: routes.map(({ name, load }) => ({ route: name, ...rounded(load) })),
  };
}

interface Load {
  storeCalls: number;
  storeMs: number;
}

function rounded({ storeCalls, storeMs }: Load): Load {
  return { storeCalls, storeMs: Math.round(storeMs) };
}

type Hitter<N, A> = [name: N, about: A, storeCalls: number, storeMs: number];

/** Adds up what several processes and steps have counted. */
function costliest<N, A>(hitters: readonly Hitter<N, A>[]) {
  const sums = new Map<N, { name: N; about: A; load: Load }>();
  for (const [name, about, storeCalls, storeMs] of hitters) {
    const sum = sums.get(name) ?? { name, about, load: { storeCalls: 0, storeMs: 0 } };
    sum.load.storeCalls += storeCalls;
    sum.load.storeMs += storeMs;
    sums.set(name, sum);
  }
  return [...sums.values()].toSorted(
    ({ load: a }, { load: b }) => b.storeMs - a.storeMs || b.storeCalls - a.storeCalls,
  );
}

/** A name's calls since it has its place, never more than its own, and the weight of the place. */
interface Counter<A> extends Load {
  readonly about: A;
  /** The load of the name, and of those that had the place before. */
  weight: number;
}

/**
 * Space-Saving (Metwally, Agrawal and El Abbadi, 2005), weighted: a name that is not counted takes the place of the
 * lightest, together with its weight, so that a name with more than its share of the load is always counted.
 */
class HeavyHitters<N, A> {
  readonly #most: number;
  readonly #counters = new Map<N, Counter<A>>();

  constructor(most: number) {
    this.#most = most;
  }

  add(name: N, about: A, ms: number): void {
    const counter = this.#counters.get(name) ?? this.#begin(name, about);
    counter.storeCalls += 1;
    counter.storeMs += ms;
    // A call that takes no time is load too.
    counter.weight += 1 + ms;
  }

  heaviest(): Hitter<N, A>[] {
    return [...this.#counters]
      .toSorted(([, a], [, b]) => b.weight - a.weight)
      .slice(0, MOST_WRITTEN)
      .map(([name, { about, storeCalls, storeMs }]) => [name, about, storeCalls, storeMs]);
  }

  #begin(name: N, about: A): Counter<A> {
    const weight = this.#counters.size < this.#most ? 0 : this.#dropLightest();
    const counter = { about, storeCalls: 0, storeMs: 0, weight };
    this.#counters.set(name, counter);
    return counter;
  }

  /** Looks at all of them: some microseconds, once per call to the store at most. Returns the weight. */
  #dropLightest(): number {
    let lightest: readonly [N, Counter<A>] | null = null;
    for (const entry of this.#counters) {
      if (lightest === null || entry[1].weight < lightest[1].weight) lightest = entry;
    }
    if (lightest === null) return 0;
    this.#counters.delete(lightest[0]);
    return lightest[1].weight;
  }
}
