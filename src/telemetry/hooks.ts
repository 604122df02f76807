/** Turns what the parts of a gateway report into metrics, log lines and the health of dependencies. */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import type { Logger } from '../log/logger.ts';
import type { RedisLinkOptions } from '../redis/connection.ts';
import type { ListenerHooks } from '../server/server.ts';
import type { StoreClientHooks } from '../upstream/client.ts';
import type { GuardHooks } from '../upstream/guard.ts';
import type { Listed } from '../upstream/resources.ts';
import type { CacheListener } from '../cache/events.ts';
import type { CacheHooks } from '../cache/open.ts';
import type { KeyHooks } from '../keys/open.ts';
import type { Metrics } from './metrics.ts';
import type { Reporting, Telemetry } from './open.ts';
import type { PublicAppHooks, RequestReport } from './request-report.ts';
import type { StoreLoad } from './store-health.ts';

/** The value of a label that has none. */
const NONE = 'none';

export interface StoreHooks {
  readonly store: StoreClientHooks;
  readonly guard: GuardHooks;
  /** Takes why no connection to the store comes about, null if one does. Returns whether to try again. */
  readonly onConnect: (failure: string | null) => boolean;
  /** Takes what is asked how much the store bears. */
  readonly watch: (load: () => StoreLoad) => void;
}

/** A record that is left out again and again has one line of the log in so long. */
const LEFT_OUT_EVERY_MS = 3_600_000;
/** Beyond so many such records, lines are repeated. */
const MAX_LEFT_OUT = 10_000;

/** For the client of the store, and the guard around it. `countListed` counts the records of lists for operators. */
export function storeHooks(
  { logger, metrics, clock, storeHealth, consumers }: Telemetry,
  countListed: (listed: Listed) => void,
): StoreHooks {
  const loggedAtMs = new LRUCache<string, number>(atMost(MAX_LEFT_OUT));
  return {
    onConnect: (failure) => storeHealth.onConnect(failure),
    store: {
      onCall: (call) => {
        const { resource, outcome, durationMs } = call;
        metrics.storeCalls.inc({ resource, outcome });
        metrics.storeCallDurations.observe({ resource }, durationMs / 1000);
        storeHealth.onCall(call);
        logger.debug(call, 'store call');
      },
      onListed: ({ resource, requestId, ...listed }) => {
        metrics.recordsListed.inc({ resource }, listed.records);
        metrics.recordsLeftOut.inc({ resource }, listed.leftOut.length);
        countListed(listed);
        consumers.onListed(listed);
        for (const leftOut of listed.leftOut) {
          const record = `${leftOut.id} ${leftOut.path}`;
          const nowMs = clock.nowMs();
          if (nowMs - (loggedAtMs.get(record) ?? Number.NEGATIVE_INFINITY) < LEFT_OUT_EVERY_MS) continue;
          loggedAtMs.set(record, nowMs);
          logger.warn({ resource, ...leftOut, requestId }, 'record left out of a list: it is incomplete or malformed');
        }
      },
    },
    guard: {
      onRefused: (reason) => {
        metrics.storeCallsRefused.inc({ reason });
        if (reason === 'key-failing') storeHealth.onKeyHeldBack();
        else if (reason === 'queue-full' || reason === 'queue-timeout') storeHealth.onQueued(null);
      },
      onRetry: (outcome) => metrics.storeRetries.inc({ outcome }),
      onTurnTaken: (waitedMs) => {
        metrics.storeQueueWaits.observe(waitedMs / 1000);
        storeHealth.onQueued(waitedMs);
      },
      onCircuit: (keyId, error) => {
        if (keyId === null) storeHealth.onCircuit(error);
        else if (error === null) logger.info({ keyId }, 'the circuit of an API key is closed again');
        else logger.warn({ keyId, err: error }, 'the circuit of an API key is open: too many of its calls failed');
      },
      onLimit: halvings(logger),
    },
    watch: (load) => storeHealth.watch(load),
  };
}

/** Takes each limit of calls under way, and logs when it is half of what it was. */
function halvings(logger: Logger): (limit: number) => void {
  let largest = 0;
  return (limit) => {
    const isHalved = limit <= largest / 2;
    if (isHalved) {
      const limits = { from: largest, to: limit };
      logger.info(limits, 'the store bears fewer calls at a time: the limit of calls under way has halved');
    }
    largest = isHalved ? limit : Math.max(largest, limit);
  };
}

const CLOCK_WARNING_EVERY_MS = 60_000;

