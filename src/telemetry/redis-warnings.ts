/** Warnings in the log of a Redis that does not suit evalgate, once per start, and of a shared cache over its budget. */
import type { BudgetExcess } from '../cache/redis/budget.ts';
import type { Logger } from '../log/logger.ts';
import { type RedisLink, replyCode } from '../redis/connection.ts';
import type { Instances } from '../redis/instances.ts';
import { readRedisSettings, redisFaults, type RedisPurpose, type RedisUse } from '../redis/settings.ts';
import type { Timers } from '../timers.ts';

/** By then each process that lives has sent a heartbeat. */
const MEMBERS_KNOWN_AFTER_MS = 5000;

export interface WarningOptions {
  readonly state: RedisLink;
  /** Null where it is the same Redis. */
  readonly cache: RedisLink | null;
  /** Whether the response cache has a budget of its own in Redis. */
  readonly hasCacheBudget: boolean;
  readonly logger: Logger;
}

export function warnOfRedis({ state, cache, hasCacheBudget, logger }: WarningOptions): void {
  const purpose: StatePurpose = { use: cache === null ? 'both' : 'state', hasCacheBudget };
  warnOfRedisSettings(state, (warning) => logger.warn(warning), purpose);
  for (const link of cache === null ? [state] : [state, cache]) {
    warnOfMissingDatabase(link, (warning) => logger.error(warning));
  }
}

type StatePurpose = Pick<RedisPurpose, 'hasCacheBudget'> & { readonly use: Exclude<RedisUse, 'cache'> };

/** Warns in whole sentences, once, as soon as Redis answers. Never throws. */
export function warnOfRedisSettings(
  link: RedisLink,
  warn: (warning: string) => void,
  purpose: StatePurpose = { use: 'state' },
): void {
  onceUp(link, async () => {
    for (const server of link.servers()) {
      const where = link.kind === 'cluster' ? `The node ${server.name} of REDIS_URL` : 'The Redis of REDIS_URL';
      const faults = redisFaults(await readRedisSettings(server), { ...purpose, kind: link.kind });
      for (const { finding, remedy } of faults) warn(`${where} ${finding}. ${remedy}`);
    }
  });
}

/**
 * Warns once if there is no database of the address's number: Redis then goes on with the first one, perhaps among the
 * keys of somebody else. Never throws.
 */
export function warnOfMissingDatabase(link: RedisLink, warn: (warning: string) => void): void {
  const { client, role, db } = link;
  if (db === 0) return;
  onceUp(link, async () => {
    const code = await client.select(db).then(() => null, replyCode);
    if (code !== 'ERR') return;
    const setting = role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL';
    warn(
      `The Redis of ${setting} has no database ${db}, and what belongs there goes into database 0. Give another number in ${setting}, or raise "databases" in redis.conf.`,
    );
  });
}

/** Looks as soon as Redis answers; if that fails, again when it comes back. */
function onceUp(link: RedisLink, look: () => Promise<void>): void {
  let isLooking = false;
  const tryOnce = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      await look();
      end();
    } catch {
      isLooking = false;
    }
  };
  const end = link.onUp(() => void tryOnce());
  if (link.isUp()) void tryOnce();
}

export interface OtherStoresOptions {
  readonly members: Pick<Instances, 'list'>;
  /** As this process reports it to the others. */
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

/** One line when the shared cache goes over its budget, or over the other of its limits, and one when it is within (null). */
export function logBudget(logger: Pick<Logger, 'warn' | 'info'>, excess: BudgetExcess | null): void {
  if (excess === null) logger.info('the cache is within its budget in Redis again: new answers are stored there');
  else logger.warn(excess, 'the cache is over its budget in Redis: new answers are kept in memory only');
}
