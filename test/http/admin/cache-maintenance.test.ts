import { createHash } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { anApiKeyRecord, anEvaluation, aTranscript, EVALUATION_ID, WORKSPACE_A } from '../../support/records.ts';
import { messageOf, type RunningAdmin, startAdmin, START, TOKEN } from './harness.ts';

const PATH = '/api/cache/maintenance';
const OFF = { active: false, until: null, leftMs: 0, by: null, since: null };

let gateway: TestGateway | undefined;
let admin: RunningAdmin | undefined;
afterEach(async () => {
  await gateway?.close();
  await admin?.close();
  gateway = undefined;
  admin = undefined;
});

const authorization = `Bearer ${TOKEN}`;
const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
const REPORT = `${LIST}/${EVALUATION_ID}`;

async function startAlice(): Promise<RunningAdmin> {
  admin = await startAdmin({ tokens: [{ name: 'alice', token: TOKEN }] });
  return admin;
}

async function startWithKey(): Promise<{ readonly running: TestGateway; readonly key: string }> {
  const running = await startTestGateway();
  gateway = running;
  running.store.put({ evaluations: [anEvaluation()], transcripts: [aTranscript()] });
  const key = await running.issueKey({ perMinute: 100_000, perHour: 100_000 });
  return { running, key };
}

function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

describe('the endpoint', () => {
  test('is off until it is begun, counts down, and ends by itself', async () => {
    const { call, get, clock } = await startAlice();
    const now = async () => (await get(PATH, { authorization })).json;
    expect(await now()).toEqual(OFF);
    const begun = await call('PUT', PATH, { for: '30m' }, { authorization });
    const on = { active: true, until: '2026-01-15T12:30:00.000Z', leftMs: 1_800_000, by: 'alice', since: START };
    expect([begun.status, begun.json]).toEqual([200, on]);
    clock.advance(1_799_999);
    expect(await now()).toEqual({ ...on, leftMs: 1 });
    clock.advance(1);
    expect(await now()).toEqual(OFF);
  });

  test('takes a time too, moves the end of one that is on, and is ended', async () => {
    const { call, clock } = await startAlice();
    await call('PUT', PATH, { for: '1d' }, { authorization });
    clock.advance(1000);
    const moved = await call('PUT', PATH, { until: '2026-01-15T13:00:01+01:00' }, { authorization });
    expect(messageOf(moved)).toBe(
      "The body has 1 fault; nothing was changed.\n- until: given a time that is in the past, by this gateway's clock (2026-01-15T12:00:01.000Z); allowed: a time within the next 24 hours in ISO 8601, such as 2026-01-15T12:00:00Z",
    );
    const again = await call('PUT', PATH, { until: '2026-01-15T13:00:02+01:00' }, { authorization });
    expect(again.json).toEqual({
      active: true,
      until: '2026-01-15T12:00:02.000Z',
      leftMs: 1000,
      by: 'alice',
      since: START,
    });
    expect((await call('DELETE', PATH, undefined, { authorization })).json).toEqual(OFF);
    expect((await call('DELETE', PATH, undefined, { authorization })).json).toEqual(OFF);
  });

  test('every change is in the audit, with who, from what and to what; ending what is off is none', async () => {
    const { call, audit } = await startAlice();
    await call('DELETE', PATH, undefined, { authorization });
    await call('PUT', PATH, { for: '1h' }, { authorization });
    await call('PUT', PATH, { for: '2h' }, { authorization });
    await call('DELETE', PATH, undefined, { authorization });
    const about = { at: START, who: 'alice', target: 'store' };
    const first = { until: '2026-01-15T13:00:00.000Z', by: 'alice' };
    const second = { until: '2026-01-15T14:00:00.000Z', by: 'alice' };
    expect(await audit.entries()).toEqual([
      { ...about, action: 'cache.maintenance.off', from: second, to: null },
      { ...about, action: 'cache.maintenance.move', from: first, to: second },
      { ...about, action: 'cache.maintenance.on', from: null, to: first },
    ]);
  });

  const ONE = 'the body: holds neither for nor until; allowed: one of them: for: a duration above 0s and up to 1d';
  test.each([
    [{}, ONE],
    [{ for: '1h', until: '2026-01-15T13:00:00Z' }, 'the body: holds both for and until; allowed: one of them'],
    [{ for: '0s' }, 'for: given "0s"; allowed: a duration above 0s and up to 1d, such as 90s, 30m or 2h'],
    [{ for: '25h' }, 'for: given "25h"; allowed: a duration above 0s and up to 1d'],
    [{ for: 30 }, 'for: given 30; allowed: a duration above 0s and up to 1d'],
    [{ until: 'tomorrow' }, 'until: given "tomorrow"; allowed: a time within the next 24 hours in ISO 8601'],
    [{ until: '2026-01-15T13:00:00' }, 'until: given "2026-01-15T13:00:00"; allowed: a time within the next 24 hours'],
    [{ until: '2026-01-16T12:00:00.001Z' }, 'until: given a time that is 86400001ms from now, by this gateway'],
    [{ until: START }, 'until: given a time that is in the past'],
    [{ for: '1h', who: 'me' }, 'who: unknown; allowed members: for, until'],
    [[], 'the body: given an array of 0; allowed: a JSON object'],
  ])('%j is refused, and nothing is changed', async (body, fault) => {
    const { call, audit, get } = await startAlice();
    const refused = await call('PUT', PATH, body, { authorization });
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining(fault)]);
    expect((await get(PATH, { authorization })).json).toEqual(OFF);
    expect(await audit.entries()).toEqual([]);
  });
});

