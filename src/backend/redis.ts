/** One Redis or two, for state and for the cache: the links, the journal in the first, and how all of it is doing. */
import { unlinkCopiesOf03 } from '../cache/redis/copies-of-0.3.ts';
import type { Config } from '../config/config.ts';
import { keptOr, type LoadedConfig } from '../config/load.ts';
import { Bridge03 } from '../journal/bridge-0.3.ts';
import { RedisJournal } from '../journal/redis-journal.ts';
import type { Logger } from '../log/logger.ts';
import { RedisAddressError } from '../redis/address.ts';
import type { RedisLink } from '../redis/connection.ts';
import { ConnectivityReport } from '../redis/connectivity.ts';
import { type InstanceInfo, Instances } from '../redis/instances.ts';
import { CacheNames } from '../redis/names.ts';
import { closeLinks, type Links, openLinks, reconnectLinks } from '../redis/links.ts';
import { redisCommandHook } from '../telemetry/hooks.ts';
import { Eviction } from '../telemetry/eviction.ts';
import { HistoryLoss } from '../telemetry/history-loss.ts';
import type { Reporting } from '../telemetry/open.ts';
import { RedisHealth, type Siblings, type TrackedRedis } from '../telemetry/redis-health.ts';
import { logFailovers, warnOfOtherStores, warnOfRedis } from '../telemetry/redis-warnings.ts';
import { type Timers, withDeadline } from '../time/timers.ts';

export interface BackendContext {
  readonly config: Config;
  /** Reads the files that a Redis address names, as they were when the configuration was read. */
  readonly readFile: (path: string) => string;
  /** Names the store behind this process. */
  readonly store: string;
  /** The other workers; null in a gateway of one process. */
  readonly siblings: Siblings | null;
  readonly reporting: Reporting;
  readonly timers: Timers;
}

export interface SharedRedis extends Links {
  readonly journal: RedisJournal;
  readonly instances: Instances;
  readonly health: RedisHealth;
  /** Goes over to the addresses of that configuration, whose secrets may be others. */
  useAddresses(loaded: LoadedConfig): void;
  /**
   * Resolves once the journal was read, or as soon as it is clear that it can't be now: a Redis that does not answer keeps no
   * gateway from starting, and is joined when it comes back. From then on `/readyz` shows how it is doing. Never rejects.
   */
  join(registry: TrackedRedis['registry'], protection: TrackedRedis['protection']): Promise<void>;
  close(): Promise<void>;
}

/** How long a start waits for a Redis that neither answers nor refuses. */
const OPEN_WITHIN_MS = 1000;

/** `url`: the state Redis. Throws a StartError for an address that is none. */
export function openSharedRedis(context: BackendContext, url: string, about: InstanceInfo): SharedRedis {
  const { config, readFile, store, siblings, reporting, timers } = context;
  const { metrics, logger, clock } = reporting;
  const { cacheUrl, timeoutMs } = config.redis;
  const links = openLinks({ url, cacheUrl, readFile }, { timeoutMs, onCommand: redisCommandHook(metrics) });
  const { state, cache, isOne } = links;
  warnOfRedis({ state, cache: isOne ? null : cache, hasCacheBudget: config.cache.redisBytes !== null, logger });
  logFailovers({ links: isOne ? [state] : [state, cache], logger, timers });
  const health = new RedisHealth({ ...reporting, isOne, siblings });
  const instances = new Instances({ link: state, about, atLeast: config.server.workers });
  warnOfOtherStores({ instances, store, logger, timers });
  const historyLoss = new HistoryLoss(reporting);
  const journal = new RedisJournal({ link: state, clock, timers, onLost: () => historyLoss.note() });
  const isOldThere = (): boolean => instances.list().some(({ usesJournal }) => !usesJournal);
  const clearCache = (): Promise<void> => unlinkCopiesOf03(cache, new CacheNames(store));
  const bridge = new Bridge03({ journal, link: state, isOldThere, clearCache, clock, timers });
  const eviction = new Eviction({
    link: state,
    use: isOne ? 'both' : 'state',
    timers,
    onChange: () => reporting.health.update(),
  });
  const reports = [reportOnState(state, journal, health, timers), reportOnCache(cache, health, timers)];
  return {
    ...links,
    journal,
    instances,
    health,
    useAddresses: (loaded) => useAddresses(links, loaded, logger),
    join: async (registry, protection) => {
      const joined = untilUp(state)
        .then(() => journal.catchUp())
        .then(() => bridge.look());
      const settled = Promise.allSettled([joined, ...[state.subscriber, cache, cache.subscriber].map(untilUp)]);
      await withDeadline(settled, OPEN_WITHIN_MS, timers, () => undefined);
      for (const report of reports) report.update();
      health.track({
        registry,
        protection,
        eviction,
        historyLoss,
        links: [state, cache],
        processes: () => instances.count(),
        clockAheadMs: () => instances.clockAheadMs,
        graceMs: config.keys.graceMs,
        hasDemoKeys: config.upstream.url === null,
      });
    },
    close: async () => {
      for (const report of reports) report.close();
      eviction.close();
      bridge.close();
      await instances.close();
      journal.close();
      await closeLinks(links);
    },
  };
}

function useAddresses(links: Links, { config, files }: LoadedConfig, logger: Logger): void {
  const { url, cacheUrl } = config.redis;
  if (url === null) return;
  try {
    reconnectLinks(links, { url, cacheUrl, readFile: keptOr(files) });
  } catch (error) {
    // The address is in the configuration file, and nobody has read the files that it names before.
    if (!(error instanceof RedisAddressError)) throw error;
    logger.error(
      { reason: error.message },
      'the new address of Redis cannot be used; its connections stay as they are',
    );
  }
}

/** Everything that processes must know comes by the journal. */
function reportOnState(
  link: RedisLink,
  journal: RedisJournal,
  health: RedisHealth,
  timers: Timers,
): ConnectivityReport {
  /** Whether messages were heard once: if not, the user may have no right to them. */
  let hasHeard = false;
  return new ConnectivityReport({
    link,
    timers,
    isCurrent: () => {
      hasHeard ||= link.subscriber.isUp();
      return hasHeard && journal.isProven() && journal.waitFailure === null;
    },
    failure: () => journal.failure,
    silence: () => journal.waitFailure,
    onChange: (now, reason) => health.onConnectivity('state', now, reason),
  });
}

/** Messages report the copies that other processes have stored; they may be lost without harm. */
function reportOnCache(link: RedisLink, health: RedisHealth, timers: Timers): ConnectivityReport {
  return new ConnectivityReport({
    link,
    timers,
    isCurrent: () => link.subscriber.isUp(),
    onChange: (now, reason) => health.onConnectivity('cache', now, reason),
  });
}

/** Rejects if it turns out to be down. */
async function untilUp(link: Pick<RedisLink, 'isUp' | 'onUp' | 'onDown'>): Promise<void> {
  if (link.isUp()) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stops = [link.onUp(resolve), link.onDown(reject)];
  await promise.finally(() => {
    for (const stop of stops) stop();
  });
}
