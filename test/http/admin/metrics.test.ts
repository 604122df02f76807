/** GET /metrics: the format, and that the values move with what happens. Names and labels are the documentation's. */
import { readFile } from 'node:fs/promises';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { samplesOf } from '../../support/admin.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';

const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
const ROUTE = 'surface="v1",route="/v1/workspaces/{workspaceId}/reports"';

let key: string;
let before: Record<string, number>;
const gateway = await forFile(startTestGateway());
gateway.store.put({ evaluations: [anEvaluation()] });
beforeEach(async () => {
  await gateway.admin('POST', '/api/cache/purge', { tags: ['all'] });
  key = await gateway.issueKey();
  before = await samplesOf(gateway, 'evalgate_');
});

/** By how much the samples whose names begin so have grown in this test; those that have not are left out. */
async function grownBy(...prefixes: readonly string[]): Promise<Record<string, number>> {
  const now = Object.entries(await samplesOf(gateway, ...prefixes));
  const grown = now.map(([name, value]) => [name, value - (before[name] ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, by]) => by !== 0));
}

describe('the text', () => {
  test('is of the format that Prometheus reads, each metric with help and kind', async () => {
    await gateway.get(LIST, { key });
    const { status, headers, text } = await gateway.admin('GET', '/metrics');
    expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    const kinds = new Map<string, string>();
    for (const line of text.split('\n').filter((each) => each !== '')) {
      if (/^# HELP [a-z0-9_]+ .{10,}$/.test(line)) continue;
      const [, name, kind] = /^# TYPE ([a-z0-9_]+) (counter|gauge|histogram)$/.exec(line) ?? [];
      if (name !== undefined && kind !== undefined) {
        kinds.set(name, kind);
        continue;
      }
      expect(line).toMatch(/^[a-z0-9_]+(\{([a-z_]+="[^"\\\n]*",?)+\})? (-?[0-9.]+(e[+-]?[0-9]+)?|[+-]Inf|Nan)$/i);
      const [family = ''] = line.split(/[{ ]/);
      expect(kinds.has(family) || kinds.get(family.replace(/_(bucket|sum|count)$/, '')) === 'histogram').toBe(true);
    }
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'evalgate_build_info']) {
      expect(kinds.has(name)).toBe(true);
    }
    expect(text).toContain(`node="${process.versions.node}"} 1\n`);
  });
});

describe('traffic', () => {
  test('requests count by surface, route, method and status, and their time by what the cache did', async () => {
    await gateway.get(LIST, { key });
    await gateway.get(LIST, { key });
    await gateway.get(LIST, { key, method: 'HEAD' });
    await gateway.get('/v1/workspaces/x/reports', { key });
    expect(await grownBy('evalgate_http_requests_total')).toEqual({
      [`evalgate_http_requests_total{${ROUTE},method="GET",status="200"}`]: 2,
      [`evalgate_http_requests_total{${ROUTE},method="HEAD",status="200"}`]: 1,
      [`evalgate_http_requests_total{${ROUTE},method="GET",status="403"}`]: 1,
    });
    const name = 'evalgate_http_request_duration_seconds';
    expect(await grownBy(`${name}_count`)).toEqual({
      [`${name}_count{${ROUTE},cache="hit"}`]: 2,
      [`${name}_count{${ROUTE},cache="miss"}`]: 1,
      [`${name}_count{${ROUTE},cache="none"}`]: 1,
    });
    expect(await grownBy(`${name}_bucket{le="+Inf",${ROUTE},cache="hit"}`)).toEqual({
      [`${name}_bucket{le="+Inf",${ROUTE},cache="hit"}`]: 2,
    });
  });

  test('unknown paths and made-up methods share one series', async () => {
    for (const [method, path] of [
      ['GET', '/v2/a'],
      ['GET', '/v2/b'],
      ['POST', '/v2/calls'],
      ['PROPFIND', '/v2/calls'],
    ] as const) {
      await gateway.get(path, { key, method, isUndocumented: true });
    }
    expect(await grownBy('evalgate_http_requests_total')).toEqual({
      'evalgate_http_requests_total{surface="v2",route="unmatched",method="GET",status="404"}': 2,
      'evalgate_http_requests_total{surface="v2",route="unmatched",method="OTHER",status="405"}': 2,
    });
  });

  test('refusals count by reason and by window', async () => {
    await gateway.get(LIST);
    await gateway.get(LIST, { key: `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}` });
    const narrow = await gateway.issueKey({ perMinute: 1 });
    for (let time = 0; time < 3; time += 1) await gateway.get(LIST, { key: narrow });
    expect(await grownBy('evalgate_authentication_failures_total', 'evalgate_quota_refusals_total')).toEqual({
      'evalgate_authentication_failures_total{reason="missing"}': 1,
      'evalgate_authentication_failures_total{reason="malformed"}': 1,
      'evalgate_quota_refusals_total{window="minute"}': 2,
    });
  });

  test('unreadable requests are counted by reason', async () => {
    await gateway.raw('hello\r\n\r\n');
    expect(await grownBy('evalgate_http_unreadable_requests_total')).toEqual({
      'evalgate_http_unreadable_requests_total{reason="no-http"}': 1,
    });
  });

  test('reads count by class, outcome and tier, misses by reason, ages by class', async () => {
    await gateway.get(LIST, { key });
    gateway.clock.advance(20_000);
    await gateway.get(LIST, { key });
    gateway.clock.advance(600_000);
    const heal = gateway.store.fail(503);
    await gateway.get(LIST, { key });
    await gateway.get(`${LIST}?page=2`, { key });
    heal();
    const reads = 'evalgate_cache_reads_total';
    expect(await grownBy(reads)).toEqual({
      [`${reads}{class="list",outcome="miss",tier="none"}`]: 1,
      [`${reads}{class="list",outcome="hit",tier="memory"}`]: 1,
      [`${reads}{class="list",outcome="stale-if-error",tier="memory"}`]: 1,
      [`${reads}{class="list",outcome="failed",tier="none"}`]: 1,
    });
    expect(await grownBy('evalgate_cache_misses_total')).toMatchObject({
      'evalgate_cache_misses_total{class="list",reason="expired"}': 1,
    });
    const ages = 'evalgate_cache_entry_age_seconds';
    expect(await grownBy(`${ages}_count`, `${ages}_sum`, `${ages}_bucket{le="15"`, `${ages}_bucket{le="30"`)).toEqual({
      [`${ages}_count{class="list"}`]: 3,
      [`${ages}_sum{class="list"}`]: 640,
      [`${ages}_bucket{le="15",class="list"}`]: 1,
      [`${ages}_bucket{le="30",class="list"}`]: 2,
    });
    expect(await grownBy('evalgate_store_calls_total')).toEqual({
      'evalgate_store_calls_total{resource="list",outcome="found"}': 1,
      'evalgate_store_calls_total{resource="list",outcome="refused"}': 2,
    });
    const durations = 'evalgate_store_call_duration_seconds_count{resource="list"}';
    expect(await grownBy(durations)).toEqual({ [durations]: 3 });
  });
});

describe('the moment of the scrape', () => {
  test('memory, connections, and calls in flight', async () => {
    // A failure of before is remembered for a second.
    gateway.clock.advance(1000);
    await gateway.get(LIST, { key });
    const gate = gateway.store.hold();
    const waiting = gateway.get(`${LIST}?page=7`, { key });
    await gateway.store.waitForCalls(gateway.store.calls() + 1);
    const now = await samplesOf(gateway, 'evalgate_');
    gate.release();
    await waiting;
    expect(now).toMatchObject({
      evalgate_store_calls_in_flight: 1,
      evalgate_store_calls_queued: 0,
      evalgate_store_breaker_open: 0,
      evalgate_fleet_processes: 1,
      evalgate_maintenance_active: 0,
      'evalgate_readiness{status="ready"}': 1,
      'evalgate_readiness{status="starting"}': 0,
      'evalgate_http_connections{listener="public"}': 1,
      'evalgate_http_connections{listener="admin"}': 1,
      'evalgate_cache_limit_bytes{tier="memory"}': 64_000_000,
    });
    expect(now['evalgate_cache_entries{tier="memory"}']).toBeGreaterThan(1);
    expect(now['evalgate_cache_bytes{tier="memory"}']).toBeGreaterThan(1000);
    // Without Redis there is nothing to say of it.
    expect(Object.keys(now).filter((name) => /evalgate_(redis|quota_exact)/.test(name))).toEqual([]);
  });

  test('when the configuration in force was read, and how often', async () => {
    gateway.clock.advance(5000);
    gateway.reload({});
    expect(await grownBy('evalgate_config_reloads_total')).toEqual({
      'evalgate_config_reloads_total{result="success"}': 1,
    });
    const at = 'evalgate_config_last_success_timestamp_seconds';
    expect(await samplesOf(gateway, at)).toEqual({ [at]: gateway.clock.nowMs() / 1000 });
  });

  test('the share of the time that goes into collecting garbage is a share', async () => {
    for (const _ of [1, 2]) {
      const { evalgate_gc_time_ratio: share = -1 } = await samplesOf(gateway, 'evalgate_gc_time_ratio');
      expect(share).toBeGreaterThanOrEqual(0);
      expect(share).toBeLessThanOrEqual(1);
    }
  });
});

describe('docs/metrics.md', () => {
  let page: string;
  let documented: Map<string, { readonly kind: string; readonly labels: readonly string[]; readonly help: string }>;
  let served: Map<string, { kind: string; help: string }>;
  beforeAll(async () => {
    page = await readFile(new URL('../../../docs/metrics.md', import.meta.url), 'utf8');
    const rows = page.matchAll(/^\| `(evalgate_\w+)` \| (\w+) \| (.*?) \| (.*) \|$/gm);
    documented = new Map(
      Array.from(rows, ([, name = '', kind = '', labels = '', help = '']) => [
        name,
        { kind, labels: Array.from(labels.matchAll(/`(\w+)`/g), ([, label = '']) => label), help },
      ]),
    );
    const { text } = await gateway.admin('GET', '/metrics');
    const lines = text.matchAll(/^# HELP (\w+) (.*)\n# TYPE \w+ (\w+)$/gm);
    served = new Map(Array.from(lines, ([, name = '', help = '', kind = '']) => [name, { kind, help }]));
  });

  /** Null if there is no such metric. */
  const labelsOf = (selected: string): readonly string[] | null => {
    const name = documented.has(selected) ? selected : selected.replace(/_(?:bucket|sum|count)$/, '');
    if (name === 'evalgate_workers') return ['state'];
    return documented.get(name)?.labels ?? (served.has(name) ? [] : null);
  };

  test('lists every metric of the gateway with its kind and its help, and no other', () => {
    const own = [...served].filter(([name]) => name.startsWith('evalgate_'));
    expect(own.length).toBeGreaterThan(25);
    expect([...documented].map(([name, { kind, help }]) => [name, { kind, help }])).toEqual(own);
  });

  test('every metric and label in its queries is there', () => {
    const selectors = [...page.matchAll(/\b((?:evalgate|nodejs)_[a-z0-9_]+)(?:\{([^}]*)\})?/g)];
    const grouped = [...page.matchAll(/by \(([a-z, ]+)\) \(\w*\(?(evalgate_[a-z0-9_]+)/g)];
    expect([selectors.length > 50, grouped.length > 15]).toEqual([true, true]);
    const used = [
      ...selectors.map(([, name = '', by = '']) => [name, by.match(/[a-z]+(?=\s*(?:=~|!=|=))/g) ?? []] as const),
      ...grouped.map(
        ([, labels = '', name = '']) => [name, labels.split(', ').filter((label) => label !== 'le')] as const,
      ),
    ];
    const unknown = used.filter(([name, labels]) => !labels.every((label) => labelsOf(name)?.includes(label)));
    expect(unknown).toEqual([]);
    expect(used.filter(([name]) => labelsOf(name) === null)).toEqual([]);
  });
});