describe('while it is on', () => {
  test('nothing at all is sent to the store under load, with fresh, stale, expired and no copies', async () => {
    const { running, key } = await startWithKey();
    const statuses = async (path: string) => {
      const replies = await Promise.all(Array.from({ length: 40 }, () => running.get(path, { key })));
      return [...new Set(replies.map(({ status, headers }) => `${status} ${String(headers['cache-status'])}`))];
    };
    await running.get(LIST, { key });
    await running.get(`${REPORT}/transcript`, { key });
    running.clock.advance(240_000);
    const calls = running.store.requests.length;
    await running.admin('PUT', PATH, { for: '2h' });
    expect(await statuses(`${REPORT}/transcript`)).toEqual([expect.stringMatching(/^200 evalgate; hit; ttl=\d+$/)]);
    expect(await statuses(LIST)).toEqual([
      expect.stringMatching(/^200 evalgate; hit; ttl=-\d+; detail=stale-while-revalidate$/),
    ]);
    expect(await statuses(`${LIST}?page=2`)).toEqual(['500 undefined']);
    running.clock.advance(600_000);
    expect(await statuses(LIST)).toEqual([
      expect.stringMatching(/^200 evalgate; hit; ttl=-\d+; detail=stale-if-error$/),
    ]);
    running.clock.advance(3_600_000);
    expect(await statuses(LIST)).toEqual(['500 undefined']);
    expect(running.store.requests.length).toBe(calls);
  });

  test('S2: what has no copy is a 500 that says so and when to try again', async () => {
    const { running, key } = await startWithKey();
    await running.admin('PUT', PATH, { for: '45s' });
    const { status, headers, text } = await running.get(LIST, { key });
    expect([status, headers['retry-after'], text]).toEqual([
      500,
      '45',
      '{"reports":[],"error":"The evaluation store is under maintenance, and there is no usable copy of this. Try again later."}',
    ]);
    running.clock.advance(45_000);
    expect((await running.get(LIST, { key })).status).toBe(200);
  });

  test('/readyz and the metrics tell of it, and the store is not taken for failing', async () => {
    const { running, key } = await startWithKey();
    await running.get(LIST, { key });
    await running.admin('PUT', PATH, { for: '45s' });
    await running.get(REPORT + '/transcript', { key });
    const { status, json } = await running.admin('GET', '/readyz');
    expect([status, json]).toMatchObject([
      200,
      {
        dependencies: [
          { name: 'store', status: 'ok' },
          { name: 'capacity', status: 'ok' },
          {
            name: 'maintenance',
            status: 'degraded',
            since: '2026-01-15T12:00:00.000Z',
            detail: 'the store is asked nothing until 2026-01-15T12:00:45.000Z',
          },
        ],
      },
    ]);
    const { text } = await running.admin('GET', '/metrics');
    expect(text).toContain('evalgate_maintenance_active 1\n');
    expect(text).not.toContain('paused');
    running.clock.advance(45_000);
    expect((await running.admin('GET', '/metrics')).text).toContain('evalgate_maintenance_active 0\n');
    expect((await running.admin('GET', '/readyz')).text).toContain('"name":"maintenance","status":"ok"');
  });

  test('with KEYS_SOURCE=upstream no key is asked of the store; one that it has confirmed goes on', async () => {
    gateway = await startTestGateway({ env: { KEYS_SOURCE: 'upstream' } });
    const { store, clock } = gateway;
    const record = anApiKeyRecord({ workspaceIds: [WORKSPACE_A], scopes: ['reports.read'] });
    store.put({
      evaluations: [anEvaluation()],
      apiKeys: { [hashOf('known-key')]: record, [hashOf('new-key')]: { ...record, keyId: 'key_new' } },
    });
    expect((await gateway.get(LIST, { key: 'known-key' })).status).toBe(200);
    const calls = store.requests.length;
    await gateway.admin('PUT', PATH, { for: '1h' });
    expect((await gateway.get(LIST, { key: 'new-key' })).status).toBe(500);
    clock.advance(120_000);
    expect((await gateway.get(LIST, { key: 'known-key' })).status).toBe(200);
    expect(store.requests.length).toBe(calls);
    await gateway.admin('DELETE', PATH);
    expect((await gateway.get(LIST, { key: 'new-key' })).status).toBe(200);
  });
});
