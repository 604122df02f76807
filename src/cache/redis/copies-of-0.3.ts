/**
 * Deletes the copies that 0.3 left in the cache Redis. They have names that 0.4 never reads, and hold records until they expire,
 * so an erasure unlinks all of them, and so does the bridge a day after the last process of 0.3 was seen
 * (journal/bridge-0.3.ts). A process of 0.3 that still runs fetches anew. 0.5 deletes this file.
 */
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheNames } from '../../redis/names.ts';

const KEY_VERSION_OF_03 = 'v2';
/** Names in one step of a scan. */
const COUNT = 1000;

/** Copies, negative entries, leases and failures alike. Rejects if a server does not answer; another call goes on. */
export async function unlinkCopiesOf03(
  cache: Pick<RedisLink, 'servers' | 'run'>,
  names: Pick<CacheNames, 'entryPattern'>,
): Promise<void> {
  const pattern = names.entryPattern(KEY_VERSION_OF_03);
  for (const { client } of cache.servers()) {
    let cursor = '0';
    do {
      const [next, found] = await client.scan(cursor, 'MATCH', pattern, 'COUNT', COUNT);
      // Each by itself: on a Cluster they lie in several slots.
      await Promise.all(found.map((name) => cache.run((any) => any.unlink(name))));
      cursor = next;
    } while (cursor !== '0');
  }
}
