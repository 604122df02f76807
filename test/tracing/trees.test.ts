/** The traces of requests: exact trees, from a real gateway with a real Redis to a collector. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { Collector } from '../support/collector.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';

const REPORT = `/v1/workspaces/${WORKSPACE_A}/reports/${EVALUATION_ID}`;
const STRANGER = '33333333-3333-4333-8333-333333333333';
const ROUTE = '/v1/workspaces/{workspaceId}/reports/{reportId}';
/** So long that no copy is fresh any more, and short enough that each is served while it is renewed. */
const STALE_AFTER_MS = 61_000;
const PER_MINUTE = 2;

let collector: Collector;
let clock: ManualClock;
let gateway: TestGateway;
let key: string;

const redis = await forFile(startRedis());

beforeEach(async () => {
  collector = await Collector.start();
  clock = new ManualClock();
});
afterEach(async () => {
  await gateway.close();
  await collector.close();
});

const TIMES = {
  CACHE_EVALUATION_FRESH: '60s',
  CACHE_EVALUATION_STALE: '10m',
  CACHE_EVALUATION_ERROR: '10m',
};

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await startTestGateway({ env: { ...TIMES, ...collector.env, ...env }, clock });
  gateway.store.put({ evaluations: [anEvaluation()] });
  key = await gateway.issueKey({ perMinute: PER_MINUTE });
  // The test's own look at the OpenAPI document.
  await collector.until(() => collector.spans.length === 1);
  collector.clear();
}

function lines(...tree: readonly string[]): string {
  return tree.join('\n');
}

