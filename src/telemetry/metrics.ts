/**
 * The gateway's metrics, for Prometheus. Counters and histograms are updated where something is reported (`hooks.ts`);
 * gauges are read at a scrape. No key, id or workspace is ever a label.
 */
import { collectDefaultMetrics, Counter, Gauge, type GaugeConfiguration, Histogram, Registry } from 'prom-client';
import type { ObjectiveCounts } from './consumers.ts';
import { METRIC_HELP } from './metric-help.ts';
import type { OwnReadiness, Readiness } from './readiness.ts';
import type { Changes } from '../cache/changes.ts';
import type { MemoryTier } from '../cache/memory-tier.ts';
import { UNDECRYPTABLE_REASONS } from '../cache/redis/encryption.ts';
import type { Config } from '../config/config.ts';
import { expectedKeys } from '../keys/key.ts';
import type { KeyDirectory } from '../keys/registry.ts';
import { CONNECTIVITIES } from '../redis/connectivity.ts';
import type { Instances } from '../redis/instances.ts';
import { CUT_REASONS } from '../server/connections.ts';
import type { Listener } from '../server/server.ts';
import type { AnswerMemory } from '../upstream/answer-memory.ts';
import type { Guard } from '../upstream/guard.ts';
import type { MaintenanceWatch } from '../upstream/maintenance.ts';
import type { RedisMemory } from '../redis/memory.ts';
import type { RedisHealth } from './redis-health.ts';

/** From half a millisecond, a hit in memory, to the longest a store call may take. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** From what a Redis next door takes to the longest that a command waits. */
const REDIS_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
/** From a second to the week for which the longest-lived answers may stand in for a store that fails. */
const AGE_SECONDS = [1, 5, 15, 30, 60, 300, 900, 3600, 21_600, 86_400, 259_200, 604_800];
const EVENT_LOOP_PRECISION_MS = 50;
const STATUSES = ['starting', 'ready', 'draining'] as const satisfies readonly Readiness['status'][];

