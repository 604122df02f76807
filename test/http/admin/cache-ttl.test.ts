import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { fileOf } from '../../support/files.ts';
import { forTest } from '../../support/opened.ts';
import { AS_BOB, auditOf, faults, messageOf, statsOf, TOKENS } from '../../support/admin.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: TOKENS }));
});

const rowsSchema = z.strictObject({ classes: z.array(z.looseObject({ class: z.string() })) });

async function rows() {
  return rowsSchema.parse((await gateway.admin('GET', '/api/cache/ttl')).json).classes;
}

async function rowOf(cacheClass: string): Promise<unknown> {
  return (await rows()).find((row) => row.class === cacheClass);
}

const put = (body: unknown, cacheClass = 'list', headers = {}) =>
  gateway.admin('PUT', `/api/cache/ttl/${cacheClass}`, body, headers);
const reset = () => gateway.admin('DELETE', '/api/cache/ttl/list');

const BY_DEFAULT = { fresh: 'default', stale: 'default', error: 'default' };
const NO_END = { fresh: null, stale: null, error: null };
const NOT_SET = { until: NO_END, afterwards: NO_END, setBy: null, setAt: null };
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
  test('C1: has one row per class, with the defaults', async () => {
    expect((await rows()).map((row) => [row.class, row['fresh'], row['stale'], row['error']])).toEqual([
      ['list', '30s', '5m', '1h'],
      ['evaluation', '5m', '1h', '1d'],
      ['transcript', '1h', '1d', '7d'],
      ['scorecard', '15m', '1h', '1d'],
      ['rubric', '10m', '1h', '1d'],
      ['dealInsights', '5m', '1h', '1d'],
      ['notFound', '15s', '0s', '0s'],
    ]);
    expect(await rowOf('list')).toMatchObject(LIST_BY_DEFAULT);
  });

  test('says of each value where it comes from', async () => {
    const file = fileOf('cache: {classes: {list: {fresh: 20s, stale: 2m}}}\n');
    gateway = await forTest(startTestGateway({ env: { CONFIG_FILE: file, CACHE_LIST_STALE: '90s' } }));
    await put({ error: '2h' });
    expect(await rowOf('list')).toMatchObject({
      fresh: '20s',
      stale: '90s',
      error: '2h',
      source: { fresh: 'file', stale: 'environment', error: 'set' },
      setBy: 'anonymous',
    });
    expect(await rowOf('rubric')).toMatchObject({ source: BY_DEFAULT, ...NOT_SET });
  });
});

describe('a time that is set', () => {
  const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
  let key: string;
  beforeEach(async () => {
    gateway.store.put({ evaluations: [anEvaluation()] });
    key = await gateway.issueKey();
  });
  const read = async () => [(await gateway.get(LIST, { key })).headers['cache-status'], gateway.store.calls('list')];

  test('of 0s for all three ends the caching of the class', async () => {
    await put({ fresh: '0s', stale: '0s', error: '0s' });
    expect(await read()).toEqual(['evalgate; fwd=uri-miss', 1]);
    expect(await read()).toEqual([expect.stringMatching(/^evalgate; fwd=/), 2]);
    expect(await statsOf(gateway, 'list')).toMatchObject({
      misses: { 'never-seen': 0, 'not-cacheable': 2 },
    });
  });

  test('stays set when the configuration is read again; the others follow it', async () => {
    await put({ fresh: '45s' });
    expect(gateway.reload({ CACHE_LIST_FRESH: '10s', CACHE_LIST_STALE: '1m' })).toEqual([]);
    expect(await rowOf('list')).toMatchObject({
      fresh: '45s',
      stale: '1m',
      error: '1h',
      source: { fresh: 'set', stale: 'environment', error: 'default' },
    });
    await reset();
    expect(await rowOf('list')).toMatchObject({ fresh: '10s', source: { fresh: 'environment' } });
  });
});

