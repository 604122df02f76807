/** Who costs the store most in one step of time, in bounded memory: records, routes, API keys and workspaces. */
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import type { StoreCallReport } from '../../cache/events.ts';

/** A key that costs the store much is called again before so many others are. */
const MAX_KEYS = 2048;
/** So many of each are written for other processes: more would be much to send, and are no load to speak of. */
const MAX_WRITTEN = 200;

const count = z.number().min(0);
/** Calls and milliseconds. */
const plainLoad = z.tuple([z.string().nullable(), z.null(), count, count]);
export const writtenLoadsSchema = z.object({
  /** Loads of a record or list, by its key in the cache, with its class. */
  keys: z.array(z.tuple([z.string(), z.enum(CACHE_CLASSES), count, count])),
  routes: z.array(plainLoad),
  /** Missing in what earlier releases have written. */
  apiKeys: z.array(plainLoad).default([]),
  workspaces: z.array(plainLoad).default([]),
});
type WrittenLoads = z.output<typeof writtenLoadsSchema>;

/** Whose load, such as a key with its class; its calls and their time. */
type Load<N, A> = [name: N, about: A, storeCalls: number, storeMs: number];
type PlainLoad = Load<string | null, null>;

/** The calls of one process to the store in one step. */
export class TopLoads {
  readonly #keys = new LRUCache<string, Load<string, CacheClass>>({ max: MAX_KEYS });
  readonly #routes = new Map<string | null, PlainLoad>();
  readonly #apiKeys = new LRUCache<string, PlainLoad>({ max: MAX_KEYS });
  readonly #workspaces = new LRUCache<string, PlainLoad>({ max: MAX_KEYS });

  add({ key, class: cacheClass, route, keyId, workspaceId, durationMs }: StoreCallReport): void {
    this.#keys.set(key, plus(this.#keys.get(key) ?? [key, cacheClass, 0, 0], 1, durationMs));
    this.#routes.set(route, plus(this.#routes.get(route) ?? [route, null, 0, 0], 1, durationMs));
    for (const [loads, name] of [[this.#apiKeys, keyId] as const, [this.#workspaces, workspaceId] as const]) {
      loads.set(name ?? '', plus(loads.get(name ?? '') ?? [name, null, 0, 0], 1, durationMs));
    }
  }

  toJSON(): WrittenLoads {
    return {
      keys: costliest([...this.#keys.values()]).slice(0, MAX_WRITTEN),
      routes: costliest([...this.#routes.values()]),
      apiKeys: costliest([...this.#apiKeys.values()]).slice(0, MAX_WRITTEN),
      workspaces: costliest([...this.#workspaces.values()]).slice(0, MAX_WRITTEN),
    };
  }
}

/**
 * The costliest records and lists (`keys`), routes, API keys and workspaces first, at most so many of each. A name is null
 * for calls that no request is known for, and a workspace for readers of several. If one is called seldom, calls may be
 * missing. Times are whole milliseconds.
 */
export function topOf(all: readonly WrittenLoads[], limit: number) {
  const most = <N, A>(loadsOf: (one: WrittenLoads) => readonly Load<N, A>[]) =>
    costliest(summed(all.flatMap(loadsOf))).slice(0, limit);
  return {
    keys: most((one) => one.keys).map(([key, cacheClass, ...load]) => ({ key, class: cacheClass, ...shown(load) })),
    routes: most((one) => one.routes).map(([route, , ...load]) => ({ route, ...shown(load) })),
    apiKeys: most((one) => one.apiKeys).map(([keyId, , ...load]) => ({ keyId, ...shown(load) })),
    workspaces: most((one) => one.workspaces).map(([workspaceId, , ...load]) => ({ workspaceId, ...shown(load) })),
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
