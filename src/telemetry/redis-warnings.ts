/**
 * Warnings in the log: once per start of a Redis that does not suit evalgate, and of others that use it too; and of each failover.
 */
import type { Logger } from '../log/logger.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { Instances } from '../redis/instances.ts';
import { readRedisSettings, redisFaults } from '../redis/settings.ts';
import type { Timers } from '../time/timers.ts';

/** By then each process that lives has sent a heartbeat. */
const MEMBERS_KNOWN_AFTER_MS = 5000;

export interface WarningOptions {
  readonly state: RedisLink;
  /** Null if it is the same Redis. */
  readonly cache: RedisLink | null;
  /** Whether the response cache has a budget of its own in Redis. */
  readonly hasCacheBudget: boolean;
  readonly logger: Logger;
}

/** Warns in whole sentences, once, as soon as Redis answers. Never throws. */
export function warnOfRedis({ state, cache, hasCacheBudget, logger }: WarningOptions): void {
  onceUp(state, async () => {
    for (const server of state.servers()) {
      const where = state.kind === 'cluster' ? `The node ${server.name} of REDIS_URL` : 'The Redis of REDIS_URL';
      const purpose = { use: cache === null ? 'both' : 'state', kind: state.kind, hasCacheBudget } as const;
      for (const { about, finding, remedy } of redisFaults(await readRedisSettings(server), purpose)) {
        // A dependency of its own (eviction.ts), since it can be set later.
        if (about === 'eviction') continue;
        logger.warn(`${where} ${finding}. ${remedy}`);
      }
    }
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

export interface FailoverLogOptions {
  readonly links: readonly Pick<RedisLink, 'role' | 'kind' | 'onSwitch'>[];
  readonly logger: Pick<Logger, 'warn'>;
  readonly timers: Timers;
}

/** Several Sentinels announce one failover, and several nodes may leave in it. */
const ONE_FAILOVER_MS = 10_000;

/** The addresses of Redis are never in the log, so the line says only that the primary is another one. */
export function logFailovers({ links, logger, timers }: FailoverLogOptions): void {
  for (const link of links) {
    let isLogged = false;
    link.onSwitch(() => {
      if (isLogged) return;
      isLogged = true;
      timers.after(ONE_FAILOVER_MS, () => {
        isLogged = false;
      });
      const { role, kind } = link;
      const what =
        kind === 'cluster' ? 'a node of the Cluster serves no slots any more' : 'the Sentinels name another primary';
      logger.warn({ role }, `Redis: ${what}; changes of the last moments before may be lost`);
    });
  }
}

export interface OtherStoresOptions {
  readonly instances: Pick<Instances, 'list'>;
  /** As this process reports it to the others. */
  readonly store: string;
  readonly logger: Pick<Logger, 'warn'>;
  readonly timers: Timers;
}

/** Different stores may be intended. If not, one process has the wrong address of the store, or of Redis. */
export function warnOfOtherStores({ instances, store, logger, timers }: OtherStoresOptions): void {
  timers.after(MEMBERS_KNOWN_AFTER_MS, () => {
    const others = instances.list().filter((other) => other.store !== store);
    if (others.length === 0) return;
    logger.warn(
      { others: others.map(({ host, pid }) => ({ host, pid })) },
      'other gateways over this Redis serve a different store: keys, limits, times and purges are shared with them, answers are not',
    );
  });
}
