/**
 * The gateway's metrics, for Prometheus. Each is declared here once and updated where something is reported (`hooks.ts`);
 * gauges that are read at a scrape are in `gauges.ts`. No key, id or workspace is ever a label.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** From half a millisecond, a hit in memory, to the longest a store call may take. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** From what a Redis next door takes to the longest that a command waits. */
const REDIS_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
/** From a second to the week for which the longest-lived answers may stand in for a store that fails. */
const AGE_SECONDS = [1, 5, 15, 30, 60, 300, 900, 3600, 21_600, 86_400, 259_200, 604_800];
const EVENT_LOOP_PRECISION_MS = 10;

/** The admin listener serves it. */
export interface MetricsSource {
  /** The Content-Type of what `render` returns. */
  readonly contentType: string;
  /** The Prometheus text exposition format. */
  render(): Promise<string>;
}

/** The metrics of one gateway, in a registry of their own: several gateways can live in one process. */
export class Metrics {
  readonly registry = new Registry();
  readonly #registers = [this.registry];
  readonly #collections: PerformanceObserver;

  readonly authenticationFailures = new Counter({
    name: 'evalgate_authentication_failures_total',
    help: 'Requests refused because of their API key or its lack.',
    labelNames: ['reason'],
    registers: this.#registers,
  });
  readonly quotaRefusals = new Counter({
    name: 'evalgate_quota_refusals_total',
    help: 'Requests refused with 429, by the window that was full.',
    labelNames: ['window'],
    registers: this.#registers,
  });
  readonly requestsShed = new Counter({
    name: 'evalgate_http_requests_shed_total',
    help: 'Requests refused at once because `server.maxInFlight` were under way.',
    registers: this.#registers,
  });
  readonly unreadableRequests = new Counter({
    name: 'evalgate_http_unreadable_requests_total',
    help: 'Answers to what never became a request, by why: too-large, too-slow, no-http. They are in no other count.',
    labelNames: ['reason'],
    registers: this.#registers,
  });
  readonly connectionsDropped = new Counter({
    name: 'evalgate_http_connections_dropped_total',
    help: 'Connections closed as they came because `server.maxConnections` were open.',
    registers: this.#registers,
  });
  readonly requests = new Counter({
    name: 'evalgate_http_requests_total',
    help: 'Requests answered on the public listener.',
    labelNames: ['surface', 'route', 'method', 'status'],
    registers: this.#registers,
  });
  readonly requestDurations = new Histogram({
    name: 'evalgate_http_request_duration_seconds',
    help: 'Time from the arrival of a request to the end of its answer, by how the cache answered.',
    labelNames: ['surface', 'route', 'cache'],
    buckets: SECONDS,
    registers: this.#registers,
  });
  readonly storeCalls = new Counter({
    name: 'evalgate_store_calls_total',
    help: 'Calls to the evaluation store, by what came of them.',
    labelNames: ['resource', 'outcome'],
    registers: this.#registers,
  });
  readonly storeCallDurations = new Histogram({
    name: 'evalgate_store_call_duration_seconds',
    help: 'Time that calls to the evaluation store took, failed ones too.',
    labelNames: ['resource'],
    buckets: SECONDS,
    registers: this.#registers,
  });
  readonly recordsLeftOut = new Counter({
    name: 'evalgate_store_records_left_out_total',
    help: 'Records of lists that were left out because the store sent them incomplete or malformed.',
    labelNames: ['resource'],
    registers: this.#registers,
  });
  readonly cacheReads = new Counter({
    name: 'evalgate_cache_reads_total',
    help: 'Reads through the cache, by how they were answered and where the entry was found.',
    labelNames: ['class', 'outcome', 'tier'],
    registers: this.#registers,
  });
  readonly cacheMisses = new Counter({
    name: 'evalgate_cache_misses_total',
    help: 'Reads that the cache could not answer, by why.',
    labelNames: ['class', 'reason'],
    registers: this.#registers,
  });
  readonly entryAges = new Histogram({
    name: 'evalgate_cache_entry_age_seconds',
    help: 'Age of the answers that were served, since the store was asked for them, near 0 for those that were just fetched.',
    labelNames: ['class'],
    buckets: AGE_SECONDS,
    registers: this.#registers,
  });
  readonly leaseWaits = new Histogram({
    name: 'evalgate_cache_lease_wait_seconds',
    help: "Time that reads waited for another process's call to the store, by how the wait ended: stored (its answer came), failed (its failure came), taken-over (it came to nothing), timeout.",
    labelNames: ['class', 'end'],
    buckets: SECONDS,
    registers: this.#registers,
  });
  readonly storeCallsRefused = new Counter({
    name: 'evalgate_store_calls_refused_total',
    help: 'Calls to the evaluation store that were not sent, by why: queue-full, queue-timeout, or store-failing (the breaker is open).',
    labelNames: ['reason'],
    registers: this.#registers,
  });
  readonly storeRetries = new Counter({
    name: 'evalgate_store_retries_total',
    help: 'Repetitions of calls to the evaluation store, by what came of them; over-budget ones were not sent.',
    labelNames: ['outcome'],
    registers: this.#registers,
  });
  readonly storeQueueWaits = new Histogram({
    name: 'evalgate_store_queue_seconds',
    help: 'Time that calls to the evaluation store waited for their turn before they were sent.',
    buckets: SECONDS,
    registers: this.#registers,
  });
  readonly redisCommandDurations = new Histogram({
    name: 'evalgate_redis_command_duration_seconds',
    help: 'Time that commands to Redis took as this process saw it, its own delays included; also of those that failed, but not of those that could not be sent.',
    labelNames: ['role'],
    buckets: REDIS_SECONDS,
    registers: this.#registers,
  });
  readonly redisCommandFailures = new Counter({
    name: 'evalgate_redis_command_failures_total',
    help: 'Commands to Redis that failed: refused by it, without an answer in time (timeout), cut off before the answer (lost), or without a connection to send them on (unsent).',
    labelNames: ['role', 'reason'],
    registers: this.#registers,
  });
  readonly configReloads = new Counter({
    name: 'evalgate_config_reloads_total',
    help: 'Times that the configuration was read again, by result: success, or failure, which leaves the old one in force.',
    labelNames: ['result'],
    registers: this.#registers,
  });
  readonly configReadAt = new Gauge({
    name: 'evalgate_config_last_success_timestamp_seconds',
    help: 'When the configuration in force was read, Unix time.',
    aggregator: 'min',
    registers: this.#registers,
  });

