/**
 * Deletes copies in the state Redis that no process reads any more: those from before the cache had a Redis of its own
 * (`REDIS_CACHE_URL`), and those of another store, from before `UPSTREAM_URL` was another one. They hold records until they
 * expire, so an erasure unlinks all of them, whatever they are of.
 *
 * The copies of a store stay while a process is in front of it that uses the same state Redis. Of a cache Redis of its own it is
 * not known who uses it, so what is left there of other stores stays. While a rollout brings the cache a Redis of its own,
 * processes without it fetch anew.
 */
import type { RedisLink } from '../../redis/connection.ts';
import { CacheNames } from '../../redis/names.ts';

export interface LeftCopies {
  readonly state: Pick<RedisLink, 'servers' | 'run'>;
  /** The stores whose copies in the state Redis processes may read. */
  readonly storesInUse: () => readonly string[];
}

/** Names in one step of a scan. */
const COUNT = 1000;

/** Rejects if a server does not answer; another call goes on. */
export async function unlinkLeftCopies({ state, storesInUse }: LeftCopies): Promise<void> {
  const inUse = new Set(storesInUse());
  await unlinkNames(state, CacheNames.ALL, (name) => !inUse.has(CacheNames.storeIn(name)));
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
