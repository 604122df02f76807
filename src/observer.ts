/** What the rooms report of themselves, turned into log lines, metrics and the state of the store. */
import type { Metrics } from './admin/metrics/recorders.ts';
import type { Listener } from './telemetry/events.ts';
import { Capacity } from './capacity.ts';
import type { Clock } from './clock.ts';
import type { DependencyWatch } from './dependencies.ts';
import type { PublicAppHooks } from './http/app.ts';
import type { RequestReport } from './http/middleware/request-context.ts';
import { OverloadedError } from './http/middleware/load-shedding.ts';
import { RegistryUnavailableError } from './keys/key.ts';
import { type Logger, withoutRedaction } from './log/logger.ts';
import { logError } from './log/error.ts';
import { StoreHealth } from './store-health.ts';
import type { GuardHooks } from './upstream/guard.ts';
import { StoreError } from './upstream/store.ts';
import type { ListenerHooks } from './server.ts';
import type { StoreCall, StoreClientHooks } from './upstream/client.ts';

export interface Observer {
  readonly store: StoreClientHooks;
  readonly guard: GuardHooks;
  readonly cache: Listener;
  readonly http: PublicAppHooks;
  readonly listener: ListenerHooks;
}

export interface ObserverOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Gets the store, to be told of its turns. */
  readonly dependencies: DependencyWatch;
  readonly clock: Clock;
}

export function createObserver({ logger, metrics, dependencies, clock }: ObserverOptions): Observer {
  const health = new StoreHealth(clock);
  dependencies.add({ name: 'store', look: () => health.now() });
  const onCall = (call: StoreCall): void => {
    metrics.storeCall({ resource: call.resource, outcome: call.outcome, seconds: call.durationMs / 1000 });
    health.note(call);
    dependencies.look('store');
    logger.debug({ ...call }, 'store call');
  };
  return {
    store: {
      onCall,
      onRecordLeftOut: (left) => {
        metrics.recordLeftOut({ resource: left.resource });
        logger.warn(
          { ...left },
          'record left out of a list: a required member is missing, of the wrong type or foreign',
        );
      },
    },
    guard: guardHooks({ metrics, dependencies }, health),
    cache: {
      onRead: (read) => {
        const { class: cacheClass, outcome, tier, missReason, ageMs } = read;
        const ageSeconds = ageMs === null ? null : ageMs / 1000;
        metrics.cacheRead({ class: cacheClass, outcome, tier, ageSeconds });
        if (missReason !== null) metrics.cacheMiss({ class: cacheClass, reason: missReason });
      },
      onLeaseWait: ({ class: cacheClass, end, durationMs }) =>
        metrics.leaseWait({ class: cacheClass, end, seconds: durationMs / 1000 }),
      // Failures of the store are told as they begin and end; this one is about a record, and nothing else tells of it.
      onRefreshFailed: ({ class: cacheClass, error }) => {
        if (error.kind === 'malformed')
          logger.warn({ class: cacheClass, err: error }, 'a stored answer was not renewed');
      },
    },
    ...listeningHooks({ logger, metrics, dependencies, clock }),
  };
}

function listeningHooks({
  logger,
  metrics,
  dependencies,
  clock,
}: ObserverOptions): Pick<Observer, 'http' | 'listener'> {
  const logRequest = requestLogger(logger);
  const capacity = new Capacity(clock);
  dependencies.add({ name: 'capacity', look: () => capacity.now() });
  const noteShortage = (): void => {
    capacity.note();
    dependencies.look('capacity');
  };
  return {
    http: {
      onRequest: (report) => {
        metrics.requestFinished(report);
        logRequest(report);
      },
      onAuthenticationRefused: (reason) => metrics.authenticationFailed({ reason }),
      onQuotaRefused: (window) => metrics.quotaRefused({ window }),
      onShed: () => {
        metrics.requestShed();
        noteShortage();
      },
      onBroken: (error) => logger.debug({ err: error }, 'answer could not be sent'),
    },
    listener: {
      onClientError: ({ requestId, status, reason }) => {
        metrics.requestUnreadable({ reason });
        logger.info({ requestId, status, reason }, 'refused before it was a request');
      },
      onDropped: () => {
        metrics.connectionDropped();
        noteShortage();
      },
    },
  };
}

function guardHooks(
  { metrics, dependencies }: Pick<ObserverOptions, 'metrics' | 'dependencies'>,
  health: StoreHealth,
): GuardHooks {
  return {
    ...metrics.guard,
    onOpened: (error) => {
      health.holdBack(error);
      dependencies.look('store');
    },
    onClosed: () => {
      health.holdBack(null);
      dependencies.look('store');
    },
  };
}

/** One line per request. Never a path, a query string or a credential (K2). */
function requestLogger(logger: Logger): (report: RequestReport) => void {
  const requests = withoutRedaction(logger);
  return ({ requestId, keyId, surface, route, method, status, cache, traceId, aborted, failure, ...report }) => {
    const durationMs = Math.round(report.durationMs * 1000) / 1000;
    const line = { requestId, keyId, surface, route, method, status, durationMs, cache, traceId };
    // An outage is logged once, when it begins: its requests need no line above `info`.
    const isPartOfOutage =
      (failure instanceof StoreError && failure.isTransient) ||
      failure instanceof RegistryUnavailableError ||
      failure instanceof OverloadedError;
    if (status >= 500 && !isPartOfOutage) logger.error({ ...line, err: failure }, 'request');
    // Asked of the parent, whose level may change while the gateway runs.
    else if (!logger.isLevelEnabled('info')) return;
    else if (isPartOfOutage) requests.info({ ...line, failure: logError(failure).message }, 'request');
    else if (aborted) requests.info({ ...line, aborted }, 'request');
    else requests.info(line, 'request');
  };
}
