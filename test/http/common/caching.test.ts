import { describe, expect, test, vi } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { HurriedTimers } from '../../support/hurried-timers.ts';
import { sendError } from '../../support/store-server.ts';
import {
  type EndpointRow,
  ENDPOINTS,
  errorText,
  GET_CALL,
  GET_CALL_TRANSCRIPT,
  GET_REPORT,
  GET_REPORT_DEAL_INSIGHTS,
  GET_REPORT_SCORECARD,
  GET_REPORT_TRANSCRIPT,
  GET_RUBRIC,
  LIST_CALLS,
  LIST_REPORTS,
  TEXTS,
} from './endpoints.ts';
import { keyFor, newSubject, putSubject, type Subject } from './subject.ts';

const timers = new HurriedTimers();

const gateway = await forFile(startTestGateway({ timers }));

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

interface Copy {
  readonly subject: Subject;
  readonly ask: () => Promise<Reply>;
  /** Calls to the store for this resource since the copy was made, the first one included. */
  readonly calls: () => number;
  /** Seconds for which it is fresh, as the first answer says. */
  readonly freshSeconds: number;
}

/** A record that has just been read for the first time. */
async function copyOf(endpoint: EndpointRow, target: TestGateway = gateway): Promise<Copy> {
  const subject = putSubject(target.store);
  const key = await keyFor(target, subject);
  const before = target.store.calls(endpoint.resource);
  const ask = (): Promise<Reply> => target.get(endpoint.path(subject), { key });
  const first = await ask();
  expect(first.status).toBe(200);
  expect(first.headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
  expect(first.headers.age).toBe('0');
  return { subject, ask, calls: () => target.store.calls(endpoint.resource) - before, freshSeconds: maxAgeOf(first) };
}

/** In seconds. */
function maxAgeOf({ headers }: Reply): number {
  return Number(/^private, max-age=(\d+), must-revalidate$/.exec(headers['cache-control'] ?? '')?.[1]);
}

/** Everything that the headers say of the copy. */
function cacheOf({ headers }: Reply): readonly unknown[] {
  return [headers['cache-status'], headers.age, headers['cache-control']];
}

/** Each class (C1) by the endpoints that read it. */
const CLASSES: readonly (readonly [EndpointRow, fresh: number, stale: number, error: number])[] = [
  [LIST_REPORTS, 30 * SECOND, 5 * MINUTE, HOUR],
  [LIST_CALLS, 30 * SECOND, 5 * MINUTE, HOUR],
  [GET_REPORT, 5 * MINUTE, HOUR, DAY],
  [GET_CALL, 5 * MINUTE, HOUR, DAY],
  [GET_REPORT_TRANSCRIPT, HOUR, DAY, 7 * DAY],
  [GET_CALL_TRANSCRIPT, HOUR, DAY, 7 * DAY],
  [GET_REPORT_SCORECARD, 15 * MINUTE, HOUR, DAY],
  [GET_RUBRIC, 10 * MINUTE, HOUR, DAY],
  [GET_REPORT_DEAL_INSIGHTS, 5 * MINUTE, HOUR, DAY],
];

describe.each(CLASSES)('$name', (endpoint, freshMs, staleMs, errorMs) => {
  test('C1, C2, C5: fresh: Age grows, max-age stands still, ttl is what is left, and the store is not asked', async () => {
    const { ask, calls, freshSeconds } = await copyOf(endpoint);
    expect(freshSeconds * SECOND).toBeLessThanOrEqual(freshMs);
    expect(freshSeconds * SECOND).toBeGreaterThanOrEqual(0.9 * freshMs - SECOND);
    gateway.clock.advance(7 * SECOND);
    expect(cacheOf(await ask())).toEqual([
      `evalgate; hit; ttl=${freshSeconds - 7}`,
      '7',
      `private, max-age=${freshSeconds}, must-revalidate`,
    ]);
    gateway.clock.advance((freshSeconds - 8) * SECOND);
    expect(cacheOf(await ask())).toEqual([
      'evalgate; hit; ttl=1',
      String(freshSeconds - 1),
      `private, max-age=${freshSeconds}, must-revalidate`,
    ]);
    expect(calls()).toBe(1);
  });

  test('C1, C2, C5: stale: served at once with max-age=0, while one refresh runs behind', async () => {
    const { ask, calls, freshSeconds } = await copyOf(endpoint);
    // The last second at which it must be stale still: staleness counts from the end of freshness.
    const age = freshSeconds + staleMs / SECOND - 1;
    gateway.clock.advance(age * SECOND);
    const gate = gateway.store.hold();
    const [first, second] = [await ask(), await ask()];
    for (const reply of [first, second]) {
      expect(reply.status).toBe(200);
      expect(cacheOf(reply)).toEqual([
        `evalgate; hit; ttl=${freshSeconds - age}; detail=stale-while-revalidate`,
        String(age),
        'private, max-age=0, must-revalidate',
      ]);
    }
    gate.release();
    await vi.waitFor(async () => expect((await ask()).headers.age).toBe('0'));
    expect(calls()).toBe(2);
  });

  test('C1, C2: past staleness the reader waits for the store', async () => {
    const { ask, calls, freshSeconds } = await copyOf(endpoint);
    gateway.clock.advance((freshSeconds + 1) * SECOND + staleMs);
    const reply = await ask();
    expect(reply.status).toBe(200);
    expect(reply.headers['cache-status']).toBe('evalgate; fwd=stale; stored');
    expect(reply.headers.age).toBe('0');
    expect(calls()).toBe(2);
  });

  test('C1, C2, C5: when the store fails the copy is served until its error time is over, and then a 500', async () => {
    const { ask, freshSeconds } = await copyOf(endpoint);
    const age = freshSeconds + errorMs / SECOND - 1;
    gateway.clock.advance(age * SECOND);
    const end = gateway.store.fail(503);
    const kept = await ask();
    expect(kept.status).toBe(200);
    expect(cacheOf(kept)).toEqual([
      `evalgate; hit; ttl=${freshSeconds - age}; detail=stale-if-error`,
      String(age),
      'private, max-age=0, must-revalidate',
    ]);
    gateway.clock.advance(2 * SECOND);
    const failed = await ask();
    end();
    expect(failed.status).toBe(500);
    expect(failed.text).toBe(errorText(endpoint, 500, TEXTS.failing));
  });
});

describe('whose call is spared', () => {
  test.each([
    ['the list', LIST_REPORTS, LIST_CALLS],
    ['an evaluation', GET_REPORT, GET_CALL],
    ['a transcript', GET_REPORT_TRANSCRIPT, GET_CALL_TRANSCRIPT],
  ])('C4: v1 and v2 share one call for %s', async (_what, first, second) => {
    const { subject, calls } = await copyOf(first);
    const key = await keyFor(gateway, subject);
    expect((await gateway.get(second.path(subject), { key })).headers['cache-status']).toMatch(/^evalgate; hit; ttl=/);
    expect(calls()).toBe(1);
  });

  test('C4: two keys share what they may both see, whatever else they may', async () => {
    const { subject, calls } = await copyOf(GET_CALL);
    const other = await keyFor(gateway, subject, { workspaceIds: [newSubject().workspaceId, subject.workspaceId] });
    expect((await gateway.get(GET_CALL.path(subject), { key: other })).status).toBe(200);
    expect(calls()).toBe(1);
  });

  test('C4: lists of different workspaces, filters and pages are different questions', async () => {
    const subject = putSubject(gateway.store);
    const wide = await keyFor(gateway, subject, { workspaceIds: [subject.workspaceId, newSubject().workspaceId] });
    const narrow = await keyFor(gateway, subject);
    const queries = ['', '?page=2', '?pageSize=10', '?search=a', '?search=b', '?scorecardId=a', '?scorecardId=A'];
    const before = gateway.store.calls('list');
    for (const key of [wide, narrow]) {
      for (const query of [...queries, ...queries]) await gateway.get(`/v2/calls${query}`, { key });
    }
    expect(gateway.store.calls('list') - before).toBe(2 * queries.length);
    await gateway.get(`/v2/calls?workspaceId=${subject.workspaceId}`, { key: wide });
    await gateway.get('/v2/calls?search=A&page=1&pageSize=50', { key: narrow });
    expect(gateway.store.calls('list') - before).toBe(2 * queries.length);
  });

  test('a list seeds the single reads of both surfaces, but none of their parts', async () => {
    const { subject } = await copyOf(LIST_REPORTS);
    const key = await keyFor(gateway, subject);
    const before = gateway.store.calls();
    gateway.clock.advance(3 * SECOND);
    for (const endpoint of [GET_REPORT, GET_CALL]) {
      const reply = await gateway.get(endpoint.path(subject), { key });
      expect(reply.headers['cache-status']).toMatch(/^evalgate; hit; ttl=2\d\d$/);
      expect(reply.headers.age).toBe('3');
    }
    expect(gateway.store.calls()).toBe(before);
    const part = await gateway.get(GET_REPORT_TRANSCRIPT.path(subject), { key });
    expect(part.headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
  });

  test('a searched list seeds nothing', async () => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    await gateway.get('/v2/calls?search=discovery', { key });
    const reply = await gateway.get(GET_CALL.path(subject), { key });
    expect(reply.headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
  });

  test.each(ENDPOINTS)('C5: clients cannot bypass the cache: $name', async (endpoint) => {
    const { subject, calls } = await copyOf(endpoint);
    const key = await keyFor(gateway, subject);
    for (const headers of [
      { 'cache-control': 'no-cache' },
      { 'cache-control': 'no-store, max-age=0' },
      { pragma: 'no-cache' },
      { 'cache-control': 'only-if-cached' },
    ]) {
      const reply = await gateway.get(endpoint.path(subject), { key, headers });
      expect(reply.status).toBe(200);
      expect(reply.headers['cache-status']).toMatch(/^evalgate; hit; /);
    }
    expect(calls()).toBe(1);
  });
});

describe('many at once', () => {
  test.each([LIST_CALLS, GET_REPORT, GET_RUBRIC])(
    'C5: a reader who waited for the call of another is answered that it did: $name',
    async (endpoint) => {
      const subject = putSubject(gateway.store);
      const key = await keyFor(gateway, subject);
      const before = gateway.store.calls();
      const gate = gateway.store.hold();
      const first = gateway.get(endpoint.path(subject), { key });
      await gateway.store.waitForCalls(before + 1);
      const second = gateway.get(endpoint.path(subject), { key });
      // When this is answered, everything sent before it has been read.
      await gateway.get('/v2/calls?page=0', { key });
      gate.release();
      const replies = [await first, await second];
      expect(replies.map((reply) => reply.headers['cache-status'])).toEqual([
        'evalgate; fwd=uri-miss; stored',
        'evalgate; fwd=uri-miss; collapsed',
      ]);
      expect(replies.map(({ status }) => status)).toEqual([200, 200]);
      expect(replies[1]?.text).toBe(replies[0]?.text);
      expect(gateway.store.calls() - before).toBe(1);
    },
  );

  test('C4: a list narrowed to one workspace waits for the call of a key that has only this one', async () => {
    const subject = putSubject(gateway.store);
    const both = [subject.workspaceId, newSubject().workspaceId];
    const [narrow, wide] = [await keyFor(gateway, subject), await keyFor(gateway, subject, { workspaceIds: both })];
    const before = gateway.store.calls();
    const gate = gateway.store.hold();
    const first = gateway.get('/v2/calls', { key: narrow });
    await gateway.store.waitForCalls(before + 1);
    const second = gateway.get(`/v2/calls?workspaceId=${subject.workspaceId}`, { key: wide });
    await gateway.get('/v2/calls?page=0', { key: wide });
    gate.release();
    expect((await first).headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
    expect((await second).headers['cache-status']).toBe('evalgate; fwd=uri-miss; collapsed');
    expect((await second).text).toBe((await first).text);
    expect(gateway.store.calls() - before).toBe(1);
  });
});

describe('when the store is slow', () => {
  test('C3: with a copy to serve a reader waits 1 s at most, and the fetch goes on', async () => {
    const { ask, calls, freshSeconds } = await copyOf(GET_CALL);
    gateway.clock.advance((freshSeconds + 1) * SECOND + HOUR);
    const gate = gateway.store.hold();
    const before = gateway.store.calls();
    const patient = ask();
    await gateway.store.waitForCalls(before + 1);
    // For one who comes when the call has taken a second already, the time is up.
    gateway.clock.advance(SECOND);
    const late = await ask();
    expect(late.status).toBe(200);
    expect(late.headers['cache-status']).toMatch(/^evalgate; hit; ttl=-36\d\d; detail=stale-if-error$/);
    gate.release();
    expect((await patient).headers['cache-status']).toBe('evalgate; fwd=stale; stored');
    expect((await ask()).headers['cache-status']).toMatch(/^evalgate; hit; ttl=\d+$/);
    expect(calls()).toBe(2);
  });

  test('C3: the first one who waits gets the copy too when the time is up', async () => {
    const { ask, freshSeconds } = await copyOf(GET_RUBRIC);
    gateway.clock.advance((freshSeconds + 1) * SECOND + HOUR);
    const gate = gateway.store.hold();
    const before = gateway.store.calls();
    const first = ask();
    await gateway.store.waitForCalls(before + 1);
    timers.elapse(SECOND);
    gate.release();
    expect((await first).headers['cache-status']).toMatch(/detail=stale-if-error$/);
  });

  test('a copy that is over while the store is waited for is not served when that fails', async () => {
    const { ask, freshSeconds, calls } = await copyOf(GET_CALL);
    gateway.clock.advance(freshSeconds * SECOND + DAY - SECOND / 2);
    const gate = gateway.store.hold();
    const end = gateway.store.fail(503);
    const waiting = ask();
    await vi.waitFor(() => expect(calls()).toBe(2));
    gateway.clock.advance(2 * SECOND);
    gate.release();
    expect((await waiting).status).toBe(500);
    end();
  });

  test('a refresh that failed is tried again after a second, and not by each reader', async () => {
    const { ask, calls, freshSeconds } = await copyOf(GET_CALL);
    gateway.clock.advance((freshSeconds + 1) * SECOND);
    const end = gateway.store.fail(503);
    await ask();
    await vi.waitFor(() => expect(calls()).toBe(2));
    for (let read = 0; read < 20; read += 1) await ask();
    expect(calls()).toBe(2);
    gateway.clock.advance(SECOND);
    await ask();
    await vi.waitFor(() => expect(calls()).toBe(3));
    end();
  });
});

describe('the life of a copy', () => {
  test.each([
    { ...GET_REPORT, table: 'evaluations' },
    { ...GET_REPORT_TRANSCRIPT, table: 'transcripts' },
    { ...GET_REPORT_SCORECARD, table: 'scoredCards' },
    { ...GET_REPORT_DEAL_INSIGHTS, table: 'dealInsights' },
    { ...GET_RUBRIC, table: 'scorecards' },
  ] as const)("Q9: $name: the store's 404 replaces it at once", async ({ table, ...endpoint }) => {
    const { subject, ask, freshSeconds } = await copyOf(endpoint);
    gateway.store[table].delete(endpoint.resource === 'rubric' ? subject.scorecardId : subject.id);
    gateway.clock.advance((freshSeconds + 1) * SECOND);
    const last = await ask();
    expect(last.headers['cache-status']).toMatch(/detail=stale-while-revalidate$/);
    await vi.waitFor(async () => expect((await ask()).status).toBe(404));
    const end = gateway.store.fail(503);
    gateway.clock.advance(16 * SECOND);
    const gone = await ask();
    end();
    // Nothing is left that could be served instead.
    expect(gone.status).toBe(500);
  });

  test("C4: a record that the store calls another workspace's ends the copy, and is not asked for again at once", async () => {
    const { ask, calls, freshSeconds } = await copyOf(GET_CALL);
    gateway.clock.advance((freshSeconds + 1) * SECOND + HOUR);
    gateway.store.setFaults({ misbehave: 'wrong-workspace' });
    for (let read = 0; read < 3; read += 1) expect((await ask()).status).toBe(404);
    gateway.store.setFaults({});
    expect(calls()).toBe(2);
    gateway.clock.advance(MINUTE);
    expect((await ask()).headers['cache-status']).toBe('evalgate; fwd=stale; stored');
  });

  test('Q9: any other 404 of the store is its failure: the copy stays', async () => {
    const { ask, freshSeconds } = await copyOf(GET_REPORT);
    gateway.clock.advance((freshSeconds + 1) * SECOND + HOUR);
    const end = gateway.store.override(/^/, (_request, response) => sendError(response, 404, 'NO_ROUTE'));
    const reply = await ask();
    end();
    expect(reply.status).toBe(200);
    expect(reply.headers['cache-status']).toMatch(/detail=stale-if-error$/);
  });

  test('a malformed answer is a failure too: the copy stays', async () => {
    const { subject, ask, freshSeconds } = await copyOf(GET_CALL);
    gateway.clock.advance((freshSeconds + 1) * SECOND + HOUR);
    gateway.store.evaluations.set(subject.id, { _id: subject.id });
    expect((await ask()).headers['cache-status']).toMatch(/detail=stale-if-error$/);
  });

  test('a refresh asks the store with its own ETag, and a 304 renews the copy', async () => {
    const { ask, freshSeconds } = await copyOf(GET_CALL);
    const first = await ask();
    gateway.clock.advance((freshSeconds + 1) * SECOND + HOUR);
    const renewed = await ask();
    expect(gateway.store.requests.at(-1)?.headers['if-none-match']).toMatch(/^".+"$/);
    expect(gateway.store.requests.at(-1)?.headers['if-none-match']).not.toBe(first.headers.etag);
    expect(renewed.headers.etag).toBe(first.headers.etag);
    expect(renewed.text).toBe(first.text);
    expect(renewed.headers.age).toBe('0');
  });

  test('C9: after the clock was set back a copy is of unknown age: stale, and renewed by one call', async () => {
    const { ask } = await copyOf(GET_CALL);
    gateway.clock.advance(-MINUTE);
    const calls = gateway.store.calls();
    expect(cacheOf(await ask())).toEqual([
      'evalgate; hit; ttl=0; detail=stale-while-revalidate',
      undefined,
      'private, max-age=0, must-revalidate',
    ]);
    await vi.waitFor(async () => expect((await ask()).headers.age).toBe('0'));
    expect((await ask()).headers['cache-status']).toMatch(/^evalgate; hit; ttl=[1-9]/);
    expect(gateway.store.calls()).toBe(calls + 1);
    const warned = gateway.logLines.filter((line) => line.includes('a copy is from the future'));
    expect(warned).toHaveLength(1);
    gateway.clock.advance(MINUTE);
  });

  test('a change is seen as soon as the refresh has landed', async () => {
    const { subject, ask, freshSeconds } = await copyOf(GET_CALL);
    putSubject(gateway.store, subject, { title: 'Changed' });
    expect((await ask()).text).not.toContain('Changed');
    gateway.clock.advance((freshSeconds + 1) * SECOND);
    expect((await ask()).text).not.toContain('Changed');
    await vi.waitFor(async () => expect((await ask()).text).toContain('Changed'));
  });
});

describe('times of its own', () => {
  test('C1, C5: a class that is never kept costs a call each time, and nothing is said to be stored', async () => {
    const env = { CACHE_LIST_FRESH: '0s', CACHE_LIST_STALE: '0s', CACHE_LIST_ERROR: '0s' };
    const uncached = await startTestGateway({ env });
    const subject = putSubject(uncached.store);
    const key = await keyFor(uncached, subject);
    const replies = [await uncached.get('/v2/calls', { key }), await uncached.get('/v2/calls', { key })];
    const calls = uncached.store.calls('list');
    await uncached.close();
    expect(replies.map(cacheOf)).toEqual([
      ['evalgate; fwd=uri-miss', '0', 'private, max-age=0, must-revalidate'],
      // Its validator still saves a transfer.
      ['evalgate; fwd=stale', '0', 'private, max-age=0, must-revalidate'],
    ]);
    expect(calls).toBe(2);
  });

  test('C2: jitter shortens freshness by at most a tenth, and not by the same for all', async () => {
    const lengths: number[] = [];
    for (let copy = 0; copy < 40; copy += 1) {
      const subject = putSubject(gateway.store);
      const reply = await gateway.get(GET_RUBRIC.path(subject), { key: await keyFor(gateway, subject) });
      lengths.push(maxAgeOf(reply));
    }
    expect(Math.max(...lengths)).toBeLessThanOrEqual(600);
    expect(Math.min(...lengths)).toBeGreaterThanOrEqual(539);
    expect(new Set(lengths).size).toBeGreaterThan(10);
  });
});