type Name = keyof typeof METRIC_HELP;

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
  readonly authenticationFailures = this.#counter('evalgate_authentication_failures_total', 'reason');
  readonly quotaRefusals = this.#counter('evalgate_quota_refusals_total', 'window');
  readonly requestsShed = this.#counter('evalgate_http_requests_shed_total');
  readonly unreadableRequests = this.#counter('evalgate_http_unreadable_requests_total', 'reason');
  readonly connectionsCut = this.#counter('evalgate_http_connections_cut_total', 'reason');
  readonly connectionsDropped = this.#counter('evalgate_http_connections_dropped_total');
  readonly requests = this.#counter('evalgate_http_requests_total', 'surface', 'route', 'method', 'status');
  readonly knownKeysRefused = this.#counter('evalgate_known_keys_refused_total');
  readonly requestDurations = this.#histogram(
    'evalgate_http_request_duration_seconds',
    SECONDS,
    'surface',
    'route',
    'cache',
  );
  readonly storeCalls = this.#counter('evalgate_store_calls_total', 'resource', 'outcome');
  readonly storeCallDurations = this.#histogram('evalgate_store_call_duration_seconds', SECONDS, 'resource');
  readonly storeCallsRefused = this.#counter('evalgate_store_calls_refused_total', 'reason');
  readonly storeRetries = this.#counter('evalgate_store_retries_total', 'outcome');
  readonly storeQueueWaits = this.#histogram('evalgate_store_queue_seconds', SECONDS);
  readonly recordsListed = this.#counter('evalgate_store_records_listed_total', 'resource');
  readonly recordsLeftOut = this.#counter('evalgate_store_records_left_out_total', 'resource');
  readonly cacheReads = this.#counter('evalgate_cache_reads_total', 'class', 'outcome', 'tier');
  readonly cacheMisses = this.#counter('evalgate_cache_misses_total', 'class', 'reason');
  readonly cacheFallbacks = this.#counter('evalgate_cache_fallbacks_total', 'class', 'outcome', 'reason');
  readonly undecryptable = this.#counter('evalgate_cache_undecryptable_total', 'reason');
  readonly entryAges = this.#histogram('evalgate_cache_entry_age_seconds', AGE_SECONDS, 'class');
  readonly leaseWaits = this.#histogram('evalgate_cache_lease_wait_seconds', SECONDS, 'class', 'end');
  readonly redisCommandDurations = this.#histogram('evalgate_redis_command_duration_seconds', REDIS_SECONDS, 'role');
  readonly redisCommandFailures = this.#counter('evalgate_redis_command_failures_total', 'role', 'reason');
  readonly configReloads = this.#counter('evalgate_config_reloads_total', 'result');
  readonly configIsRead = this.#gauge('evalgate_config_last_reload_successful', { aggregator: 'min' });
  readonly configReadAt = this.#gauge('evalgate_config_last_success_timestamp_seconds', { aggregator: 'min' });

  /** `droppedLines`: how many lines of the log were dropped by now. */
  constructor(version: string, droppedLines: () => number = () => 0) {
    for (const result of ['success', 'failure']) this.configReloads.inc({ result }, 0);
    for (const reason of UNDECRYPTABLE_REASONS) this.undecryptable.inc({ reason }, 0);
    for (const reason of CUT_REASONS) this.connectionsCut.inc({ reason }, 0);
    const build = this.#gauge('evalgate_build_info', { aggregator: 'first', labelNames: ['version', 'node'] });
    build.set({ version, node: process.versions.node }, 1);
    countDroppedLines(this.registry, droppedLines);
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
    this.#addGcTimeRatio();
  }

  /** Adds the values that are read at each scrape. A value that is null or not in the list has no sample. */
  addGauges(sources: GaugeSources): void {
    const { readiness, listeners, store, redis, limits } = sources;
    const { memory } = sources.cache;
    const { registry } = sources.keys;
    const guard = () => store.guard.status();
    const answers = () => store.answerMemory.load();
    this.#by('status', 'evalgate_readiness', 'sum', () => {
      const now = readiness.now().status;
      return STATUSES.map((status) => [status, status === now]);
    });
    this.#by('dependency', 'evalgate_dependency_up', 'min', () =>
      readiness
        .now()
        .dependencies.flatMap(({ name, status }) => (status === 'unknown' ? [] : [[name, status === 'ok']])),
    );
    this.#one('evalgate_maintenance_active', 'max', () => sources.maintenance.current() !== null);
    this.#one('evalgate_fleet_processes', 'max', () => sources.instances.count());
    this.#by('listener', 'evalgate_http_connections', 'sum', () =>
      (['public', 'admin'] as const).map((name) => [name, listeners[name].connections()]),
    );
    this.#one('evalgate_http_unsent_bytes', 'sum', () => listeners.public.unsent.bytes);
    this.#by('tier', 'evalgate_cache_entries', 'sum', () => [['memory', memory.usage().entries]]);
    this.#by('tier', 'evalgate_cache_bytes', 'sum', () => [['memory', memory.usage().bytes]]);
    this.#by('tier', 'evalgate_cache_limit_bytes', 'sum', () => [['memory', memory.maxBytes]]);
    this.#one('evalgate_cache_unstable_calls', 'max', () => sources.cache.changes.unstable().length);
    this.#one('evalgate_store_answers_bytes', 'sum', () => answers().bytes);
    this.#one('evalgate_store_answers_waiting', 'sum', () => answers().waiting);
    this.#one('evalgate_store_breaker_open', 'max', () => guard().isOpen);
    this.#one('evalgate_store_breaker_open_keys', 'max', () => guard().openKeys);
    this.#one('evalgate_store_calls_in_flight', 'sum', () => guard().inFlight);
    this.#one('evalgate_store_concurrency_limit', 'sum', () => guard().limit);
    this.#one('evalgate_store_calls_queued', 'sum', () => guard().queued);
    this.#one('evalgate_keys', 'max', () => registry.census().known);
    this.#one('evalgate_keys_lost', 'max', () => {
      const { known, loss } = registry.census();
      return loss === null || loss.isAcknowledged ? 0 : expectedKeys(loss) - (known ?? 0);
    });
    this.#addRedis(redis, limits);
  }

  #addRedis(redis: RedisSource | null, { redisBytes }: GaugeSources['limits']): void {
    const links = () => redis?.links() ?? [];
    const ofMemory = async (valueOf: (memory: RedisMemory) => number | null): Promise<Samples> =>
      ((await redis?.memory()) ?? []).flatMap((memoryOfRole) => {
        const value = valueOf(memoryOfRole);
        return value === null ? [] : [[memoryOfRole.role, value]];
      });

    this.#by('role', 'evalgate_redis_up', 'min', () => links().map(({ role, isUp }) => [role, isUp]));
    const hearing = this.#gauge('evalgate_redis_hearing', {
      aggregator: 'sum',
      labelNames: ['role', 'state'],
      collect: () => {
        for (const { role, connectivity } of links()) {
          for (const state of CONNECTIVITIES) hearing.set({ role, state }, Number(state === connectivity));
        }
      },
    });
    this.#one('evalgate_quota_exact', 'min', () => redis && redis.isQuotaExact);
    this.#by('reason', 'evalgate_redis_refuses_changes', 'max', () =>
      redis === null ? [] : (['full', 'read-only'] as const).map((reason) => [reason, redis.refusesChanges === reason]),
    );
    this.#addRefusals(() => redis?.refusals() ?? []);
    this.#one('evalgate_redis_shared', 'max', () => redis && redis.isShared());
    this.#one('evalgate_redis_cache_budget_bytes', 'max', () => redis && (redisBytes ?? 0));
    this.#one('evalgate_redis_cache_over_budget', 'max', () => redis && redis.isCacheOverBudget);
    this.#by('role', 'evalgate_redis_memory_used_bytes', 'max', () => ofMemory(({ usedBytes }) => usedBytes));
    this.#by('role', 'evalgate_redis_memory_limit_bytes', 'max', () => ofMemory(({ maxBytes }) => maxBytes));
    this.#by('role', 'evalgate_redis_keys', 'max', () => ofMemory(({ keys }) => keys));
  }

  /** Adds whether the store is down; null before it is known. */
  addStoreHealth(isDown: () => boolean | null): void {
    this.#one('evalgate_store_down', 'max', isDown);
  }

  /** Adds how many changes the store has announced here, and when to any process; null for none yet. */
  addChanges(taken: () => number, lastAtMs: () => number | null): void {
    readCount(this.registry, 'evalgate_changes_announced_total', taken);
    this.#one('evalgate_changes_last_announced_timestamp_seconds', 'max', () => {
      const atMs = lastAtMs();
      return atMs === null ? null : atMs / 1000;
    });
  }

  /** Adds how the objectives are met, as `read` has it at each scrape. */
  addObjectives(read: () => readonly ObjectiveCounts[]): void {
    const each = (valueOf: (counts: ObjectiveCounts) => number) => (): Samples =>
      read().map((counts) => [counts.objective, valueOf(counts)]);
    this.#by(
      'objective',
      'evalgate_objective_budget_ratio',
      'max',
      each(({ budget }) => budget),
    );
    this.#readCounter(
      'evalgate_objective_requests_total',
      'objective',
      each(({ requests }) => requests),
    );
    this.#readCounter(
      'evalgate_objective_missed_total',
      'objective',
      each(({ missed }) => missed),
    );
  }

  /**
   * Forgets all metrics. prom-client's watchers of the event loop and of garbage collection cannot be stopped; neither
   * keeps the process alive.
   */
  close(): void {
    this.registry.clear();
  }

  #addRefusals(read: RedisHealth['refusals']): void {
    const gauge = this.#gauge('evalgate_redis_refusal', {
      aggregator: 'max',
      labelNames: ['role', 'reason', 'reply'],
      collect: () => {
        gauge.reset();
        for (const { role, refusal } of read()) {
          gauge.set({ role, reason: refusal?.kind ?? 'none', reply: refusal?.reply ?? '' }, Number(refusal !== null));
        }
      },
    });
  }

  #counter<L extends string>(name: Name, ...labelNames: readonly L[]): Counter<L> {
    return new Counter({ name, help: METRIC_HELP[name], labelNames, registers: [this.registry] });
  }

  /** One that is counted elsewhere, and read at each scrape. */
  #readCounter(name: Name, label: string, read: () => Samples): void {
    const counter = new Counter({
      name,
      help: METRIC_HELP[name],
      labelNames: [label],
      registers: [this.registry],
      collect: () => {
        counter.reset();
        for (const [value, sample] of read()) counter.inc({ [label]: value }, Number(sample));
      },
    });
  }

  #histogram<L extends string>(name: Name, buckets: number[], ...labelNames: readonly L[]): Histogram<L> {
    return new Histogram({ name, help: METRIC_HELP[name], buckets, labelNames, registers: [this.registry] });
  }

  #one(name: Name, aggregator: Aggregator, read: () => Value | Promise<Value>): void {
    const gauge = this.#gauge(name, {
      aggregator,
      collect: async () => {
        const value = await read();
        if (value === null) gauge.remove();
        else gauge.set(Number(value));
      },
    });
  }

  #by(label: string, name: Name, aggregator: Aggregator, read: () => Samples | Promise<Samples>): void {
    const gauge = this.#gauge(name, {
      aggregator,
      labelNames: [label],
      collect: async () => {
        const samples = await read();
        gauge.reset();
        for (const [value, sample] of samples) gauge.set({ [label]: value }, Number(sample));
      },
    });
  }

  #gauge<L extends string>(name: Name, options: Omit<GaugeConfiguration<L>, 'name' | 'help' | 'registers'>): Gauge<L> {
    return new Gauge({ name, help: METRIC_HELP[name], registers: [this.registry], ...options });
  }

  /** By prom-client's own histogram of the times that collections took. */
  #addGcTimeRatio(): void {
    const collections = this.registry.getSingleMetric('nodejs_gc_duration_seconds');
    let before = { collectingSeconds: 0, atMs: performance.now() };
    const ratio = this.#gauge('evalgate_gc_time_ratio', {
      aggregator: 'average',
      collect: async () => {
        const { values = [] } = (await collections?.get()) ?? {};
        const sums = values.filter((sample) => 'metricName' in sample && String(sample.metricName).endsWith('_sum'));
        const now = { collectingSeconds: sums.reduce((sum, { value }) => sum + value, 0), atMs: performance.now() };
        const seconds = (now.atMs - before.atMs) / 1000;
        ratio.set(seconds > 0 ? Math.min(1, (now.collectingSeconds - before.collectingSeconds) / seconds) : 0);
        before = now;
      },
    });
  }
}