describe('without Redis', () => {
  beforeEach(() => start());

  test('a miss is a flight with one call to the store', async () => {
    await gateway.get(REPORT, { key });

    expect(await collector.trees(1, 3)).toEqual([
      lines(`server GET ${ROUTE}`, '  internal flight evaluation', '    client GET /internal/v1/evaluations/{id}'),
    ]);
    const { attributes } = collector.span(`GET ${ROUTE}`);
    expect(attributes['evalgate.request.id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(attributes['evalgate.key.id']).toMatch(/^key_/);
    expect(attributes).toEqual({
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'http.route': ROUTE,
      'network.protocol.version': '1.1',
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(gateway.publicUrl).port),
      'url.scheme': 'http',
      'evalgate.surface': 'v1',
      'evalgate.request.id': attributes['evalgate.request.id'],
      'evalgate.key.id': attributes['evalgate.key.id'],
      'evalgate.cache.class': 'evaluation',
      'evalgate.cache.outcome': 'miss',
      'evalgate.cache.miss_reason': 'never-seen',
    });
    expect(collector.span('flight evaluation').attributes).toEqual({
      'evalgate.resource': 'evaluation',
      'evalgate.flight.from': 'store',
      'evalgate.store.queue_ms': 0,
    });
    expect(collector.span('GET /internal/v1/evaluations/{id}').attributes).toEqual({
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'url.template': '/internal/v1/evaluations/{id}',
      'evalgate.resource': 'evaluation',
      'evalgate.store.outcome': 'found',
    });
  });

  test('a hit in memory is the request alone', async () => {
    await gateway.get(REPORT, { key });
    await collector.trees(1, 3);
    collector.clear();

    await gateway.get(REPORT, { key });

    expect(await collector.trees(1, 1)).toEqual([`server GET ${ROUTE}`]);
    expect(collector.span(`GET ${ROUTE}`).attributes).toMatchObject({
      'evalgate.cache.outcome': 'hit',
      'evalgate.cache.tier': 'memory',
    });
  });

  test('children lie within their parents', async () => {
    await gateway.get(REPORT, { key });
    await collector.trees(1, 3);

    const names = [`GET ${ROUTE}`, 'flight evaluation', 'GET /internal/v1/evaluations/{id}'];
    const [request, flight, call] = names.map((name) => collector.span(name));
    const begun = [request, flight, call].map((span) => BigInt(span?.startTimeUnixNano ?? 0));
    const ended = [call, flight, request].map((span) => BigInt(span?.endTimeUnixNano ?? 0));
    const all = [...begun, ...ended];
    for (const [index, time] of all.slice(1).entries()) expect(time).toBeGreaterThanOrEqual(all[index] ?? time);
    expect(Math.abs(Number(request?.startTimeUnixNano) / 1e6 - Date.now())).toBeLessThan(20_000);
  });

  test('a refresh is a trace of its own, with a link to the request that it was begun for', async () => {
    await gateway.get(REPORT, { key });
    await collector.trees(1, 3);
    collector.clear();
    clock.advance(STALE_AFTER_MS);

    await gateway.get(REPORT, { key });

    expect(await collector.trees(2, 3)).toEqual([
      `server GET ${ROUTE}`,
      lines('internal refresh evaluation', '  client GET /internal/v1/evaluations/{id}'),
    ]);
    const request = collector.span(`GET ${ROUTE}`);
    const refresh = collector.span('refresh evaluation');
    expect(request.attributes).toMatchObject({ 'evalgate.cache.outcome': 'stale-while-revalidate' });
    expect(refresh.traceId).not.toBe(request.traceId);
    expect(refresh.links).toMatchObject([{ traceId: request.traceId, spanId: request.spanId }]);
    expect(collector.span('GET /internal/v1/evaluations/{id}').attributes).toMatchObject({
      'http.response.status_code': 304,
      'evalgate.store.outcome': 'not-modified',
    });
  });

  test('S2: a failing store is a failed call, a failed flight and a failed request, and no text of an error', async () => {
    gateway.store.fail(503);

    await gateway.get(REPORT, { key });

    expect(await collector.trees(1, 3)).toEqual([
      lines(
        `server GET ${ROUTE} (failed)`,
        '  internal flight evaluation (failed)',
        '    client GET /internal/v1/evaluations/{id} (failed)',
      ),
    ]);
    expect(collector.spans.map(({ status }) => status)).toEqual([{ code: 2 }, { code: 2 }, { code: 2 }]);
    expect(collector.span(`GET ${ROUTE}`).attributes).toMatchObject({
      'http.response.status_code': 500,
      'error.type': 'refused',
    });
    expect(collector.span('GET /internal/v1/evaluations/{id}').attributes).toMatchObject({
      'http.response.status_code': 503,
      'error.type': 'refused',
    });
  });

  test('a 404 of the store is not a failure', async () => {
    await gateway.get(`/v1/workspaces/${WORKSPACE_A}/reports/ev_none`, { key });

    expect(await collector.trees(1, 3)).toEqual([
      lines(`server GET ${ROUTE}`, '  internal flight evaluation', '    client GET /internal/v1/evaluations/{id}'),
    ]);
    expect(collector.span('GET /internal/v1/evaluations/{id}').attributes).toMatchObject({
      'http.response.status_code': 404,
      'evalgate.store.outcome': 'absent',
    });
  });

  test('a request without a key is the request alone, and no failure', async () => {
    await gateway.get(REPORT);

    expect(await collector.trees(1, 1)).toEqual([`server GET ${ROUTE}`]);
    const { attributes } = collector.span(`GET ${ROUTE}`);
    expect(attributes).toMatchObject({ 'http.response.status_code': 401 });
    expect(attributes).not.toHaveProperty('evalgate.key.id');
    expect(attributes).not.toHaveProperty('error.type');
  });

  test('an unknown route has the method as its name', async () => {
    await gateway.get('/nowhere/at/all', { isUndocumented: true });

    expect(await collector.trees(1, 1)).toEqual(['server GET']);
    expect(collector.span('GET').attributes).not.toHaveProperty('http.route');
  });

  test('every process says which one it is', async () => {
    await gateway.get(REPORT);
    await collector.trees(1, 1);

    const { resource } = collector.span(`GET ${ROUTE}`);
    expect(resource).toMatchObject({ 'service.name': 'evalgate', 'process.pid': process.pid });
    expect(resource['service.version']).toMatch(/^\d/);
    expect(resource['service.instance.id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});

test('who waits for the flight of another request has the wait, with a link to the flight', async () => {
  await start({ OTEL_TRACES_SAMPLER: 'parentbased_always_on' });
  const gate = gateway.store.hold();
  const first = gateway.get(REPORT, { key });
  await gateway.store.waitForCalls(1);
  const second = gateway.get(REPORT, { key });
  await untilCounted(2);
  gate.release();
  await Promise.all([first, second]);

  expect(await collector.trees(2, 5)).toEqual([
    lines(`server GET ${ROUTE}`, '  internal flight evaluation', '    client GET /internal/v1/evaluations/{id}'),
    lines(`server GET ${ROUTE}`, '  internal wait for a flight'),
  ]);
  const flight = collector.span('flight evaluation');
  const wait = collector.span('wait for a flight');
  expect(wait.links).toMatchObject([{ traceId: flight.traceId, spanId: flight.spanId }]);
  expect(wait.traceId).not.toBe(flight.traceId);
});

/** Until that many requests of the key were counted; the looks are not recorded. */
async function untilCounted(count: number): Promise<void> {
  const headers = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00` };
  const isSo = async (): Promise<boolean> => {
    const reply = await gateway.get('/v1/key', { key, headers });
    return reply.headers['x-ratelimit-remaining'] === String(PER_MINUTE - count);
  };
  while (!(await isSo()));
}

describe('with Redis', () => {
  beforeEach(async () => {
    await redis.flush();
    await start({ REDIS_URL: redis.url });
  });

  test('a miss shows what was asked of Redis, and in which order', async () => {
    await gateway.get(REPORT, { key });

    expect(await collector.trees(1, 7)).toEqual([
      lines(
        `server GET ${ROUTE}`,
        '  client HGET key',
        '  client EVALSHA quota',
        '  client EVALSHA look-up',
        '  internal flight evaluation',
        '    client GET /internal/v1/evaluations/{id}',
        '    client EVALSHA entry',
      ),
    ]);
    expect(collector.span('EVALSHA quota').attributes).toEqual({
      'db.system.name': 'redis',
      'db.operation.name': 'EVALSHA',
      'db.query.summary': 'EVALSHA quota',
      'evalgate.redis': 'state',
    });
    expect(collector.span('EVALSHA look-up').attributes).toMatchObject({ 'evalgate.redis': 'cache' });
  });

  test('K7a: what another set of workspaces has learned of an id adds no step, whether it is foreign or none', async () => {
    const path = `/v1/workspaces/${WORKSPACE_B}/reports`;
    const other = await gateway.issueKey({ workspaceIds: [WORKSPACE_B] });
    const stranger = await gateway.issueKey({ workspaceIds: [STRANGER] });
    const trees: unknown[] = [];
    gateway.store.put({ evaluations: [anEvaluation({ _id: 'ev_2', workspaceId: WORKSPACE_B })] });
    for (const [id, status] of [
      ['ev_none', 404],
      ['ev_2', 200],
    ] as const) {
      expect((await gateway.get(`${path}/${id}`, { key: other })).status).toBe(status);
      // The keys are known from the first time on.
      const spans = 7 - trees.length;
      await collector.trees(1, spans);
      collector.clear();
      expect((await gateway.get(`/v1/workspaces/${STRANGER}/reports/${id}`, { key: stranger })).status).toBe(404);
      trees.push(await collector.trees(1, spans));
      collector.clear();
    }
    const flight = lines(
      '  client EVALSHA look-up',
      '  internal flight evaluation',
      '    client GET /internal/v1/evaluations/{id}',
      '    client EVALSHA entry',
    );
    for (const tree of trees) expect(String(tree)).toContain(flight);
  });

  test('a hit in memory waits for the quota alone', async () => {
    await gateway.get(REPORT, { key });
    await collector.trees(1, 7);
    collector.clear();

    await gateway.get(REPORT, { key });

    expect(await collector.trees(1, 2)).toEqual([lines(`server GET ${ROUTE}`, '  client EVALSHA quota')]);
  });

  test('a hit in Redis is found there', async () => {
    const other = await startTestGateway({
      env: { REDIS_URL: redis.url, UPSTREAM_URL: gateway.store.url, UPSTREAM_TOKEN: gateway.store.token },
      clock,
    });
    await other.get(REPORT, { key });
    await other.close();
    collector.clear();

    await gateway.get(REPORT, { key });

    expect(await collector.trees(1, 4)).toEqual([
      lines(`server GET ${ROUTE}`, '  client HGET key', '  client EVALSHA quota', '  client EVALSHA look-up'),
    ]);
    expect(collector.span(`GET ${ROUTE}`).attributes).toMatchObject({
      'evalgate.cache.outcome': 'hit',
      'evalgate.cache.tier': 'redis',
    });
  });

  test('a request over the limit is refused by the quota, and the next one without asking Redis', async () => {
    await gateway.get(REPORT, { key });
    await gateway.get(REPORT, { key });
    await collector.trees(2, 9);
    collector.clear();

    await gateway.get(REPORT, { key });
    expect(await collector.trees(1, 2)).toEqual([lines(`server GET ${ROUTE}`, '  client EVALSHA quota')]);
    expect(collector.span(`GET ${ROUTE}`).attributes).toMatchObject({ 'http.response.status_code': 429 });
    collector.clear();

    await gateway.get(REPORT, { key });
    expect(await collector.trees(1, 1)).toEqual([`server GET ${ROUTE}`]);
  });

  test('a refresh has what it asked of Redis in its own trace', async () => {
    await gateway.get(REPORT, { key });
    await collector.trees(1, 7);
    collector.clear();
    clock.advance(STALE_AFTER_MS);

    await gateway.get(REPORT, { key });

    expect((await collector.trees(2, 7)).at(-1)).toBe(
      lines(
        'internal refresh evaluation',
        '  client EVALSHA look-up',
        '  client GET /internal/v1/evaluations/{id}',
        '  client EVALSHA entry',
      ),
    );
  });

  test('who waits for another process has one span for it, however often it looks', async () => {
    const other = await startTestGateway({
      env: { REDIS_URL: redis.url, UPSTREAM_URL: gateway.store.url, UPSTREAM_TOKEN: gateway.store.token },
      clock,
    });
    const gate = gateway.store.hold();
    const elsewhere = other.get(REPORT, { key });
    await gateway.store.waitForCalls(1);
    const here = gateway.get(REPORT, { key });
    await collector.until(() => collector.spans.some(({ name }) => name === 'EVALSHA look-up'));
    gate.release();
    await Promise.all([elsewhere, here]);

    expect(await collector.trees(1, 6)).toEqual([
      lines(
        `server GET ${ROUTE}`,
        '  client HGET key',
        '  client EVALSHA quota',
        '  client EVALSHA look-up',
        '  internal flight evaluation',
        '    internal wait for another process',
      ),
    ]);
    expect(collector.span('flight evaluation').attributes).toMatchObject({ 'evalgate.flight.from': 'elsewhere' });
    await other.close();
  });
});
