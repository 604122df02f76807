import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { TrialKeys } from '../../../src/cache/trial/keys.ts';
import { hash32 } from '../../../src/cache/hash.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../../support/records.ts';
import { messageOf, type RunningAdmin, startAdmin, START, TOKEN } from './harness.ts';

const ALL = '/api/cache/trials';
const LIST = `${ALL}/list`;
const PLAN = { class: 'list', fresh: '60s', share: 0.1, for: '1h' };
const authorization = `Bearer ${TOKEN}`;

let gateway: TestGateway | undefined;
let admin: RunningAdmin | undefined;
afterEach(async () => {
  await gateway?.close();
  await admin?.close();
  gateway = undefined;
  admin = undefined;
});

async function startAlice() {
  const running = await startAdmin({ tokens: [{ name: 'alice', token: TOKEN }] });
  admin = running;
  const call = (method: string, path: string, body?: unknown) => running.call(method, path, body, { authorization });
  return { ...running, call };
}

const idOf = (json: unknown): string => z.looseObject({ id: z.string() }).parse(json).id;

const rowsSchema = z.object({ classes: z.array(z.looseObject({ class: z.string() })) });

function rowOf(json: unknown, cacheClass: string): unknown {
  return rowsSchema.parse(json).classes.find((row) => row.class === cacheClass);
}

const NOTHING = {
  reads: 0,
  hits: 0,
  hitRatio: null,
  storeCalls: 0,
  storeFailures: 0,
  storeCallsPerRead: null,
  storeFailureRatio: null,
};

const RUNNING = {
  class: 'list',
  state: 'running',
  reason: "Not judged yet: none of the trial's keys was read yet.",
  fresh: '1m',
  freshMs: 60_000,
  share: 0.1,
  startedAt: START,
  startedBy: 'alice',
  until: '2026-01-15T13:00:00.000Z',
  endedAt: null,
  limits: { maxStoreLoad: 1.5, maxErrors: 0.05 },
  arms: {
    trial: { fresh: '1m', freshMs: 60_000, ...NOTHING },
    control: { fresh: '30s', freshMs: 30_000, ...NOTHING },
  },
  predicted: { trial: null, control: null },
};

