import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Audit, AuditEntry } from '../../../src/admin/audit.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { type Gateway, startGateway } from '../../../src/gateway.ts';
import { createLogger } from '../../../src/log/logger.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';
import { createCacheRig } from './cache-rig.ts';
import { messageOf, type RunningAdmin, send, START, startAdmin, TOKEN } from './harness.ts';

let gateway: TestGateway | undefined;
let bare: Gateway | undefined;
let admin: RunningAdmin | undefined;
afterEach(async () => {
  await gateway?.close();
  await bare?.stop(0);
  await admin?.close();
  gateway = undefined;
  bare = undefined;
  admin = undefined;
});

const rowsSchema = z.strictObject({ classes: z.array(z.looseObject({ class: z.string() })) });

function rowOf(json: unknown, cacheClass: string): unknown {
  return rowsSchema.parse(json).classes.find((row) => row.class === cacheClass);
}

const load = (env: Record<string, string>) => loadConfig({ env: { PORT: '0', ADMIN_PORT: '0', ...env } });

const BY_DEFAULT = { fresh: 'default', stale: 'default', error: 'default' };
const NOT_SET = { setBy: null, setAt: null };
const LIST_BY_DEFAULT = {
  class: 'list',
  fresh: '30s',
  stale: '5m',
  error: '1h',
  freshMs: 30_000,
  staleMs: 300_000,
  errorMs: 3_600_000,
  source: BY_DEFAULT,
  ...NOT_SET,
};

describe('GET /api/cache/ttl', () => {
  test('C1: has a row a class, with the defaults', async () => {
    admin = await startAdmin();
    const { status, json } = await admin.get('/api/cache/ttl');
    expect(status).toBe(200);
    expect(rowsSchema.parse(json).classes.map((row) => [row.class, row['fresh'], row['stale'], row['error']])).toEqual([
      ['list', '30s', '5m', '1h'],
      ['evaluation', '5m', '1h', '1d'],
      ['transcript', '1h', '1d', '7d'],
      ['scorecard', '15m', '1h', '1d'],
      ['rubric', '10m', '1h', '1d'],
      ['dealInsights', '5m', '1h', '1d'],
      ['notFound', '15s', '0s', '0s'],
    ]);
    expect(rowOf(json, 'list')).toEqual(LIST_BY_DEFAULT);
  });

  test('tells of each value where it comes from', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'evalgate-'));
    const file = join(directory, 'own.yaml');
    writeFileSync(file, 'cache: {classes: {list: {fresh: 20s, stale: 2m}}}\n');
    gateway = await startTestGateway({ env: { CONFIG_FILE: file, CACHE_LIST_STALE: '90s' } });
    rmSync(directory, { recursive: true });
    await gateway.admin('PUT', '/api/cache/ttl/list', { error: '2h' });
    const { json } = await gateway.admin('GET', '/api/cache/ttl');
    expect(rowOf(json, 'list')).toMatchObject({
      fresh: '20s',
      stale: '90s',
      error: '2h',
      source: { fresh: 'file', stale: 'environment', error: 'set' },
    });
    expect(rowOf(json, 'rubric')).toMatchObject({ source: BY_DEFAULT, ...NOT_SET });
  });
});

