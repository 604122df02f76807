/**
 * Deletes the copies that 0.3 left in the cache Redis. They have names that 0.4 never reads, and hold records until they expire,
 * so an erasure unlinks all of them, and so does the bridge a day after the last process of 0.3 was seen
 * (journal/bridge-0.3.ts). A process of 0.3 that still runs fetches anew. 0.5 deletes this file.
 */
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheNames } from '../../redis/names.ts';
import { unlinkNames } from './left-copies.ts';

const KEY_VERSION_OF_03 = 'v2';

/** Copies, negative entries, leases and failures alike. Rejects if a server does not answer; another call goes on. */
export function unlinkCopiesOf03(
  cache: Pick<RedisLink, 'servers' | 'run'>,
  names: Pick<CacheNames, 'entryPattern'>,
): Promise<void> {
  return unlinkNames(cache, names.entryPattern(KEY_VERSION_OF_03));
}