describe('the endpoints', () => {
  test('a trial is begun, shown, and ends by its time', async () => {
    const { call, clock } = await startAlice();
    expect((await call('GET', ALL)).json).toEqual({ trials: [] });
    expect((await call('GET', LIST)).status).toBe(404);
    const begun = await call('POST', ALL, PLAN);
    expect([begun.status, begun.json]).toEqual([201, { ...RUNNING, id: idOf(begun.json) }]);
    expect((await call('GET', LIST)).json).toEqual(begun.json);
    expect((await call('GET', ALL)).json).toEqual({ trials: [begun.json] });
    clock.advance(3_600_000);
    const over = { ...RUNNING, id: idOf(begun.json), state: 'ended', reason: null, endedAt: RUNNING.until };
    expect((await call('GET', LIST)).json).toEqual(over);
  });

  test('one at a time a class; the next may begin when it is over', async () => {
    const { call } = await startAlice();
    await call('POST', ALL, PLAN);
    const second = await call('POST', ALL, { ...PLAN, fresh: '2m' });
    expect([second.status, messageOf(second)]).toEqual([
      409,
      'A trial of list runs already (fresh 1m, until 2026-01-15T13:00:00.000Z); a class has one at a time. DELETE /api/cache/trials/list stops it.',
    ]);
    expect((await call('POST', ALL, { ...PLAN, class: 'rubric' })).status).toBe(201);
    await call('DELETE', LIST);
    const third = await call('POST', ALL, { ...PLAN, fresh: '2m' });
    expect(third.status).toBe(201);
    const { trials } = z
      .object({ trials: z.array(z.looseObject({ class: z.string(), state: z.string() })) })
      .parse((await call('GET', ALL)).json);
    expect(trials.map((trial) => [trial.class, trial.state])).toEqual([
      ['rubric', 'running'],
      ['list', 'running'],
      ['list', 'stopped'],
    ]);
  });

  test('a stop is back at once, and there is none to stop twice', async () => {
    const { call, clock } = await startAlice();
    await call('POST', ALL, PLAN);
    clock.advance(1000);
    const stopped = await call('DELETE', LIST);
    expect([stopped.status, stopped.json]).toEqual([
      200,
      {
        ...RUNNING,
        id: idOf(stopped.json),
        state: 'stopped',
        reason: 'Stopped by alice.',
        endedAt: '2026-01-15T12:00:01.000Z',
      },
    ]);
    const again = await call('DELETE', LIST);
    expect([again.status, messageOf(again)]).toEqual([
      409,
      'No trial of this class runs, so there is none to stop. GET /api/cache/trials lists all; POST /api/cache/trials begins one of list.',
    ]);
    expect((await call('POST', `${LIST}/adopt`, {})).status).toBe(409);
  });

  test('what is adopted is set for the class, in the audit as any time that is set', async () => {
    const { call, audit } = await startAlice();
    const { json } = await call('POST', ALL, PLAN);
    const adopted = await call('POST', `${LIST}/adopt`, {});
    expect(adopted.json).toMatchObject({ state: 'adopted', arms: { control: { fresh: '30s' } } });
    const ttl = await call('GET', '/api/cache/ttl');
    expect(rowOf(ttl.json, 'list')).toMatchObject({
      fresh: '1m',
      source: { fresh: 'set' },
      setBy: 'alice',
      trial: null,
    });
    const entries = await audit.entries();
    const id = idOf(json);
    const measured = { reads: 0, storeCalls: 0, storeFailures: 0 };
    expect(entries.map(({ at: _at, ...entry }) => entry)).toEqual([
      {
        who: 'alice',
        action: 'cache.trial.adopt',
        target: 'list',
        from: { id, trial: { fresh: '1m', ...measured }, control: { fresh: '30s', ...measured } },
        to: { fresh: '1m' },
      },
      {
        who: 'alice',
        action: 'cache.ttl.set',
        target: 'list',
        from: { fresh: '30s', stale: '5m', error: '1h', set: [] },
        to: { fresh: '1m', stale: '5m', error: '1h', set: ['fresh'] },
      },
      {
        who: 'alice',
        action: 'cache.trial.start',
        target: 'list',
        from: null,
        to: { id, fresh: '1m', share: 0.1, until: RUNNING.until, maxStoreLoad: 1.5, maxErrors: 0.05 },
      },
    ]);
  });

  test('one that has ended by its time may be adopted', async () => {
    const { call, clock } = await startAlice();
    await call('POST', ALL, PLAN);
    clock.advance(3_600_000);
    expect((await call('POST', `${LIST}/adopt`, {})).json).toMatchObject({ state: 'adopted' });
  });

  test('/api/cache/ttl tells of the trial of a class', async () => {
    const { call } = await startAlice();
    const { json } = await call('POST', ALL, PLAN);
    const ttl = await call('GET', '/api/cache/ttl');
    const trial = { id: idOf(json), fresh: '1m', freshMs: 60_000, share: 0.1, until: RUNNING.until };
    expect(rowOf(ttl.json, 'list')).toMatchObject({ fresh: '30s', trial });
    expect(rowOf(ttl.json, 'evaluation')).toMatchObject({ trial: null });
  });

  test.each([
    [{ ...PLAN, share: 0 }, 'share: given 0; allowed: a number above 0 and up to 0.5'],
    [{ ...PLAN, share: 0.51 }, 'share: given 0.51; allowed'],
    [{ ...PLAN, for: '59s' }, 'for: given "59s"; allowed: a duration from 1m to 7d'],
    [{ ...PLAN, for: '8d' }, 'for: given "8d"; allowed'],
    [{ ...PLAN, fresh: '366d' }, 'fresh: given "366d"; allowed: the time to try'],
    [{ ...PLAN, fresh: '30s' }, 'fresh: given "30s", which is the time in force of list; allowed: any other time'],
    [{ ...PLAN, class: 'lists' }, 'class: given "lists"; allowed: one of list, evaluation'],
    [{ ...PLAN, maxStoreLoad: 1 }, 'maxStoreLoad: given 1; allowed: a number from 1.1 to 100'],
    [{ ...PLAN, maxErrors: 0 }, 'maxErrors: given 0; allowed: a number from 0.01 to 1'],
    [{ ...PLAN, stale: '1m' }, 'stale: unknown; allowed members: class, fresh, share, for, maxStoreLoad, maxErrors'],
    [{ class: 'list', fresh: '1m', share: 0.1 }, 'for: missing; allowed'],
  ])('%j is refused with what is allowed', async (body, message) => {
    const { call } = await startAlice();
    const refused = await call('POST', ALL, body);
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining(message)]);
    expect((await call('GET', ALL)).json).toEqual({ trials: [] });
  });

  test('a class that is none is not found', async () => {
    const { call } = await startAlice();
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/adopt'],
    ] as const) {
      const answer = await call(method, `${ALL}/lists${path}`, method === 'POST' ? {} : undefined);
      expect([answer.status, messageOf(answer)]).toEqual([404, expect.stringContaining('The classes are list, ')]);
    }
  });
});

