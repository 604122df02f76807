import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/admin/metrics/metrics.ts';
import type { Metrics } from '../../../src/admin/metrics/recorders.ts';

let metrics: Metrics;
beforeEach(() => {
  metrics = createMetrics({ version: '1.2.3' });
});
afterEach(() => metrics.close());

interface Family {
  help: string;
  type: string;
  readonly samples: Map<string, number>;
}

/** The text exposition format, as strictly as it is needed here: a line that is none of its kinds throws. */
function parse(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  const family = (name: string): Family => {
    const known = families.get(name) ?? { help: '', type: '', samples: new Map<string, number>() };
    families.set(name, known);
    return known;
  };
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, comment, of, rest] = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? [];
    if (of !== undefined && rest !== undefined) {
      family(of)[comment === 'HELP' ? 'help' : 'type'] = rest;
      continue;
    }
    const [, name, labels = '', value] =
      /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-z_]+="[^"\\]*",?)*\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined || !/^(?:-?[0-9.]+(?:e[+-]?[0-9]+)?|[+-]Inf|NaN)$/i.test(value ?? ''))
      throw new Error(`Not of the text format: ${line}`);
    const base = families.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
    if (!families.has(base)) throw new Error(`A sample without its family: ${line}`);
    family(base).samples.set(name + labels, Number(value));
  }
  return families;
}

async function samplesOf(name: string): Promise<Record<string, number>> {
  const family = parse(await metrics.render()).get(name);
  return Object.fromEntries(family?.samples ?? []);
}