describe('changes', () => {
  test('are audited with who, when, from and to; what was so already is none', async () => {
    const set = await put({ fresh: '60s' });
    expect([set.status, set.json]).toMatchObject([
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
    gateway.clock.advance(1000);
    // The same again, by somebody else: nothing has changed since alice did it.
    expect((await put({ fresh: '1m' }, 'list', AS_BOB)).json).toEqual(set.json);
    expect((await put({ stale: '5m', error: '0s' }, 'list', AS_BOB)).json).toMatchObject({
      fresh: '1m',
      error: '0s',
      source: { fresh: 'set', stale: 'set', error: 'set' },
      setBy: 'bob',
      setAt: '2026-01-15T12:00:01.000Z',
    });
    const ended = await reset();
    expect((await reset()).json).toEqual(ended.json);
    expect(ended.json).toMatchObject(LIST_BY_DEFAULT);

    const unset = { fresh: '30s', stale: '5m', error: '1h', set: [] };
    const first = { fresh: '1m', stale: '5m', error: '1h', set: ['fresh'] };
    const both = { fresh: '1m', stale: '5m', error: '0s', set: ['fresh', 'stale', 'error'] };
    const [t0, t1] = ['2026-01-15T12:00:00.000Z', '2026-01-15T12:00:01.000Z'];
    expect(await auditOf(gateway)).toEqual([
      { at: t1, who: 'alice', action: 'cache.ttl.reset', target: 'list', from: both, to: unset },
      { at: t1, who: 'bob', action: 'cache.ttl.set', target: 'list', from: first, to: both },
      { at: t0, who: 'alice', action: 'cache.ttl.set', target: 'list', from: unset, to: first },
    ]);
  });

  test('to what is in force already sets it all the same, for good', async () => {
    expect((await put({ fresh: '30s' })).json).toMatchObject({
      fresh: '30s',
      source: { ...BY_DEFAULT, fresh: 'set' },
      setBy: 'alice',
    });
    gateway.reload({ CACHE_LIST_FRESH: '10s' });
    expect(await rowOf('list')).toMatchObject({ fresh: '30s' });
    const [from, to] = [[], ['fresh']].map((set) => ({ fresh: '30s', stale: '5m', error: '1h', set }));
    expect(await auditOf(gateway)).toMatchObject([{ action: 'cache.ttl.set', target: 'list', from, to }]);
  });

  test('may go from 0s to 365d, as in the configuration', async () => {
    expect((await put({ fresh: '0s', stale: '365d', error: '250ms' }, 'notFound')).json).toMatchObject({
      freshMs: 0,
      staleMs: 31_536_000_000,
      errorMs: 250,
      error: '250ms',
    });
  });

  const ALLOWED = 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 2h or 7d';
  test.each([
    [{}, [`the body: sets no time; allowed: at least one of fresh, stale and error, each ${ALLOWED}`]],
    [[], ['the body: given an array of 0; allowed: a JSON object']],
    [
      { fresh: '366d', stale: 30, error: null, frsh: '1s' },
      [
        `fresh: given "366d"; allowed: ${ALLOWED}`,
        `stale: given 30; allowed: ${ALLOWED}`,
        `error: given null; allowed: ${ALLOWED}`,
        'frsh: unknown; allowed members: fresh, stale, error, for',
      ],
    ],
    [{ fresh: '-1s' }, [`fresh: given "-1s"; allowed: ${ALLOWED}`]],
    [{ fresh: '31536000001ms' }, [`fresh: given "31536000001ms"; allowed: ${ALLOWED}`]],
  ])('%j is refused with every fault, and changes nothing', async (body, lines) => {
    const answer = await put(body);
    expect([answer.status, messageOf(answer)]).toEqual([400, faults(...lines)]);
    expect(await rowOf('list')).toMatchObject(LIST_BY_DEFAULT);
    expect(await auditOf(gateway)).toEqual([]);
  });

  const FOR = 'a duration from 1m to 7d, such as 30m, 2h or 1d; without it the times stay until they are reset';
  test.each([
    [{ for: '1h' }, `the body: sets no time; allowed: at least one of fresh, stale and error, each ${ALLOWED}`],
    [{ fresh: '1s', for: '59s' }, `for: given "59s"; allowed: ${FOR}`],
    [{ fresh: '1s', for: '169h' }, `for: given "169h"; allowed: ${FOR}`],
    [{ fresh: '1s', for: 60 }, `for: given 60; allowed: ${FOR}`],
    [{ fresh: '1s', for: null }, `for: given null; allowed: ${FOR}`],
  ])('%j is refused', async (body, line) => {
    const answer = await put(body);
    expect([answer.status, messageOf(answer)]).toEqual([400, faults(line)]);
    expect(await rowOf('list')).toMatchObject(LIST_BY_DEFAULT);
  });

  test.each(['PUT', 'DELETE'])('%s of a class that there is not is a 404 that lists the classes', async (method) => {
    const answer = await gateway.admin(method, '/api/cache/ttl/lists', method === 'PUT' ? { fresh: '1s' } : undefined);
    expect([answer.status, messageOf(answer)]).toEqual([
      404,
      'The path names no class of answers. The classes are list, evaluation, transcript, scorecard, rubric, dealInsights, notFound.',
    ]);
  });
});

describe('C6a: a time that is set for a while', () => {
  const [START, END] = ['2026-01-15T12:00:00.000Z', '2026-01-15T13:00:00.000Z'];
  const WHILE_SET = {
    fresh: '1m',
    freshMs: 60_000,
    source: { ...BY_DEFAULT, fresh: 'set' },
    until: { ...NO_END, fresh: END },
    afterwards: { ...NO_END, fresh: '30s' },
    setBy: 'alice',
    setAt: START,
  };

  test('ends by itself; the audit has the change and its end', async () => {
    expect((await put({ fresh: '60s', for: '1h' })).json).toEqual({ ...LIST_BY_DEFAULT, ...WHILE_SET });
    gateway.clock.advance(3_599_999);
    expect(await rowOf('list')).toMatchObject(WHILE_SET);
    gateway.clock.advance(1);
    expect(await rowOf('list')).toEqual(LIST_BY_DEFAULT);
    await expect.poll(async () => (await auditOf(gateway)).length, { timeout: 5000 }).toBe(2);
    const unset = { fresh: '30s', stale: '5m', error: '1h', set: [] };
    const set = { fresh: '1m', stale: '5m', error: '1h', set: ['fresh'], ends: { fresh: END } };
    expect(await auditOf(gateway)).toEqual([
      { at: END, who: 'evalgate', action: 'cache.ttl.end', target: 'list', from: set, to: unset },
      { at: START, who: 'alice', action: 'cache.ttl.set', target: 'list', from: unset, to: { ...set, for: '1h' } },
    ]);
    // Nothing is left to end.
    gateway.clock.advance(3_600_000);
    expect(await rowOf('list')).toEqual(LIST_BY_DEFAULT);
  });

  test('goes back to the one that was set for good, with who set that; the configuration goes on under both', async () => {
    await put({ fresh: '45s' }, 'list', AS_BOB);
    gateway.clock.advance(1000);
    expect((await put({ fresh: '60s', stale: '10m', for: '1h' })).json).toMatchObject({
      until: { fresh: '2026-01-15T13:00:01.000Z', stale: '2026-01-15T13:00:01.000Z', error: null },
      afterwards: { fresh: '45s', stale: '5m', error: null },
      setBy: 'alice',
    });
    gateway.reload({ CACHE_LIST_STALE: '2m' });
    expect(await rowOf('list')).toMatchObject({ stale: '10m', afterwards: { stale: '2m' } });
    gateway.clock.advance(3_600_000);
    expect(await rowOf('list')).toMatchObject({ fresh: '45s', stale: '2m', until: NO_END, setBy: 'bob', setAt: START });
  });

  test('has an end of its own; one that is set for good takes its place, and a reset ends all', async () => {
    await put({ fresh: '60s', for: '1h' });
    await put({ stale: '10m', for: '2h' });
    expect(await rowOf('list')).toMatchObject({ until: { fresh: END, stale: '2026-01-15T14:00:00.000Z' } });
    expect((await put({ fresh: '20s' })).json).toMatchObject({
      fresh: '20s',
      source: { fresh: 'set', stale: 'set' },
      until: { fresh: null, stale: '2026-01-15T14:00:00.000Z' },
    });
    gateway.clock.advance(3_600_000);
    expect(await rowOf('list')).toMatchObject({ fresh: '20s', stale: '10m' });
    expect((await reset()).json).toEqual(LIST_BY_DEFAULT);
    gateway.clock.advance(3_600_000);
    expect((await auditOf(gateway)).map(({ action }) => action)).not.toContain('cache.ttl.end');
  });
});
