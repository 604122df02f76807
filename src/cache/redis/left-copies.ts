/**
 * Deletes copies in the state Redis that no process reads any more: those from before the cache had a Redis of its own
 * (`REDIS_CACHE_URL`), and those of another store, from before `UPSTREAM_URL` was another one. They hold records until they
 * expire, so an erasure unlinks all of them, whatever they are of.
 *
 * The copies of a store stay while a process is in front of it that uses the same state Redis. Who uses a cache Redis of its own
 * is not known, so copies that are left there of other stores stay. While a rollout brings the cache a Redis of its own,
 * processes without it fetch anew.
 */
import type { RedisLink } from '../../redis/connection.ts';
import { readRedisMemory } from '../../redis/memory.ts';
import { CacheNames } from '../../redis/names.ts';

type Link = Pick<RedisLink, 'role' | 'db' | 'servers' | 'run'>;

export interface LeftCopies {
  readonly state: Link;
  readonly cache: Link;
  /** Whether both have one address; two addresses may lead to one Redis all the same. */
  readonly isOne: boolean;
  /** The store of this process. */
  readonly store: string;
  /** The stores that the processes which use the state Redis are in front of. */
  readonly stores: () => readonly string[];
}

/** Names in one step of a scan. */
const COUNT = 1000;

/** Rejects if a server does not answer; another call goes on. */
export async function unlinkLeftCopies({ state, cache, isOne, store, stores }: LeftCopies): Promise<void> {
  const inUse = new Set(stores().filter((one) => one !== store));
  if (isOne || (await areOne(state, cache))) inUse.add(store);
  await unlinkNames(state, CacheNames.ALL, (name) => !inUse.has(CacheNames.storeIn(name)));
}

/** Whether both links lead to the same data; also if Redis does not say. */
async function areOne(state: Link, cache: Link): Promise<boolean> {
  if (state.db !== cache.db) return false;
  const [ofState, ofCache] = await Promise.all([readRedisMemory(state), readRedisMemory(cache)]);
  if (ofState === null || ofCache === null) return true;
  return ofCache.runIds.some((id) => id === null || ofState.runIds.includes(id));
}

/** Unlinks the names that match the pattern and are left. Rejects if a server does not answer; another call goes on. */
export async function unlinkNames(
  link: Pick<RedisLink, 'servers' | 'run'>,
  pattern: string,
  isLeft: (name: string) => boolean = () => true,
): Promise<void> {
  for (const { client } of link.servers()) {
    let cursor = '0';
    do {
      const [next, found] = await client.scan(cursor, 'MATCH', pattern, 'COUNT', COUNT);
      // Each by itself: on a Cluster they lie in several slots.
      await Promise.all(found.filter(isLeft).map((name) => link.run((any) => any.unlink(name))));
      cursor = next;
    } while (cursor !== '0');
  }
}