test('the text is of the format that Prometheus reads, and every metric is explained', async () => {
  expect(metrics.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  const families = parse(await metrics.render());
  for (const { help, type } of families.values()) {
    expect(help.length).toBeGreaterThan(10);
    expect(['counter', 'gauge', 'histogram']).toContain(type);
  }
});

test('the process and its event loop are measured', async () => {
  const families = parse(await metrics.render());
  for (const name of [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'nodejs_eventloop_lag_p99_seconds',
  ]) {
    expect(families.get(name)?.samples.size).toBe(1);
  }
});

test('the build is told', async () => {
  expect(await samplesOf('evalgate_build_info')).toEqual({
    [`evalgate_build_info{version="1.2.3",node="${process.versions.node}"}`]: 1,
  });
});

describe('requests', () => {
  const read = { surface: 'v1', route: '/v1/workspaces/{workspaceId}/reports', status: 200, cache: 'hit' } as const;

  test('are counted by surface, route, method and status, and timed by route and cache', async () => {
    metrics.requestFinished({ ...read, method: 'GET', durationMs: 2 });
    metrics.requestFinished({ ...read, method: 'GET', durationMs: 4 });
    metrics.requestFinished({ ...read, method: 'HEAD', durationMs: 300, status: 500, cache: null });
    const route = 'surface="v1",route="/v1/workspaces/{workspaceId}/reports"';
    expect(await samplesOf('evalgate_http_requests_total')).toEqual({
      [`evalgate_http_requests_total{${route},method="GET",status="200"}`]: 2,
      [`evalgate_http_requests_total{${route},method="HEAD",status="500"}`]: 1,
    });
    const name = 'evalgate_http_request_duration_seconds';
    const durations = await samplesOf(name);
    expect(durations[`${name}_count{${route},cache="hit"}`]).toBe(2);
    expect(durations[`${name}_sum{${route},cache="hit"}`]).toBeCloseTo(0.006, 10);
    expect(durations[`${name}_bucket{le="0.0025",${route},cache="hit"}`]).toBe(1);
    expect(durations[`${name}_bucket{le="0.005",${route},cache="hit"}`]).toBe(2);
    expect(durations[`${name}_count{${route},cache="none"}`]).toBe(1);
  });

  test('of made-up methods and unknown paths share one series', async () => {
    for (const method of ['POST', 'DELETE', 'PROPFIND', 'get']) {
      metrics.requestFinished({ surface: 'v2', route: null, method, status: 404, durationMs: 0, cache: null });
    }
    expect(await samplesOf('evalgate_http_requests_total')).toEqual({
      'evalgate_http_requests_total{surface="v2",route="unmatched",method="OTHER",status="404"}': 4,
    });
  });

  test('never make more series than there can be routes', async () => {
    for (let id = 0; id < 500; id += 1) {
      metrics.requestFinished({ ...read, route: `/v1/reports/${id}`, method: 'GET', durationMs: 0 });
    }
    const samples = await samplesOf('evalgate_http_requests_total');
    expect(Object.keys(samples)).toHaveLength(41);
    expect(samples['evalgate_http_requests_total{surface="v1",route="other",method="GET",status="200"}']).toBe(460);
  });
});

test('refusals are counted by reason and by window', async () => {
  metrics.authenticationFailed({ reason: 'checksum' });
  metrics.authenticationFailed({ reason: 'checksum' });
  metrics.authenticationFailed({ reason: 'missing' });
  metrics.quotaRefused({ window: 'minute' });
  expect(await samplesOf('evalgate_authentication_failures_total')).toEqual({
    'evalgate_authentication_failures_total{reason="checksum"}': 2,
    'evalgate_authentication_failures_total{reason="missing"}': 1,
  });
  expect(await samplesOf('evalgate_quota_refusals_total')).toEqual({
    'evalgate_quota_refusals_total{window="minute"}': 1,
  });
});

test('calls to the store are counted by resource and outcome, and timed by resource', async () => {
  metrics.storeCall({ resource: 'list', outcome: 'found', seconds: 0.12 });
  metrics.storeCall({ resource: 'list', outcome: 'timeout', seconds: 10 });
  metrics.recordLeftOut({ resource: 'list' });
  expect(await samplesOf('evalgate_store_calls_total')).toEqual({
    'evalgate_store_calls_total{resource="list",outcome="found"}': 1,
    'evalgate_store_calls_total{resource="list",outcome="timeout"}': 1,
  });
  const durations = await samplesOf('evalgate_store_call_duration_seconds');
  expect(durations['evalgate_store_call_duration_seconds_count{resource="list"}']).toBe(2);
  expect(durations['evalgate_store_call_duration_seconds_bucket{le="0.1",resource="list"}']).toBe(0);
  expect(durations['evalgate_store_call_duration_seconds_bucket{le="0.25",resource="list"}']).toBe(1);
  expect(await samplesOf('evalgate_store_records_left_out_total')).toEqual({
    'evalgate_store_records_left_out_total{resource="list"}': 1,
  });
});

test('reads of the cache are counted by class, outcome and tier, misses by class and reason', async () => {
  metrics.cacheRead({ class: 'list', outcome: 'hit', tier: 'memory', ageSeconds: 20 });
  metrics.cacheRead({ class: 'list', outcome: 'miss', tier: null, ageSeconds: 0 });
  metrics.cacheRead({ class: 'list', outcome: 'failed', tier: null, ageSeconds: null });
  metrics.cacheMiss({ class: 'list', reason: 'expired' });
  expect(await samplesOf('evalgate_cache_reads_total')).toEqual({
    'evalgate_cache_reads_total{class="list",outcome="hit",tier="memory"}': 1,
    'evalgate_cache_reads_total{class="list",outcome="miss",tier="none"}': 1,
    'evalgate_cache_reads_total{class="list",outcome="failed",tier="none"}': 1,
  });
  expect(await samplesOf('evalgate_cache_misses_total')).toEqual({
    'evalgate_cache_misses_total{class="list",reason="expired"}': 1,
  });
});

test('the age of what was served is measured by class, up to a week', async () => {
  metrics.cacheRead({ class: 'list', outcome: 'hit', tier: 'memory', ageSeconds: 20 });
  metrics.cacheRead({ class: 'list', outcome: 'stale-if-error', tier: 'redis', ageSeconds: 400_000 });
  metrics.cacheRead({ class: 'list', outcome: 'failed', tier: null, ageSeconds: null });
  const name = 'evalgate_cache_entry_age_seconds';
  const ages = await samplesOf(name);
  expect(ages[`${name}_count{class="list"}`]).toBe(2);
  expect(ages[`${name}_bucket{le="15",class="list"}`]).toBe(0);
  expect(ages[`${name}_bucket{le="30",class="list"}`]).toBe(1);
  expect(ages[`${name}_bucket{le="604800",class="list"}`]).toBe(2);
});

test('waits for another process are counted and timed by class and end', async () => {
  metrics.leaseWait({ class: 'list', end: 'stored', seconds: 0.2 });
  metrics.leaseWait({ class: 'list', end: 'taken-over', seconds: 2 });
  const name = 'evalgate_cache_lease_wait_seconds';
  const waits = await samplesOf(name);
  expect(waits[`${name}_count{class="list",end="stored"}`]).toBe(1);
  expect(waits[`${name}_sum{class="list",end="taken-over"}`]).toBe(2);
});

test('commands to Redis are timed by role, unless they were not sent, and counted where they failed', async () => {
  metrics.redisCommand({ role: 'state', outcome: 'answered', seconds: 0.0004 });
  metrics.redisCommand({ role: 'state', outcome: 'timeout', seconds: 0.5 });
  metrics.redisCommand({ role: 'cache', outcome: 'unsent', seconds: 0 });
  const name = 'evalgate_redis_command_duration_seconds';
  const durations = await samplesOf(name);
  expect(durations[`${name}_count{role="state"}`]).toBe(2);
  expect(durations[`${name}_bucket{le="0.0005",role="state"}`]).toBe(1);
  expect(durations[`${name}_count{role="cache"}`]).toBeUndefined();
  expect(await samplesOf('evalgate_redis_command_failures_total')).toEqual({
    'evalgate_redis_command_failures_total{role="state",reason="timeout"}': 1,
    'evalgate_redis_command_failures_total{role="cache",reason="unsent"}': 1,
  });
});

test('reads of the configuration are counted, and when the one in force was read', async () => {
  metrics.configRead({ result: 'start', atMs: 1_000_000 });
  metrics.configRead({ result: 'success', atMs: 2_000_000 });
  metrics.configRead({ result: 'failure', atMs: 3_000_000 });
  expect(await samplesOf('evalgate_config_reloads_total')).toEqual({
    'evalgate_config_reloads_total{result="success"}': 1,
    'evalgate_config_reloads_total{result="failure"}': 1,
  });
  expect(await samplesOf('evalgate_config_last_success_timestamp_seconds')).toEqual({
    evalgate_config_last_success_timestamp_seconds: 2000,
  });
});

test('two gateways in one process count apart', async () => {
  const other = createMetrics({ version: '2' });
  other.quotaRefused({ window: 'hour' });
  expect(await samplesOf('evalgate_quota_refusals_total')).toEqual({});
  other.close();
});

test('a process that has measured itself and closed ends by itself', async () => {
  const module = new URL('../../../src/admin/metrics/metrics.ts', import.meta.url).href;
  const script = `const { createMetrics } = await import(${JSON.stringify(module)});
    const metrics = createMetrics({ version: '1' });
    await metrics.render();
    metrics.close();
    console.log(JSON.stringify([await metrics.render(), process.getActiveResourcesInfo().filter((r) => r === 'Timeout')]));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 15_000,
  });
  expect(JSON.parse(stdout)).toEqual(['\n', []]);
});
