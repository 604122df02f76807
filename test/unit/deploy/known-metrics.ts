/** Which metrics, labels and values of labels there are: what the deployed queries may name. */
import type { MetricDescription } from '../../../src/admin/metrics/describe.ts';
import { createMetrics } from '../../../src/admin/metrics/metrics.ts';
import type { StateReadings } from '../../../src/admin/metrics/readings.ts';
import type { Readiness } from '../../../src/admin/readiness.ts';
import type { FinishedRequest, StoreOutcome } from '../../../src/admin/metrics/recorders.ts';
import type { ReadOutcome } from '../../../src/cache/reader.ts';
import type { Hearing } from '../../../src/cache/redis-hearing.ts';
import type { AuthFailure } from '../../../src/keys/authenticate.ts';
import type { RedisRole } from '../../../src/redis/connection.ts';
import type { GuardRefusal } from '../../../src/upstream/guard/hooks.ts';
import { readRules } from './files.ts';
import type { Query, Selector } from './promql.ts';

/** Prometheus puts them on whatever it scrapes. */
const TARGET_LABELS = ['job', 'instance'] as const;

/** What is matched otherwise: statuses by their first digit, dependencies as a gateway tells of them. */
const FREE_LABELS: readonly string[] = [...TARGET_LABELS, 'status', 'dependency', 'alertname'];

/** The values that queries go by, held against the types of the code. */
const LABEL_VALUES: Readonly<Record<string, readonly string[]>> = {
  'evalgate_cache_reads_total outcome': ['hit', 'stale-while-revalidate'] satisfies ReadOutcome[],
  'evalgate_http_request_duration_seconds cache': ['hit'] satisfies FinishedRequest['cache'][],
  'evalgate_readiness status': ['ready'] satisfies Readiness['status'][],
  'evalgate_store_calls_total outcome': ['timeout', 'unreachable', 'refused', 'garbled'] satisfies StoreOutcome[],
  'evalgate_store_calls_refused_total reason': ['queue-full', 'queue-timeout'] satisfies GuardRefusal[],
  'evalgate_redis_hearing state': ['hearing'] satisfies Hearing[],
  'evalgate_redis_command_duration_seconds role': ['state'] satisfies RedisRole[],
  'evalgate_redis_command_failures_total role': ['state'] satisfies RedisRole[],
  'evalgate_http_connections listener': ['public'] satisfies (keyof ReturnType<StateReadings['connections']>)[],
  'evalgate_redis_memory_used_bytes role': ['state'] satisfies RedisRole[],
  'evalgate_redis_memory_limit_bytes role': ['state'] satisfies RedisRole[],
  'evalgate_authentication_failures_total reason': [
    'malformed',
    'unknown',
    'too-many-failures',
  ] satisfies AuthFailure[],
  'evalgate_config_reloads_total result': ['failure'],
  'evalgate_workers state': ['answered', 'wanted'],
  'ALERTS alertstate': ['firing'],
};

export interface KnownMetrics {
  /** Metrics and labels of the query that are not there, in words; none where all are. */
  unknownIn(query: Query): readonly string[];
  readonly names: readonly string[];
}

/** One that the registry does not know of. */
function made(name: string, labels: readonly string[] = []): MetricDescription {
  return { name, type: 'gauge', labels, help: '' };
}

export async function knownMetrics(): Promise<KnownMetrics> {
  const metrics = createMetrics({ version: '1.2.3' });
  const described = await metrics.describe();
  metrics.close();
  const recorded = readRules().flatMap(({ record }) => (record === undefined ? [] : [made(record)]));
  // Made where workers are put together, and by Prometheus itself.
  const others = [made('evalgate_workers', ['state']), made('up'), made('ALERTS', ['alertname', 'alertstate'])];
  const all = new Map([...described, ...recorded, ...others].map((metric) => [metric.name, metric]));
  return { names: [...all.keys()], unknownIn: (query) => unknownIn(all, query) };
}

function unknownIn(all: ReadonlyMap<string, MetricDescription>, { selectors, groupings }: Query): readonly string[] {
  const faults = selectors.flatMap((selector) => faultsOf(all, selector));
  const grouped = groupings.flatMap(({ labels, metrics }) =>
    metrics.flatMap((name) =>
      labels.filter((label) => !labelsOf(all, name).includes(label)).map((label) => `${name} has no ${label}`),
    ),
  );
  return [...faults, ...grouped];
}

function faultsOf(all: ReadonlyMap<string, MetricDescription>, { name, matchers }: Selector): readonly string[] {
  if (!all.has(baseOf(all, name))) return [`there is no ${name}`];
  const labels = labelsOf(all, name);
  return matchers.flatMap(({ label, value }) => {
    if (!labels.includes(label)) return [`${name} has no ${label}`];
    const values = LABEL_VALUES[`${baseOf(all, name)} ${label}`] ?? (FREE_LABELS.includes(label) ? null : []);
    const wrong = value.split('|').filter((one) => values !== null && !values.includes(one));
    return wrong.map((one) => `${name} has no ${label} "${one}"`);
  });
}

function labelsOf(all: ReadonlyMap<string, MetricDescription>, name: string): readonly string[] {
  const bounds = name.endsWith('_bucket') ? ['le'] : [];
  // What a recording rule leaves has none of its own.
  return [...TARGET_LABELS, ...bounds, ...(all.get(baseOf(all, name))?.labels ?? [])];
}

/** Of a histogram's three, the histogram. */
function baseOf(all: ReadonlyMap<string, MetricDescription>, name: string): string {
  return all.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '');
}