describe('a time that is set', () => {
  const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;

  async function start() {
    gateway = await startTestGateway();
    const running = gateway;
    running.store.put({ evaluations: [anEvaluation()] });
    const key = await running.issueKey();
    const read = async (): Promise<string> => String((await running.get(LIST, { key })).headers['cache-status']);
    return { running, read };
  }

  test('C2: rules what is stored already, at once, and a reset does too', async () => {
    const { running, read } = await start();
    expect(await read()).toBe('evalgate; fwd=uri-miss; stored');
    running.clock.advance(20_000);
    expect([await read(), running.store.calls('list')]).toEqual([expect.stringMatching(/; hit; ttl=\d$/), 1]);

    // Shorter: the copy of 20 s has expired, and there is no time in which it may be served stale.
    const times = { fresh: '10s', stale: '0s', error: '0s' };
    expect((await running.admin('PUT', '/api/cache/ttl/list', times)).status).toBe(200);
    expect([await read(), running.store.calls('list')]).toEqual(['evalgate; fwd=stale; stored', 2]);

    // Longer: a copy of 40 s, which the configuration's 30 s would have ended, is fresh.
    await running.admin('PUT', '/api/cache/ttl/list', { fresh: '10m' });
    running.clock.advance(40_000);
    expect([await read(), running.store.calls('list')]).toEqual([expect.stringMatching(/; hit; ttl=\d{3}$/), 2]);

    const reset = await running.admin('DELETE', '/api/cache/ttl/list');
    expect([reset.status, reset.json]).toEqual([200, LIST_BY_DEFAULT]);
    expect(await read()).toMatch(/^evalgate; hit; ttl=-1\d; detail=stale-while-revalidate$/);
    await running.store.waitForCalls(3, 'list');
  });

  test('of 0s for all three ends the caching of the class', async () => {
    const { running, read } = await start();
    await running.admin('PUT', '/api/cache/ttl/list', { fresh: '0s', stale: '0s', error: '0s' });
    expect([await read(), await read()]).toEqual(['evalgate; fwd=uri-miss', expect.stringMatching(/^evalgate; fwd=/)]);
    expect(running.store.calls('list')).toBe(2);
  });

  test('stays set when the configuration is read again; the others follow it', async () => {
    const logger = createLogger({ level: 'silent', destination: { write: () => {} } });
    bare = await startGateway(load({}), { logger });
    const { port } = new URL(bare.adminUrl);
    const headers = { 'content-type': 'application/json' };
    await send(Number(port), 'PUT', '/api/cache/ttl/list', { headers, body: '{"fresh":"45s"}' });
    expect(bare.reload(load({ CACHE_LIST_FRESH: '10s', CACHE_LIST_STALE: '1m' }))).toEqual([]);
    const times = async () => rowOf((await send(Number(port), 'GET', '/api/cache/ttl')).json, 'list');
    expect(await times()).toMatchObject({
      fresh: '45s',
      stale: '1m',
      error: '1h',
      source: { fresh: 'set', stale: 'environment', error: 'default' },
    });
    await send(Number(port), 'DELETE', '/api/cache/ttl/list');
    expect(await times()).toMatchObject({ fresh: '10s', source: { fresh: 'environment' } });
  });
});