  /** `version` is the gateway's. */
  constructor(version: string) {
    for (const result of ['success', 'failure'] as const) this.configReloads.inc({ result }, 0);
    const build = new Gauge({
      name: 'evalgate_build_info',
      help: 'Always 1; the labels tell which evalgate runs on which Node.js.',
      labelNames: ['version', 'node'],
      aggregator: 'first',
      registers: this.#registers,
    });
    build.set({ version, node: process.versions.node }, 1);
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
    this.#collections = gcTimeRatio(this.registry);
  }

  get source(): MetricsSource {
    return { contentType: this.registry.contentType, render: () => this.registry.metrics() };
  }

  /**
   * Forgets all metrics. prom-client's watchers of the event loop and of garbage collection cannot be stopped; neither
   * keeps the process alive.
   */
  close(): void {
    this.#collections.disconnect();
    this.registry.clear();
  }
}

/** Registers the share of the time between two scrapes that went into collecting garbage. */
function gcTimeRatio(registry: Registry): PerformanceObserver {
  let collectingMs = 0;
  let scrapedAtMs = performance.now();
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collectingMs += duration;
  });
  observer.observe({ entryTypes: ['gc'] });
  const ratio: Gauge = new Gauge({
    name: 'evalgate_gc_time_ratio',
    help: 'Share of the time since the scrape before that went into collecting garbage.',
    aggregator: 'average',
    registers: [registry],
    collect: () => {
      const nowMs = performance.now();
      const sinceMs = nowMs - scrapedAtMs;
      ratio.set(sinceMs > 0 ? Math.min(1, collectingMs / sinceMs) : 0);
      scrapedAtMs = nowMs;
      collectingMs = 0;
    },
  });
  return observer;
}

/**
 * The value itself for the first `most` distinct ones, `other` for any further. Each value of a label is a time series that
 * is kept for good, so a caller that passes an id by mistake must not fill the memory.
 */
export function boundedLabel(most: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= most) return 'other';
    known.add(value);
    return value;
  };
}
