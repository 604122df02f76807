/** Two whole gateways over one Redis: what one does, the other knows. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.ts';
import { startGateway } from '../../src/gateway.ts';
import { createLogger } from '../../src/log/logger.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let a: TestGateway;
let b: TestGateway;
const REPORTS = `/v1/workspaces/${WORKSPACE_A}/reports`;
const REPORT = `${REPORTS}/${EVALUATION_ID}`;
const nameSchema = z.object({ report: z.object({ name: z.string() }) });

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

beforeEach(async () => {
  await redis.flush();
});
afterEach(async () => {
  await a.close();
  await b.close();
});

/** The report's name at a gateway. */
async function nameAt(gateway: TestGateway, key: string): Promise<string> {
  return nameSchema.parse((await gateway.get(REPORT, { key })).json).report.name;
}

/** Asks again until it is so; the test's own time is the bound. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(1);
}

const adviceSchema = z.object({
  classes: z.array(
    z.looseObject({
      class: z.string(),
      reads: z.number(),
      measured: z.looseObject({ hitRatio: z.number() }).nullable(),
    }),
  ),
});
const historySchema = z.object({
  scope: z.string(),
  points: z.array(z.object({ classes: z.record(z.string(), z.unknown()) })),
});

async function knowsTwoReady(gateway: TestGateway): Promise<boolean> {
  return (await gateway.admin('GET', '/api/fleet')).text.split('"status":"ready"').length === 3;
}

/** What the advice of a gateway says of lists. */
async function listOf(gateway: TestGateway) {
  const { classes } = adviceSchema.parse((await gateway.admin('GET', '/api/cache/advice')).json);
  return classes.find((one) => one.class === 'list');
}

/** What the history of a gateway says of lists in the step under way. */
async function lastOf(gateway: TestGateway) {
  const { scope, points } = historySchema.parse((await gateway.admin('GET', '/api/cache/history')).json);
  return { scope, list: points.at(-1)?.classes['list'] };
}