describe('changes', () => {
  const alice = { authorization: `Bearer ${TOKEN}` };
  const bob = { authorization: 'Bearer other' };

  test('are audited with who, when, from and to; what was so already is none', async () => {
    admin = await startAdmin({
      tokens: [
        { name: 'alice', token: TOKEN },
        { name: 'bob', token: 'other' },
      ],
    });
    const { call, clock, audit } = admin;
    const set = await call('PUT', '/api/cache/ttl/list', { fresh: '60s' }, alice);
    expect([set.status, set.json]).toEqual([
      200,
      {
        ...LIST_BY_DEFAULT,
        fresh: '1m',
        freshMs: 60_000,
        source: { ...BY_DEFAULT, fresh: 'set' },
        setBy: 'alice',
        setAt: '2026-01-15T12:00:00.000Z',
      },
    ]);
    clock.advance(1000);
    // The same again, by somebody else: nothing has changed since alice did it.
    expect((await call('PUT', '/api/cache/ttl/list', { fresh: '1m' }, bob)).json).toEqual(set.json);
    const second = await call('PUT', '/api/cache/ttl/list', { stale: '5m', error: '0s' }, bob);
    expect(second.json).toMatchObject({
      fresh: '1m',
      error: '0s',
      source: { fresh: 'set', stale: 'set', error: 'set' },
      setBy: 'bob',
      setAt: '2026-01-15T12:00:01.000Z',
    });
    const reset = await call('DELETE', '/api/cache/ttl/list', undefined, alice);
    expect((await call('DELETE', '/api/cache/ttl/list', undefined, alice)).json).toEqual(reset.json);
    expect(reset.json).toEqual(LIST_BY_DEFAULT);

    const unset = { fresh: '30s', stale: '5m', error: '1h', set: [] };
    const first = { fresh: '1m', stale: '5m', error: '1h', set: ['fresh'] };
    const both = { fresh: '1m', stale: '5m', error: '0s', set: ['fresh', 'stale', 'error'] };
    const [t0, t1] = ['2026-01-15T12:00:00.000Z', '2026-01-15T12:00:01.000Z'];
    expect(await audit.entries()).toEqual([
      { at: t1, who: 'alice', action: 'cache.ttl.reset', target: 'list', from: both, to: unset },
      { at: t1, who: 'bob', action: 'cache.ttl.set', target: 'list', from: first, to: both },
      { at: t0, who: 'alice', action: 'cache.ttl.set', target: 'list', from: unset, to: first },
    ]);
  });

  test('to what is in force already sets it all the same, for good; the audit may forget who did', async () => {
    const { controls } = createCacheRig(new ManualClock());
    const entries: AuditEntry[] = [];
    const forgetful: Audit = {
      record: async (entry) => void entries.push({ at: START, ...entry }),
      entries: async () => [],
    };
    admin = await startAdmin({ cache: controls, audit: forgetful });
    const pinned = { ...LIST_BY_DEFAULT, source: { ...BY_DEFAULT, fresh: 'set' } };
    expect((await admin.call('PUT', '/api/cache/ttl/list', { fresh: '30s' })).json).toEqual(pinned);
    const [from, to] = [[], ['fresh']].map((set) => ({ fresh: '30s', stale: '5m', error: '1h', set }));
    expect(entries).toEqual([{ at: START, who: 'anonymous', action: 'cache.ttl.set', target: 'list', from, to }]);
  });

  test('may go from 0s to 365d, as in the configuration', async () => {
    admin = await startAdmin();
    const answer = await admin.call('PUT', '/api/cache/ttl/notFound', { fresh: '0s', stale: '365d', error: '250ms' });
    expect(answer.json).toMatchObject({ freshMs: 0, staleMs: 31_536_000_000, errorMs: 250, error: '250ms' });
  });

  const ALLOWED = 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 2h or 7d';
  test.each([
    [{}, [`the body: sets no time; allowed: at least one of fresh, stale and error, each ${ALLOWED}`]],
    [[], [`the body: given an array of 0; allowed: a JSON object`]],
    [
      { fresh: '366d', stale: 30, error: null, frsh: '1s' },
      [
        `fresh: given "366d"; allowed: ${ALLOWED}`,
        `stale: given 30; allowed: ${ALLOWED}`,
        `error: given null; allowed: ${ALLOWED}`,
        'frsh: unknown; allowed members: fresh, stale, error',
      ],
    ],
    [{ fresh: '-1s' }, [`fresh: given "-1s"; allowed: ${ALLOWED}`]],
    [{ fresh: '31536000001ms' }, [`fresh: given "31536000001ms"; allowed: ${ALLOWED}`]],
  ])('%j is refused with every fault, and changes nothing', async (body, faults) => {
    admin = await startAdmin();
    const answer = await admin.call('PUT', '/api/cache/ttl/list', body);
    expect(answer.status).toBe(400);
    const count = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
    expect(messageOf(answer)).toBe(
      [`The body has ${count}; nothing was changed.`, ...faults.map((fault) => `- ${fault}`)].join('\n'),
    );
    expect(rowOf((await admin.get('/api/cache/ttl')).json, 'list')).toEqual(LIST_BY_DEFAULT);
    expect(await admin.audit.entries()).toEqual([]);
  });

  test.each(['PUT', 'DELETE'])('%s of a class that there is not is a 404 that lists the classes', async (method) => {
    admin = await startAdmin();
    const answer = await admin.call(method, '/api/cache/ttl/lists', method === 'PUT' ? { fresh: '1s' } : undefined);
    expect([answer.status, messageOf(answer)]).toEqual([
      404,
      'The path names no class of answers. The classes are list, evaluation, transcript, scorecard, rubric, dealInsights, notFound.',
    ]);
  });

  test('a class takes PUT and DELETE and nothing else', async () => {
    admin = await startAdmin();
    const answer = await admin.call('PATCH', '/api/cache/ttl/list', { fresh: '1s' });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'PUT, DELETE']);
  });
});