/** Counts the lines of the log that were dropped, as `read` has them at each scrape. */
export function countDroppedLines(registry: Registry, read: () => number): void {
  readCount(registry, 'evalgate_log_lines_dropped_total', read);
}

/** One without labels that is counted elsewhere, and read at each scrape. */
function readCount(registry: Registry, name: Name, read: () => number): void {
  const counter = new Counter({
    name,
    help: METRIC_HELP[name],
    registers: [registry],
    collect: () => {
      counter.reset();
      counter.inc(read());
    },
  });
}

/** Read at each scrape. None of them may throw. */
type RedisSource = Pick<
  RedisHealth,
  'links' | 'memory' | 'isShared' | 'isQuotaExact' | 'isCacheOverBudget' | 'refusesChanges' | 'refusals'
>;

export interface GaugeSources {
  readonly readiness: Pick<OwnReadiness, 'now'>;
  readonly listeners: {
    readonly public: Pick<Listener, 'connections'> & { readonly unsent: { readonly bytes: number } };
    readonly admin: Pick<Listener, 'connections'>;
  };
  readonly maintenance: MaintenanceWatch;
  readonly cache: {
    readonly memory: Pick<MemoryTier, 'usage' | 'maxBytes'>;
    readonly changes: Pick<Changes, 'unstable'>;
  };
  readonly store: { readonly guard: Pick<Guard, 'status'>; readonly answerMemory: Pick<AnswerMemory, 'load'> };
  readonly instances: Pick<Instances, 'count'>;
  readonly keys: { readonly registry: Pick<KeyDirectory, 'census'> };
  /** Null for a gateway without Redis. */
  readonly redis: RedisSource | null;
  /** Most bytes of the cache in Redis; null for no limit. */
  readonly limits: Pick<Config['cache'], 'redisBytes'>;
}

type Value = number | boolean | null;
type Samples = readonly (readonly [label: string, value: number | boolean])[];
/** How the values of several workers are combined. */
type Aggregator = 'sum' | 'min' | 'max';
