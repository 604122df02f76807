/** What is told in the log of a Redis that does not suit, once a start. */
import type { Logger } from './log/logger.ts';
import type { RedisLink } from './redis/connection.ts';
import type { Instances } from './redis/instances.ts';
import { warnOfMissingDatabase, warnOfRedisSettings } from './redis/settings.ts';
import type { Timers } from './timers.ts';

/** By then each process that lives has told that it does. */
const MEMBERS_KNOWN_AFTER_MS = 5000;

export interface WarningOptions {
  readonly state: RedisLink;
  /** Null where it is the same Redis. */
  readonly cache: RedisLink | null;
  readonly logger: Logger;
}

export function warnOfRedis({ state, cache, logger }: WarningOptions): void {
  warnOfRedisSettings(state, (warning) => logger.warn(warning), cache === null ? 'both' : 'state');
  for (const link of cache === null ? [state] : [state, cache]) {
    warnOfMissingDatabase(link, (warning) => logger.error(warning));
  }
}

export interface OtherStoresOptions {
  readonly members: Pick<Instances, 'list'>;
  /** As this process tells the others. */
  readonly store: string;
  readonly logger: Pick<Logger, 'warn'>;
  readonly timers: Timers;
}

/** It may be meant so. Where it is not, one of them has the wrong address of the store, or of Redis. */
export function warnOfOtherStores({ members, store, logger, timers }: OtherStoresOptions): void {
  timers.after(MEMBERS_KNOWN_AFTER_MS, () => {
    const others = members.list().filter((member) => member.store !== store);
    if (others.length === 0) return;
    logger.warn(
      { others: others.map(({ host, pid }) => ({ host, pid })) },
      'other gateways over this Redis stand in front of another store: keys, limits, times and purges are shared with them, answers are not',
    );
  });
}
