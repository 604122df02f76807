import { beforeEach, describe, expect, test, vi } from 'vitest';
import { forTest } from '../../support/opened.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { anEvaluation, aTranscript, EVALUATION_ID, WORKSPACE_A } from '../../support/records.ts';
import { auditOf, logOf, messageOf, readinessOf, samplesOf, START, TOKENS } from '../../support/admin.ts';

const PATH = '/api/cache/maintenance';
const OFF = { active: false, until: null, leftMs: 0, by: null, since: null };

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await forTest(startTestGateway({ env: TOKENS }));
});

const put = (body: unknown) => gateway.admin('PUT', PATH, body);
const end = () => gateway.admin('DELETE', PATH);
const now = async () => (await gateway.admin('GET', PATH)).json;
const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
const REPORT = `${LIST}/${EVALUATION_ID}`;

/** Puts what is read into the store, and issues a key for it. */
function putRecords(): Promise<string> {
  gateway.store.put({ evaluations: [anEvaluation()], transcripts: [aTranscript()] });
  return gateway.issueKey({ perMinute: 100_000, perHour: 100_000 });
}

describe('the endpoint', () => {
  test('is off until it is begun, counts down, and ends by itself', async () => {
    expect(await now()).toEqual(OFF);
    const begun = await put({ for: '30m' });
    const on = { active: true, until: '2026-01-15T12:30:00.000Z', leftMs: 1_800_000, by: 'alice', since: START };
    expect([begun.status, begun.json]).toEqual([200, on]);
    gateway.clock.advance(1_799_999);
    expect(await now()).toEqual({ ...on, leftMs: 1 });
    gateway.clock.advance(1);
    expect(await now()).toEqual(OFF);
  });

  test('takes a time too, moves the end of one that is on, and is ended', async () => {
    await put({ for: '1d' });
    gateway.clock.advance(1000);
    const moved = await put({ until: '2026-01-15T13:00:01+01:00' });
    expect(messageOf(moved)).toBe(
      "The body has 1 fault; nothing was changed.\n- until: given a time that is in the past, by this gateway's clock (2026-01-15T12:00:01.000Z); allowed: a time within the next 24 hours in ISO 8601, such as 2026-01-15T12:00:00Z",
    );
    const again = await put({ until: '2026-01-15T13:00:02+01:00' });
    expect(again.json).toEqual({
      active: true,
      until: '2026-01-15T12:00:02.000Z',
      leftMs: 1000,
      by: 'alice',
      since: START,
    });
    expect((await end()).json).toEqual(OFF);
    expect((await end()).json).toEqual(OFF);
  });

  test('every change is in the audit, with who, from what and to what; ending what is off is none', async () => {
    await end();
    await put({ for: '1h' });
    await put({ for: '2h' });
    await end();
    const about = { at: START, who: 'alice', target: 'store' };
    const first = { until: '2026-01-15T13:00:00.000Z', by: 'alice' };
    const second = { until: '2026-01-15T14:00:00.000Z', by: 'alice' };
    expect(await auditOf(gateway)).toEqual([
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
    const refused = await put(body);
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining(fault)]);
    expect(await now()).toEqual(OFF);
    expect(await auditOf(gateway)).toEqual([]);
  });
});

describe('while it is on', () => {
  test('nothing at all is sent to the store under load, with fresh, stale, expired and no copies', async () => {
    const key = await putRecords();
    const statuses = async (path: string) => {
      const replies = await Promise.all(Array.from({ length: 40 }, () => gateway.get(path, { key })));
      return [...new Set(replies.map(({ status, headers }) => `${status} ${String(headers['cache-status'])}`))];
    };
    await gateway.get(LIST, { key });
    await gateway.get(`${REPORT}/transcript`, { key });
    gateway.clock.advance(240_000);
    const calls = gateway.store.requests.length;
    await gateway.admin('PUT', PATH, { for: '2h' });
    expect(await statuses(`${REPORT}/transcript`)).toEqual([expect.stringMatching(/^200 evalgate; hit; ttl=\d+$/)]);
    expect(await statuses(LIST)).toEqual([
      expect.stringMatching(/^200 evalgate; hit; ttl=-\d+; detail=stale-while-revalidate$/),
    ]);
    expect(await statuses(`${LIST}?page=2`)).toEqual(['500 undefined']);
    gateway.clock.advance(600_000);
    expect(await statuses(LIST)).toEqual([
      expect.stringMatching(/^200 evalgate; hit; ttl=-\d+; detail=stale-if-error$/),
    ]);
    gateway.clock.advance(3_600_000);
    expect(await statuses(LIST)).toEqual(['500 undefined']);
    expect(gateway.store.requests.length).toBe(calls);
  });

  test('S2: what has no copy is a 500 that says so and when to try again', async () => {
    const key = await putRecords();
    await gateway.admin('PUT', PATH, { for: '45s' });
    const { status, headers, text } = await gateway.get(LIST, { key });
    expect([status, headers['retry-after'], text]).toEqual([
      500,
      '45',
      '{"reports":[],"error":"The evaluation store is under maintenance, and there is no usable copy of this. Try again later."}',
    ]);
    gateway.clock.advance(45_000);
    expect((await gateway.get(LIST, { key })).status).toBe(200);
  });

  test('/readyz, the metrics and the log report it, and the store is not taken for failing', async () => {
    const key = await putRecords();
    await gateway.get(LIST, { key });
    await put({ for: '45s' });
    await gateway.get(REPORT + '/transcript', { key });
    const during = await readinessOf(gateway);
    expect([during.code, during.statuses]).toMatchObject([200, { store: 'ok', maintenance: 'degraded' }]);
    const detail = 'the store is asked nothing until 2026-01-15T12:00:45.000Z';
    expect(during.of('maintenance')).toMatchObject({ since: START, detail });
    expect(await samplesOf(gateway, 'evalgate_maintenance_active')).toEqual({ evalgate_maintenance_active: 1 });
    expect((await gateway.admin('GET', '/metrics')).text).not.toContain('outcome="paused"');
    expect(logOf(gateway, 'maintenance: the store is asked nothing')).toMatchObject([{ level: 'warn', detail }]);

    // Its end is dated by when it was, however late somebody looks.
    gateway.clock.advance(90_000);
    expect((await readinessOf(gateway)).of('maintenance')).toMatchObject({
      status: 'ok',
      since: '2026-01-15T12:00:45.000Z',
      detail: 'off',
    });
    expect(await samplesOf(gateway, 'evalgate_maintenance_active')).toEqual({ evalgate_maintenance_active: 0 });
    expect(logOf(gateway, 'maintenance has ended')).toMatchObject([{ level: 'info', lastedMs: 45_000 }]);
  });

  test('an end that is moved is no second line, and one that somebody brings about is dated by that', async () => {
    await put({ for: '30m' });
    await put({ for: '60m' });
    gateway.clock.advance(2_700_000);
    await end();
    expect(logOf(gateway, 'maintenance: the store is asked nothing')).toHaveLength(1);
    expect(logOf(gateway, 'maintenance has ended')).toMatchObject([{ lastedMs: 2_700_000 }]);
    expect((await readinessOf(gateway)).of('maintenance')?.since).toBe('2026-01-15T12:45:00.000Z');
  });

  test('an end that nobody asks about is logged when it comes', async () => {
    await put({ for: '250ms' });
    gateway.clock.advance(250);
    await vi.waitFor(() => expect(logOf(gateway, 'maintenance has ended')).toHaveLength(1), 5000);
  });
});