describe('in front of one store', () => {
  beforeEach(async () => {
    a = await startTestGateway({ env: { REDIS_URL: redis.url } });
    const env = { REDIS_URL: redis.url, UPSTREAM_URL: a.store.url, UPSTREAM_TOKEN: a.store.token };
    b = await startTestGateway({ env });
    a.store.put({ evaluations: [anEvaluation()] });
  });

  test('what one has fetched is fetched for all', async () => {
    const key = await a.issueKey();
    const first = await a.get(REPORTS, { key });
    const second = await b.get(REPORTS, { key });
    expect(first.headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
    expect(second.headers['cache-status']).toMatch(/^evalgate; hit; ttl=\d+$/);
    expect(second.text).toBe(first.text);
    expect(a.store.calls('list')).toBe(1);
  });

  test('R1: a key has one quota at all of them', async () => {
    const key = await a.issueKey({ perMinute: 2 });
    expect((await a.get(REPORTS, { key })).headers['x-ratelimit-minute-remaining']).toBe('1');
    expect((await b.get(REPORTS, { key })).headers['x-ratelimit-minute-remaining']).toBe('0');
    expect((await a.get(REPORTS, { key })).status).toBe(429);
    expect((await b.get(REPORTS, { key })).status).toBe(429);
  });

  test('K4: a key that is revoked at one is refused at all', async () => {
    const { keyId, token: key } = await a.issue();
    expect((await b.get(REPORTS, { key })).status).toBe(200);
    await a.admin('DELETE', `/api/keys/${keyId}`);
    await until(async () => (await b.get(REPORTS, { key })).status === 403);
    expect((await a.get(REPORTS, { key })).status).toBe(403);
  });

  test('a purge at one reaches the memory of all, and the next reader sees the change', async () => {
    const key = await a.issueKey();
    expect([await nameAt(a, key), await nameAt(b, key)]).toEqual([anEvaluation().title, anEvaluation().title]);
    a.store.put({ evaluations: [anEvaluation({ title: 'Renamed' })] });
    expect(await nameAt(b, key)).toBe(anEvaluation().title);
    const purged = await a.admin('POST', '/api/cache/purge', { tags: [`evaluation:${EVALUATION_ID}`] });
    expect(purged.status).toBe(200);
    await until(async () => (await nameAt(b, key)) === 'Renamed');
    expect(await nameAt(a, key)).toBe('Renamed');
  });

  test('what was changed at one is in the audit of all, and outlives them', async () => {
    const { keyId } = await a.issue({ name: 'audited' });
    await a.admin('PUT', '/api/cache/ttl/list', { fresh: '7s' });
    const audited = await b.admin('GET', '/api/audit');
    expect(audited.json).toMatchObject({
      entries: [
        { action: 'cache.ttl.set', target: 'list', who: 'anonymous' },
        { action: 'key.create', target: keyId, to: { name: 'audited' } },
      ],
    });
    const later = await startTestGateway({ env: { REDIS_URL: redis.url } });
    expect((await later.admin('GET', '/api/audit')).text).toBe(audited.text);
    await later.close();
  });

  test('a cache time set at one is in force at all, and so is its end', async () => {
    await a.admin('PUT', '/api/cache/ttl/list', { fresh: '7s' });
    await until(async () => (await b.admin('GET', '/api/cache/ttl')).text.includes('"fresh":"7s"'));
    const end = await b.admin('DELETE', '/api/cache/ttl/list');
    expect(end.json).toMatchObject({ class: 'list', fresh: '30s', source: { fresh: 'default' } });
    await until(async () => !(await a.admin('GET', '/api/cache/ttl')).text.includes('"fresh":"7s"'));
  });
});

describe('what operators are shown of two in front of one store', () => {
  beforeEach(async () => {
    a = await startTestGateway({ env: { REDIS_URL: redis.url } });
    const env = { REDIS_URL: redis.url, UPSTREAM_URL: a.store.url, UPSTREAM_TOKEN: a.store.token };
    b = await startTestGateway({ env });
    a.store.put({ evaluations: [anEvaluation()] });
  });

  test('each knows both, and that they are ready', async () => {
    for (const gateway of [a, b]) await until(() => knowsTwoReady(gateway));
    expect((await a.admin('GET', '/api/fleet')).json).toMatchObject({ members: [{ pid: process.pid }, {}] });
  });

  test('advice and history are of both together, whichever is asked, and what was done by one outlives it', async () => {
    const key = await a.issueKey();
    for (const gateway of [a, b, b, b]) await gateway.get(REPORTS, { key });
    for (const gateway of [a, b]) await until(async () => (await listOf(gateway))?.reads === 4);
    await until(async () => (await listOf(a))?.measured?.hitRatio === 0.75);
    await b.close();
    expect(await lastOf(a)).toEqual({ scope: 'fleet', list: { reads: 4, hits: 3, storeCalls: 1, failed: 0 } });
  });
});

describe('in front of two stores', () => {
  test('C4: the answers of one store are never those of the other', async () => {
    a = await startTestGateway({ env: { REDIS_URL: redis.url } });
    b = await startTestGateway({ env: { REDIS_URL: redis.url } });
    a.store.put({ evaluations: [anEvaluation({ title: 'Of store A' })] });
    b.store.put({ evaluations: [anEvaluation({ title: 'Of store B' })] });
    const key = await a.issueKey();
    expect([await nameAt(a, key), await nameAt(b, key)]).toEqual(['Of store A', 'Of store B']);
    expect([await nameAt(a, key), await nameAt(b, key)]).toEqual(['Of store A', 'Of store B']);
  });
});

test('demo keys end with the process that made them: none is left in Redis for a gateway in front of a real store', async () => {
  a = await startTestGateway({ env: { REDIS_URL: redis.url } });
  b = await startTestGateway({ env: { REDIS_URL: redis.url } });
  const loaded = loadConfig({ env: { PORT: '0', ADMIN_PORT: '0', REDIS_URL: redis.url } });
  const sample = await startGateway(loaded, { logger: createLogger({ level: 'silent' }) });
  const key = sample.demo?.v2Key ?? '';
  const authorization = `Bearer ${key}`;
  expect((await fetch(`${sample.publicUrl}/v2/calls`, { headers: { authorization } })).status).toBe(200);
  expect((await a.get('/v2/calls', { key })).status).toBe(401);
  await sample.stop(0);
  expect((await b.get('/v2/calls', { key })).status).toBe(401);
});
