/** What the rooms report of themselves, turned into log lines, metrics and the state of the store. */
import { type CacheCounters, createCacheCounters } from './admin/cache-counts.ts';
import type { Dependency } from './admin/readiness.ts';
import type { Metrics } from './admin/metrics.ts';
import type { CacheHooks } from './cache/hooks.ts';
import type { PublicAppHooks } from './http/app.ts';
import type { RequestReport } from './http/middleware/request-context.ts';
import type { Logger } from './log/logger.ts';
import type { HttpStoreHooks, StoreCall } from './upstream/http-store.ts';

export interface Observer {
  readonly store: HttpStoreHooks;
  readonly cache: CacheHooks;
  readonly http: PublicAppHooks;
  readonly cacheCounters: Pick<CacheCounters, 'of'>;
  /** By the outcome of the last real call: nothing is ever sent to the store just to see whether it is there (C7). */
  storeHealth(): Dependency;
}

const FAILURES: ReadonlySet<StoreCall['outcome']> = new Set([
  'timeout',
  'unreachable',
  'refused',
  'garbled',
  'overloaded',
] satisfies StoreCall['outcome'][]);

export function createObserver(logger: Logger, metrics: Metrics): Observer {
  const cacheCounters = createCacheCounters();
  let lastCall: StoreCall | null = null;
  const onCall = (call: StoreCall): void => {
    if (call.resource !== 'apiKey') {
      metrics.storeCall({ resource: call.resource, outcome: call.outcome, seconds: call.durationMs / 1000 });
      // What the gateway held back was no call; what is absent is read as `notFound`.
      if (call.outcome !== 'overloaded') {
        cacheCounters.countStoreCall(call.outcome === 'absent' ? 'notFound' : call.resource);
      }
    }
    // What a caller has given up says nothing about the store.
    if (call.outcome === 'aborted') return;
    logTurn(logger, lastCall, call);
    lastCall = call;
    logger.debug({ ...call }, 'store call');
  };
  return {
    store: {
      onCall,
      onRecordLeftOut: (left) => {
        if (left.resource !== 'apiKey') metrics.recordLeftOut({ resource: left.resource });
        logger.warn(
          { ...left },
          'record left out of a list: a required member is missing, of the wrong type or foreign',
        );
      },
    },
    cache: {
      onRead: (read) => {
        const { class: cacheClass, outcome, tier, missReason } = read;
        cacheCounters.countRead(read);
        if (outcome !== 'failed') metrics.cacheRead({ class: cacheClass, outcome, tier });
        if (missReason !== null) metrics.cacheMiss({ class: cacheClass, reason: missReason });
      },
      // Failures of the store are told as they begin and end; this one is about a record, and nothing else tells of it.
      onRefreshFailed: ({ class: cacheClass, error }) => {
        if (error.kind === 'malformed')
          logger.warn({ class: cacheClass, err: error }, 'a stored answer was not renewed');
      },
    },
    http: {
      onRequest: (report) => {
        metrics.requestFinished({
          ...report,
          surface: report.surface === 'other' ? 'docs' : report.surface,
          seconds: report.durationMs / 1000,
        });
        logRequest(logger, report);
      },
      onAuthenticationRefused: (reason) => metrics.authenticationFailed({ reason }),
      onQuotaRefused: (window) => metrics.quotaRefused({ window }),
    },
    cacheCounters,
    storeHealth: () => healthOf(lastCall),
  };
}

/** One line when the store goes down and one when it is back, not one a call. */
function logTurn(logger: Logger, last: StoreCall | null, call: StoreCall): void {
  const wasFailing = last !== null && FAILURES.has(last.outcome);
  const isFailing = FAILURES.has(call.outcome);
  const { resource, outcome, status, requestId } = call;
  if (isFailing && !wasFailing) logger.warn({ resource, outcome, status, requestId }, 'the store is failing');
  if (!isFailing && wasFailing) logger.info({ resource, requestId }, 'the store answers again');
}

function healthOf(last: StoreCall | null): Dependency {
  if (last === null) return { name: 'store', status: 'unknown', detail: 'not asked yet' };
  const status = FAILURES.has(last.outcome) ? 'degraded' : 'ok';
  const code = last.status === null ? '' : ` (status ${last.status})`;
  return { name: 'store', status, detail: `last call: ${last.outcome}${code}` };
}

/** One line a request. Never a path, a query string or a credential (K2). */
function logRequest(logger: Logger, report: RequestReport): void {
  const { requestId, keyId, surface, route, method, status, cache, aborted, failure } = report;
  const durationMs = Math.round(report.durationMs * 1000) / 1000;
  const line = { requestId, keyId, surface, route, method, status, durationMs, cache, ...(aborted && { aborted }) };
  if (status >= 500) logger.error({ ...line, err: failure }, 'request');
  else logger.info(line, 'request');
}
