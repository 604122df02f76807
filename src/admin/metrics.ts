/**
 * What the gateway counts, in Prometheus' terms. The other rooms know nothing of this: they are handed the recorders as
 * hooks. No key, id or workspace is ever a label.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { MissReason } from '../cache/hooks.ts';
import type { ReadOutcome } from '../cache/reader.ts';
import type { CacheClass } from '../cache/times.ts';
import type { WindowName } from '../quota/quota.ts';
import type { StoreResource } from '../upstream/question.ts';
import type { StoreAnswer, StoreErrorKind } from '../upstream/store.ts';
import { boundedLabel } from './bounded-label.ts';

export interface MetricsSource {
  /** The Content-Type of what `render` gives. */
  readonly contentType: string;
  /** The Prometheus text exposition format. */
  render(): Promise<string>;
}

export interface FinishedRequest {
  readonly surface: 'v1' | 'v2' | 'docs';
  /** The path's template; null where no endpoint matched. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
  /** How the read was answered; null where none was made. */
  readonly cache: ReadOutcome | null;
}

export type StoreOutcome = StoreAnswer<unknown>['kind'] | StoreErrorKind;

/** Each is to be called once for each event; none ever throws. */
export interface MetricRecorders {
  requestFinished(request: FinishedRequest): void;
  storeCall(call: { readonly resource: StoreResource; readonly outcome: StoreOutcome; readonly seconds: number }): void;
  /** One record of a list left out because it isn't whole. */
  recordLeftOut(left: { readonly resource: StoreResource }): void;
  /** `reason` is one of a fixed few. */
  authenticationFailed(failure: { readonly reason: string }): void;
  quotaRefused(refusal: { readonly window: WindowName }): void;
  /** `failed`: the store failed and there was nothing to serve. */
  cacheRead(read: {
    readonly class: CacheClass;
    readonly outcome: ReadOutcome | 'failed';
    readonly tier: 'memory' | 'redis' | null;
  }): void;
  cacheMiss(miss: { readonly class: CacheClass; readonly reason: MissReason }): void;
}

export interface Metrics extends MetricsSource, MetricRecorders {
  /**
   * Forgets all metrics. Two watchers of the process's own metrics can't be stopped (prom-client has no way to); neither
   * keeps the process alive.
   */
  close(): void;
}

/** From half a millisecond, a hit in memory, to the longest a store call may take. */
const SECONDS_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const NONE = 'none';
/** The API has about a dozen routes. */
const MOST_ROUTES = 40;
const MOST_REASONS = 16;

/** Metrics in a registry of their own, so that several gateways can live in one process. `version` is the gateway's. */
export function createMetrics({ version }: { readonly version: string }): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const build = new Gauge({
    name: 'evalgate_build_info',
    help: 'Always 1; the labels tell which evalgate runs on which Node.js.',
    labelNames: ['version', 'node'],
    registers: [registry],
  });
  build.set({ version, node: process.versions.node }, 1);
  return {
    contentType: registry.contentType,
    render: () => registry.metrics(),
    close: () => registry.clear(),
    ...requestRecorders(registry),
    ...storeRecorders(registry),
    ...cacheRecorders(registry),
  };
}

type RequestRecorders = Pick<MetricRecorders, 'requestFinished' | 'authenticationFailed' | 'quotaRefused'>;

function requestRecorders(registry: Registry): RequestRecorders {
  const registers = [registry];
  const requests = new Counter({
    name: 'evalgate_http_requests_total',
    help: 'Requests answered on the public listener.',
    labelNames: ['surface', 'route', 'method', 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'evalgate_http_request_duration_seconds',
    help: 'Time from the arrival of a request to the end of its answer, by how the cache answered.',
    labelNames: ['surface', 'route', 'cache'],
    buckets: SECONDS_BUCKETS,
    registers,
  });
  const failures = new Counter({
    name: 'evalgate_authentication_failures_total',
    help: 'Requests refused because of their API key or its lack.',
    labelNames: ['reason'],
    registers,
  });
  const refusals = new Counter({
    name: 'evalgate_quota_refusals_total',
    help: 'Requests refused with 429, by the window that was full.',
    labelNames: ['window'],
    registers,
  });
  const routeLabel = boundedLabel(MOST_ROUTES);
  const reasonLabel = boundedLabel(MOST_REASONS);
  return {
    requestFinished: (request) => {
      const { surface, status, seconds } = request;
      const route = routeLabel(request.route ?? 'unmatched');
      requests.inc({ surface, route, method: methodLabel(request.method), status: String(status) });
      durations.observe({ surface, route, cache: request.cache ?? NONE }, seconds);
    },
    authenticationFailed: ({ reason }) => failures.inc({ reason: reasonLabel(reason) }),
    quotaRefused: ({ window }) => refusals.inc({ window }),
  };
}

function storeRecorders(registry: Registry): Pick<MetricRecorders, 'storeCall' | 'recordLeftOut'> {
  const registers = [registry];
  const calls = new Counter({
    name: 'evalgate_store_calls_total',
    help: 'Calls to the evaluation store, by what came of them.',
    labelNames: ['resource', 'outcome'],
    registers,
  });
  const durations = new Histogram({
    name: 'evalgate_store_call_duration_seconds',
    help: 'Time that calls to the evaluation store took, failed ones too.',
    labelNames: ['resource'],
    buckets: SECONDS_BUCKETS,
    registers,
  });
  const leftOut = new Counter({
    name: 'evalgate_store_records_left_out_total',
    help: 'Records of lists that were left out because the store sent them incomplete or malformed.',
    labelNames: ['resource'],
    registers,
  });
  return {
    storeCall: ({ resource, outcome, seconds }) => {
      calls.inc({ resource, outcome });
      durations.observe({ resource }, seconds);
    },
    recordLeftOut: ({ resource }) => leftOut.inc({ resource }),
  };
}

function cacheRecorders(registry: Registry): Pick<MetricRecorders, 'cacheRead' | 'cacheMiss'> {
  const registers = [registry];
  const reads = new Counter({
    name: 'evalgate_cache_reads_total',
    help: 'Reads through the cache, by how they were answered and where the entry was found.',
    labelNames: ['class', 'outcome', 'tier'],
    registers,
  });
  const misses = new Counter({
    name: 'evalgate_cache_misses_total',
    help: 'Reads that the cache could not answer, by why.',
    labelNames: ['class', 'reason'],
    registers,
  });
  return {
    cacheRead: (read) => reads.inc({ class: read.class, outcome: read.outcome, tier: read.tier ?? NONE }),
    cacheMiss: (miss) => misses.inc({ class: miss.class, reason: miss.reason }),
  };
}

/** Methods are a caller's choice, so all but the two that the API has are one. */
function methodLabel(method: string): string {
  return method === 'GET' || method === 'HEAD' ? method : 'OTHER';
}