/** Listens to the cache. */
export function cacheListener({
  logger,
  metrics,
  consumers,
}: Pick<Telemetry, 'logger' | 'metrics' | 'consumers'>): CacheListener {
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  /** A record from the future (C9: it is stale), once a minute: there may be as many as copies. */
  const warnOfClock = (cacheClass: string): void => {
    if (performance.now() - warnedAtMs < CLOCK_WARNING_EVERY_MS) return;
    warnedAtMs = performance.now();
    const whose = 'the clock of this machine, or of the one that fetched it, is or was wrong';
    logger.warn({ class: cacheClass }, `a copy is from the future, and is renewed: ${whose}`);
  };
  return {
    onRead: ({ class: cacheClass, outcome, tier, missReason, failure, ageMs }) => {
      if (ageMs === null && outcome !== 'failed') warnOfClock(cacheClass);
      metrics.cacheReads.inc({ class: cacheClass, outcome, tier: tier ?? NONE });
      if (ageMs !== null) metrics.entryAges.observe({ class: cacheClass }, ageMs / 1000);
      if (missReason !== null) metrics.cacheMisses.inc({ class: cacheClass, reason: missReason });
      if (failure !== null) metrics.cacheFallbacks.inc({ class: cacheClass, outcome, reason: failure });
    },
    onRefresh: (refresh) => consumers.onRefresh(refresh),
    onLeaseWait: ({ class: cacheClass, end, durationMs }) =>
      metrics.leaseWaits.observe({ class: cacheClass, end }, durationMs / 1000),
    // The store's other failures are logged as they begin and end. This one is about a record, and nothing else reports it.
    onRefreshFailed: ({ class: cacheClass, error }) => {
      if (error.kind === 'malformed') logger.warn({ class: cacheClass, err: error }, 'a stored answer was not renewed');
    },
    onPartMisplaced: ({ class: cacheClass, requestId, error }) =>
      logger.warn(
        { class: cacheClass, requestId, err: error },
        'a part was answered as none: it is of another workspace than its evaluation',
      ),
    // An outage of Redis is logged as it begins and ends; each read that went without it gets a line only at debug level.
    onSharedCacheFailed: ({ operation, error }) => logger.debug({ operation, err: error }, 'the shared cache failed'),
  };
}

const CACHE_FAILURES = {
  decode: 'the cache Redis holds what cannot be read',
  keep: 'stored copies could not be kept for a longer TTL: set it again once Redis answers',
  sweep: 'what was purged could not be deleted from Redis; it is tried again',
} as const;

const CACHE_ROLLED_BACK =
  'The cache Redis has gone back to an older state: it was emptied, an old copy was restored, or a replica that lagged has taken over. Every answer cached there before counts as purged.';

/** Hooks for the reports of the cache besides its reads. */
export function cacheHooks({ logger, metrics }: Reporting): Omit<CacheHooks, 'onBudget' | 'onTtlEnd'> {
  const warnOfUndecryptable = warnOnce(logger, 'a cached copy cannot be decrypted: it and its like count as none');
  return {
    onFailed: (operation, error) => logger.warn({ operation, err: error }, CACHE_FAILURES[operation]),
    onUndecryptable: ({ reason, message }) => {
      metrics.undecryptable.inc({ reason });
      warnOfUndecryptable(message);
    },
    onRolledBack: () => logger.error(CACHE_ROLLED_BACK),
    onBrokenMessage: warnOnce(logger, 'a message of the fleet cannot be read, and is left out'),
  };
}

/** Warns once about each of them: it keeps coming. */
function warnOnce(logger: Logger, message: string): (what: string) => void {
  const known = new Set<string>();
  return (what) => {
    if (known.has(what)) return;
    known.add(what);
    logger.warn({ what }, message);
  };
}

/** For the registry of keys. */
export function keyHooks({ health, logger }: Reporting): KeyHooks {
  return {
    onLoss: () => health.update('keys'),
    onBrokenRecord: (error) => logger.error({ err: error }, 'a key in Redis is broken'),
    onIdsRestored: (ids) => logger.error({ ids }, 'Redis had lost ids of keys: they are written anew from the keys'),
  };
}

/**
 * For the public application, and the server that it runs on. `countRequest` counts a request for operators: the use of its
 * key, and the last hour.
 */
export function httpHooks(
  { logger, metrics, consumers, noteRefusal, requestLog }: Telemetry,
  countRequest: (report: RequestReport) => void,
): PublicAppHooks & Required<ListenerHooks> {
  return {
    onRequest: (report) => {
      const { method, status, cache, durationMs } = report;
      const surface = report.surface === 'other' ? 'docs' : report.surface;
      const route = report.route ?? 'unmatched';
      metrics.requests.inc({ surface, route, method: methodLabel(method), status });
      metrics.requestDurations.observe({ surface, route, cache: cache ?? NONE }, durationMs / 1000);
      if (status === 401 && report.keyId !== null) metrics.knownKeysRefused.inc();
      consumers.onRequest(report);
      countRequest(report);
      requestLog.write(report);
    },
    onAuthenticationRefused: (reason) => metrics.authenticationFailures.inc({ reason }),
    onQuotaRefused: (window) => metrics.quotaRefusals.inc({ window }),
    onShed: () => {
      metrics.requestsShed.inc();
      noteRefusal();
    },
    onBroken: (error) => logger.debug({ err: error }, 'answer could not be sent'),
    onClientError: ({ requestId, status, reason }) => {
      metrics.unreadableRequests.inc({ reason });
      logger.info({ requestId, status, reason }, 'refused before it was a request');
    },
    onCut: (reason) => metrics.connectionsCut.inc({ reason }),
    onDropped: () => {
      metrics.connectionsDropped.inc();
      noteRefusal();
    },
  };
}

/** For the links to Redis. */
export function redisCommandHook(metrics: Metrics): NonNullable<RedisLinkOptions['onCommand']> {
  return (role, outcome, seconds) => {
    if (outcome !== 'unsent') metrics.redisCommandDurations.observe({ role }, seconds);
    if (outcome !== 'answered') metrics.redisCommandFailures.inc({ role, reason: outcome });
  };
}

/** Methods are a caller's choice, so all but the two that the API has are one. */
function methodLabel(method: string): string {
  return method === 'GET' || method === 'HEAD' ? method : 'OTHER';
}
