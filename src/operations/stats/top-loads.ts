/** Which keys and routes cost the store most in one step of time, in bounded memory. */
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import type { StoreCallReport } from '../../cache/events.ts';

/** A key that costs the store much is called again before so many others are. */
const MAX_KEYS = 2048;
/** So many of each are written for other processes: more would be much to send, and are no load to speak of. */
const MAX_WRITTEN = 200;

const count = z.number().min(0);
/** Calls and milliseconds of a key with its class, or of a route. */
export const writtenLoadsSchema = z.object({
  keys: z.array(z.tuple([z.string(), z.enum(CACHE_CLASSES), count, count])),
  routes: z.array(z.tuple([z.string().nullable(), z.null(), count, count])),
});
type WrittenLoads = z.output<typeof writtenLoadsSchema>;

/** A key with its class, or a route, with its calls and their time. */
type Load<N, A> = [name: N, about: A, storeCalls: number, storeMs: number];

/** The calls of one process to the store in one step. */
export class TopLoads {
  readonly #keys = new LRUCache<string, Load<string, CacheClass>>({ max: MAX_KEYS });
  readonly #routes = new Map<string | null, Load<string | null, null>>();

  add({ key, class: cacheClass, route, durationMs }: StoreCallReport): void {
    this.#keys.set(key, plus(this.#keys.get(key) ?? [key, cacheClass, 0, 0], 1, durationMs));
    this.#routes.set(route, plus(this.#routes.get(route) ?? [route, null, 0, 0], 1, durationMs));
  }

  toJSON(): WrittenLoads {
    return {
      keys: costliest([...this.#keys.values()]).slice(0, MAX_WRITTEN),
      routes: costliest([...this.#routes.values()]),
    };
  }
}

/**
 * The costliest keys and routes first, at most so many of each; a route is null for calls that no request is known for.
 * Some calls of a key that is seldom called may be missing. Times are whole milliseconds.
 */
export function topOf(all: readonly WrittenLoads[], limit: number) {
  const keys = costliest(summed(all.flatMap((one) => one.keys))).slice(0, limit);
  const routes = costliest(summed(all.flatMap((one) => one.routes))).slice(0, limit);
  return {
    keys: keys.map(([key, cacheClass, ...load]) => ({ key, class: cacheClass, ...shown(load) })),
    routes: routes.map(([route, , ...load]) => ({ route, ...shown(load) })),
  };
}

/** Adds up what several processes and steps have counted. */
function summed<N, A>(loads: readonly Load<N, A>[]): readonly Load<N, A>[] {
  const sums = new Map<N, Load<N, A>>();
  for (const [name, about, storeCalls, storeMs] of loads) {
    sums.set(name, plus(sums.get(name) ?? [name, about, 0, 0], storeCalls, storeMs));
  }
  return [...sums.values()];
}

function plus<N, A>([name, about, storeCalls, storeMs]: Load<N, A>, calls: number, ms: number): Load<N, A> {
  return [name, about, storeCalls + calls, storeMs + ms];
}

function costliest<N, A>(loads: readonly Load<N, A>[]): Load<N, A>[] {
  return loads.toSorted(([, , callsA, msA], [, , callsB, msB]) => msB - msA || callsB - callsA);
}

function shown([storeCalls, storeMs]: readonly [storeCalls: number, storeMs: number]) {
  return { storeCalls, storeMs: Math.round(storeMs) };
}