async function startWithKey() {
  const running = await startTestGateway();
  gateway = running;
  running.store.put({ evaluations: [anEvaluation()] });
  const key = await running.issueKey({ perMinute: 100_000, perHour: 100_000 });
  return { running, key };
}

/** Trials are chosen by chance: another is begun until one has the key. */
async function startOneWith(running: TestGateway, wanted: boolean): Promise<void> {
  const keyHash = hash32(`v1:{evaluation:${EVALUATION_ID}}`);
  for (;;) {
    const { json } = await running.admin('POST', ALL, { class: 'evaluation', fresh: '10s', share: 0.5, for: '1h' });
    if (new TrialKeys({ id: idOf(json), share: 0.5 }).has(keyHash) === wanted) return;
    await running.admin('DELETE', `${ALL}/evaluation`);
  }
}

describe('in a gateway', () => {
  const CALL = `/v2/calls/${EVALUATION_ID}`;
  const SOON = { timeout: 10_000, interval: 50 };

  async function explained(running: TestGateway): Promise<unknown> {
    const path = `/api/cache/explain?path=${encodeURIComponent(CALL)}&workspace=${WORKSPACE_A}`;
    return (await running.admin('GET', path)).json;
  }

  test('a key of the trial is explained with the time that rules it, and goes by it', async () => {
    const { running, key } = await startWithKey();
    await running.get(CALL, { key });
    await startOneWith(running, true);
    expect(await explained(running)).toMatchObject({
      memory: { state: 'fresh' },
      times: { fresh: '10s', source: { fresh: 'trial' }, trial: { fresh: '10s' } },
    });
    running.clock.advance(10_000);
    const aged = await running.get(CALL, { key });
    expect(aged.headers['cache-status']).toContain('ttl=-');
    const { json } = await running.admin('GET', `${ALL}/evaluation`);
    expect(json).toMatchObject({ arms: { trial: { reads: 1, hits: 1 }, control: { reads: 0 } } });
  });

  test('any other key is not', async () => {
    const { running, key } = await startWithKey();
    await running.get(CALL, { key });
    await startOneWith(running, false);
    expect(await explained(running)).toMatchObject({
      times: { fresh: '5m', source: { fresh: 'default' }, trial: { fresh: '10s' } },
    });
    running.clock.advance(10_000);
    expect((await running.get(CALL, { key })).headers['cache-status']).toContain('hit');
    expect((await running.admin('GET', `${ALL}/evaluation`)).json).toMatchObject({
      arms: { trial: { reads: 0 }, control: { reads: 1, hits: 1 } },
    });
  });

  test('a store that begins to fail takes it back, and audit, log and metrics tell of it', async () => {
    const { running, key } = await startWithKey();
    await running.admin('POST', ALL, { class: 'evaluation', fresh: '10s', share: 0.5, for: '1h' });
    expect((await running.admin('GET', '/metrics')).text).toContain(
      'evalgate_cache_trial_running{class="evaluation"} 1\n',
    );
    running.store.fail(500);
    for (let index = 0; index < 60; index++) await running.get(`/v2/calls/ev_${index}`, { key });
    await vi.waitUntil(async () => {
      const { json } = await running.admin('GET', `${ALL}/evaluation`);
      return z.looseObject({ state: z.string() }).parse(json).state === 'rolled-back';
    }, SOON);
    expect((await running.admin('GET', `${ALL}/evaluation`)).text).toMatch(
      /"reason":"\d+ of \d+ \(100 %\) of all store calls failed in /,
    );
    expect((await running.admin('GET', '/api/audit')).json).toMatchObject({
      entries: [
        { who: 'evalgate', action: 'cache.trial.rollback', target: 'evaluation', to: { cause: 'store-errors' } },
        {},
        {},
      ],
    });
    const told = running.logLines.filter((line) => line.includes('a trial of a time went back by itself'));
    expect(told).toHaveLength(1);
    const { text } = await running.admin('GET', '/metrics');
    expect(text).toContain('evalgate_cache_trial_rollbacks_total{class="evaluation",reason="store-errors"} 1\n');
    expect(text).toContain('evalgate_cache_trial_running{class="evaluation"} 0\n');
    expect((await running.admin('POST', `${ALL}/evaluation/adopt`, {})).status).toBe(409);
  });
});
