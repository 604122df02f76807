import { describe, expect, test } from 'vitest';
import { Derivation } from '../../../src/cache/entry.ts';
import type { ReadReport, RefreshReport } from '../../../src/cache/hooks.ts';
import type { ListQuery } from '../../../src/upstream/store.ts';
import { CONTEXT, createRig, recordOf, SURELY_FRESH_MS, TEST_TIMES } from '../../support/cache-rig.ts';
import { storeFailure } from '../../support/counting-store.ts';
import { settle } from '../../support/manual-timers.ts';
import { promised } from '../../support/promised.ts';
import { anEvaluation, aTranscript, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const { freshMs, staleMs, errorMs } = TEST_TIMES;
const query: ListQuery = { workspaceIds: [WORKSPACE_A], search: null, scorecardId: null, offset: 0, limit: 50 };

describe('hits and misses', () => {
  test('C1: while an answer is fresh the store is not asked again', async () => {
    const { store, timers, reader } = createRig();
    const first = await reader.transcript('ev_1', CONTEXT);
    expect(first).toMatchObject({ outcome: 'miss', tier: null, ageMs: 0, stored: true, forward: 'uri-miss' });
    await timers.advance(SURELY_FRESH_MS);
    const second = await reader.transcript('ev_1', CONTEXT);
    expect(second).toMatchObject({ outcome: 'hit', tier: 'memory', ageMs: SURELY_FRESH_MS, stored: true });
    expect(second.entry).toBe(first.entry);
    expect(second.ttlMs).toBeGreaterThan(0);
    expect(second.ttlMs).toBeLessThanOrEqual(freshMs - SURELY_FRESH_MS);
    expect(store.count()).toBe(1);
  });

  test('each of the six questions has an entry of its own', async () => {
    const { store, reader } = createRig();
    store.evaluations.set('x', anEvaluation({ _id: 'x', workspaceId: WORKSPACE_B }));
    for (let round = 0; round < 2; round++) {
      expect(recordOf(await reader.list(query, CONTEXT))).toEqual({ items: [], total: 0 });
      expect(recordOf(await reader.evaluation('x', CONTEXT))._id).toBe('x');
      expect(recordOf(await reader.transcript('x', CONTEXT)).body).toBe('Sam: 1');
      expect(recordOf(await reader.scorecard('x', CONTEXT)).evaluationId).toBe('x');
      expect(recordOf(await reader.dealInsights('x', CONTEXT)).permalink).toBe('/1');
      expect(recordOf(await reader.rubric('x', CONTEXT)).name).toBe('Rubric 1');
    }
    expect(store.calls.map(({ kind }) => kind)).toEqual([
      'list',
      'evaluation',
      'transcript',
      'scorecard',
      'dealInsights',
      'rubric',
    ]);
  });

  test('equal questions share an entry, whatever they look like', async () => {
    const { store, reader } = createRig();
    await reader.list({ ...query, workspaceIds: [WORKSPACE_A, WORKSPACE_B], search: 'NORTH' }, CONTEXT);
    const again = { ...query, workspaceIds: [WORKSPACE_B, WORKSPACE_A], search: 'north' };
    expect((await reader.list(again, CONTEXT)).outcome).toBe('hit');
    expect(store.count()).toBe(1);
  });

  test('the call carries the request id and the trace of the reader who led it', async () => {
    const { store, reader } = createRig();
    await reader.transcript('ev_1', { ...CONTEXT, requestId: 'r-7', traceparent: '00-aa-bb-01' });
    expect(store.calls[0]?.options).toMatchObject({ requestId: 'r-7', traceparent: '00-aa-bb-01' });
    expect(store.calls[0]?.options).not.toHaveProperty('ifNoneMatch');
  });

  test('readers that come at once cost one call: one misses, the others are collapsed, all get the same entry', async () => {
    const { store, reader } = createRig();
    const reads = await Promise.all(Array.from({ length: 100 }, async () => await reader.transcript('ev_1', CONTEXT)));
    expect(store.count()).toBe(1);
    expect(new Set(reads.map(({ entry }) => entry)).size).toBe(1);
    expect(reads.filter(({ outcome }) => outcome === 'miss').length).toBe(1);
    expect(reads.filter(({ outcome }) => outcome === 'collapsed').length).toBe(99);
  });
});

describe('times', () => {
  test('C1: a stale copy is served at once, and exactly one refresh runs behind', async () => {
    const { store, timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs);
    store.revision = 2;
    store.hold();
    const reads = await Promise.all(Array.from({ length: 50 }, async () => await reader.transcript('ev_1', CONTEXT)));
    expect(new Set(reads.map(({ outcome }) => outcome))).toEqual(new Set(['stale-while-revalidate']));
    expect(reads[0]?.ttlMs).toBeLessThanOrEqual(0);
    expect(recordOf(await reader.transcript('ev_1', CONTEXT)).body).toBe('Sam: 1');
    expect(store.count()).toBe(2);
    store.release();
    await settle();
    const after = await reader.transcript('ev_1', CONTEXT);
    expect(after).toMatchObject({ outcome: 'hit', tier: 'memory', ageMs: 0 });
    expect(recordOf(after).body).toBe('Sam: 2');
    expect(store.count()).toBe(2);
  });

  test('C1: past its stale time a copy waits for the store, and the call is told as one for an expired copy', async () => {
    const { store, timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + staleMs);
    expect(await reader.transcript('ev_1', CONTEXT)).toMatchObject({ outcome: 'miss', forward: 'stale', ageMs: 0 });
    expect(store.count()).toBe(2);
  });

  test('C1: when the store fails, a copy within its error time is served', async () => {
    const { store, timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + staleMs);
    store.failure = storeFailure();
    const read = await reader.transcript('ev_1', CONTEXT);
    expect(read).toMatchObject({ outcome: 'stale-if-error', tier: 'memory', ageMs: freshMs + staleMs, stored: true });
    expect(store.count()).toBe(2);
  });

  test('C1: past its error time it is not', async () => {
    const { store, timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + errorMs);
    store.failure = storeFailure();
    await expect(reader.transcript('ev_1', CONTEXT)).rejects.toBe(store.failure);
  });

  test('a clock that is set back makes no answer younger than new', async () => {
    const { timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    timers.clock.advance(-60_000);
    const read = await reader.transcript('ev_1', CONTEXT);
    expect(read.ageMs).toBe(0);
    expect(read.ttlMs).toBeLessThanOrEqual(freshMs);
  });

  test('C2: a change of the times rules what is stored already', async () => {
    const { store, timers, times, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(5000);
    times.set('transcript', { freshMs: 1000, staleMs: 0 });
    expect((await reader.transcript('ev_1', CONTEXT)).outcome).toBe('miss');
    await timers.advance(freshMs * 10);
    times.set('transcript', { freshMs: freshMs * 20 });
    expect((await reader.transcript('ev_1', CONTEXT)).outcome).toBe('hit');
    expect(store.count()).toBe(2);
  });

  test('a class without any time is asked for anew each time, and not said to be stored', async () => {
    const { store, times, reader } = createRig();
    times.set('transcript', { freshMs: 0, staleMs: 0, errorMs: 0 });
    for (let round = 0; round < 3; round++) {
      expect(await reader.transcript('ev_1', CONTEXT)).toMatchObject({ outcome: 'miss', stored: false });
    }
    expect(store.count()).toBe(3);
  });
});

describe('a slow or failing store', () => {
  test('C3: with a copy usable on error a reader waits 1 s and no longer, while the fetch goes on', async () => {
    const { store, timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + staleMs);
    store.revision = 2;
    store.hold();
    let isAnswered = false;
    const read = promised(() => reader.transcript('ev_1', CONTEXT)).finally(() => {
      isAnswered = true;
    });
    await timers.advance(999);
    expect(isAnswered).toBe(false);
    await timers.advance(1);
    expect(isAnswered).toBe(true);
    expect((await read).outcome).toBe('stale-if-error');
    store.release();
    await settle();
    expect(recordOf(await reader.transcript('ev_1', CONTEXT)).body).toBe('Sam: 2');
    expect(store.count()).toBe(2);
  });

  test('C3: who comes while the store has been slow for 1 s already does not wait', async () => {
    const { store, timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + staleMs);
    store.hold();
    const first = reader.transcript('ev_1', CONTEXT);
    await timers.advance(1000);
    const second = reader.transcript('ev_1', CONTEXT);
    await timers.advance(0);
    expect([(await first).outcome, (await second).outcome]).toEqual(['stale-if-error', 'stale-if-error']);
    expect(store.count()).toBe(2);
  });

  test('C3: an answer within the second is served as the answer', async () => {
    const { store, timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + staleMs);
    store.hold();
    const read = reader.transcript('ev_1', CONTEXT);
    await timers.advance(999);
    store.release();
    expect(await read).toMatchObject({ outcome: 'miss', ageMs: 999 });
  });

  test('C3: without a usable copy a reader waits as long as the store takes', async () => {
    const { store, timers, reader } = createRig();
    store.hold();
    const read = reader.transcript('ev_1', CONTEXT);
    await timers.advance(7000);
    store.release();
    expect(await read).toMatchObject({ outcome: 'miss', ageMs: 7000 });
    expect(store.count()).toBe(1);
  });

  test('a copy that expires while the store is waited for is not served', async () => {
    const { store, timers, reader } = createRig();
    const { ttlMs } = await reader.transcript('ev_1', CONTEXT);
    await timers.advance(ttlMs + errorMs - 500);
    store.hold();
    const read = reader.transcript('ev_1', CONTEXT);
    await timers.advance(1000);
    store.held.splice(0).forEach(({ fail }) => fail(storeFailure()));
    await expect(read).rejects.toMatchObject({ kind: 'unreachable' });
  });

  test('a failure reaches all readers at once, is remembered for 1 s, and is never stored', async () => {
    const { store, timers, reader } = createRig();
    store.failure = storeFailure();
    const read = async (): Promise<unknown> => await reader.transcript('ev_1', CONTEXT);
    const outcomes = await Promise.allSettled(Array.from({ length: 100 }, read));
    expect(outcomes.every((outcome) => outcome.status === 'rejected' && outcome.reason === store.failure)).toBe(true);
    await timers.advance(999);
    await expect(read()).rejects.toBe(store.failure);
    expect(store.count()).toBe(1);
    await timers.advance(1);
    store.failure = null;
    expect(await read()).toMatchObject({ outcome: 'miss' });
    expect(store.count()).toBe(2);
  });

  test('a failed refresh leaves the copy, and is tried again after 1 s and not by each reader', async () => {
    const failures: string[] = [];
    const hooks = { onRefreshFailed: ({ key }: { readonly key: string }) => failures.push(key) };
    const { store, timers, reader } = createRig({ hooks });
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs);
    store.failure = storeFailure();
    for (let round = 0; round < 20; round++) {
      expect((await reader.transcript('ev_1', CONTEXT)).outcome).toBe('stale-while-revalidate');
      await settle();
    }
    expect(store.count()).toBe(2);
    expect(failures).toEqual(['v1:{transcript:ev_1}']);
    await timers.advance(1000);
    await reader.transcript('ev_1', CONTEXT);
    await settle();
    expect(store.count()).toBe(3);
  });

  test('a flight has its own deadline, even where the store never answers', async () => {
    const { store, timers, reader } = createRig({ flightDeadlineMs: 12_000 });
    store.hold();
    const read = promised(() => reader.transcript('ev_1', CONTEXT));
    read.catch(() => {});
    let isOver = false;
    void read.finally(() => (isOver = true)).catch(() => {});
    await timers.advance(11_999);
    expect(isOver).toBe(false);
    await timers.advance(1);
    await expect(read).rejects.toMatchObject({ name: 'StoreError', kind: 'timeout' });
  });

  test('a flight that has landed leaves no timer behind', async () => {
    const { timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + staleMs);
    await reader.transcript('ev_1', CONTEXT);
    expect(timers.pendingCount).toBe(0);
  });

  test('readers get store errors only, whatever the store throws', async () => {
    const { store, reader } = createRig();
    store.hold();
    const read = reader.transcript('ev_1', CONTEXT);
    await settle();
    const bug = new TypeError('a bug');
    store.held.splice(0).forEach(({ fail }) => fail(bug));
    await expect(read).rejects.toMatchObject({ name: 'StoreError', cause: bug });
  });
});

describe('refreshing', () => {
  test('a refresh is conditional, and a 304 renews the entry with its record and all that was derived from it', async () => {
    const refreshes: RefreshReport[] = [];
    const { store, timers, reader } = createRig({ hooks: { onRefresh: (report) => refreshes.push(report) } });
    const forms = new Derivation<Buffer>((bytes) => bytes.length);
    const first = await reader.transcript('ev_1', CONTEXT);
    const rendered = forms.of(first.entry, () => Buffer.from('rendered'));
    await timers.advance(freshMs);
    await reader.transcript('ev_1', CONTEXT);
    await settle();
    const renewed = await reader.transcript('ev_1', CONTEXT);
    expect(store.calls[1]?.options.ifNoneMatch).toBe(`"${JSON.stringify(aTranscript({ body: 'Sam: 1' }))}"`);
    expect(renewed).toMatchObject({ outcome: 'hit', ageMs: 0 });
    expect(recordOf(renewed)).toBe(recordOf(first));
    expect(forms.of(renewed.entry, () => Buffer.from('again'))).toBe(rendered);
    expect(refreshes).toEqual([{ class: 'transcript', key: 'v1:{transcript:ev_1}', changed: false, sinceMs: freshMs }]);
  });

  test('an equal answer with an equal validator renews too; one that differs replaces', async () => {
    const refreshes: RefreshReport[] = [];
    const { store, timers, reader } = createRig({ hooks: { onRefresh: (report) => refreshes.push(report) } });
    store.hasEtags = false;
    const first = await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + staleMs);
    expect(recordOf(await reader.transcript('ev_1', CONTEXT))).toBe(recordOf(first));
    store.revision = 2;
    await timers.advance(freshMs + staleMs);
    expect(recordOf(await reader.transcript('ev_1', CONTEXT)).body).toBe('Sam: 2');
    expect(refreshes.map(({ changed }) => changed)).toEqual([false, true]);
  });

  test('an equal answer with another validator is no change, and is asked for by the new validator from then on', async () => {
    const refreshes: RefreshReport[] = [];
    const { store, timers, reader } = createRig({ hooks: { onRefresh: (report) => refreshes.push(report) } });
    const asked: unknown[] = [];
    store.transcript = (_, { ifNoneMatch }) => {
      asked.push(ifNoneMatch);
      return Promise.resolve({ kind: 'found', record: aTranscript(), etag: `"${asked.length}"`, bytes: 9 });
    };
    for (let round = 0; round < 3; round++) {
      await reader.transcript('ev_1', CONTEXT);
      await timers.advance(freshMs + staleMs);
    }
    expect(asked).toEqual([undefined, '"1"', '"2"']);
    expect(refreshes.map(({ changed }) => changed)).toEqual([false, false]);
  });

  test('an expired copy still saves the transfer', async () => {
    const { store, timers, reader } = createRig();
    const first = await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs + errorMs);
    const read = await reader.transcript('ev_1', CONTEXT);
    expect(read).toMatchObject({ outcome: 'miss', forward: 'stale', ageMs: 0 });
    expect(recordOf(read)).toBe(recordOf(first));
    expect(store.calls[1]?.options.ifNoneMatch).toBeDefined();
  });
});

describe('absent answers', () => {
  test('Q9: what is absent is remembered for its own short time', async () => {
    const { store, timers, reader } = createRig();
    expect((await reader.evaluation('none', CONTEXT)).entry.answer).toEqual({ kind: 'absent', code: 'NOT_FOUND' });
    await timers.advance(800);
    expect(await reader.evaluation('none', CONTEXT)).toMatchObject({ outcome: 'hit', tier: 'memory' });
    expect(store.count()).toBe(1);
    await timers.advance(200);
    store.failure = storeFailure();
    await expect(reader.evaluation('none', CONTEXT)).rejects.toBe(store.failure);
  });

  test('Q9: it replaces a stored copy, which no failure brings back', async () => {
    const { store, timers, reader } = createRig();
    await reader.transcript('ev_1', CONTEXT);
    await timers.advance(freshMs);
    store.absent.add('transcript:ev_1');
    await reader.transcript('ev_1', CONTEXT);
    await settle();
    expect((await reader.transcript('ev_1', CONTEXT)).entry.answer.kind).toBe('absent');
    await timers.advance(1000);
    store.failure = storeFailure();
    await expect(reader.transcript('ev_1', CONTEXT)).rejects.toBe(store.failure);
  });
});

describe('seeding', () => {
  const ids = ['ev_1', 'ev_2', 'ev_3'];
  const seeded = (): ReturnType<typeof createRig> => {
    const rig = createRig();
    for (const id of ids) rig.store.evaluations.set(id, anEvaluation({ _id: id }));
    return rig;
  };

  test('a list seeds the single evaluations that it holds, and no parts of them', async () => {
    const { store, reader } = seeded();
    await reader.list(query, CONTEXT);
    for (const id of ids) expect((await reader.evaluation(id, CONTEXT)).outcome).toBe('hit');
    expect(store.count('evaluation')).toBe(0);
    await reader.transcript('ev_1', CONTEXT);
    expect(store.count('transcript')).toBe(1);
  });

  test('a seed is as old as the list and is fresh by the times of an evaluation', async () => {
    const { times, timers, reader } = seeded();
    times.set('evaluation', { freshMs: 60_000 });
    await reader.list(query, CONTEXT);
    await timers.advance(50_000);
    expect(await reader.evaluation('ev_1', CONTEXT)).toMatchObject({ outcome: 'hit', ageMs: 50_000 });
  });

  test('a searched list seeds nothing', async () => {
    const { store, reader } = seeded();
    await reader.list({ ...query, search: 'discovery' }, CONTEXT);
    expect((await reader.evaluation('ev_1', CONTEXT)).outcome).toBe('miss');
    expect(store.count('evaluation')).toBe(1);
  });

  test('a seed replaces what was fetched before the list was asked for, and renews it where it is the same', async () => {
    const { store, timers, reader } = seeded();
    const before = await reader.evaluation('ev_1', CONTEXT);
    await reader.evaluation('ev_2', CONTEXT);
    await timers.advance(1);
    store.evaluations.set('ev_2', anEvaluation({ _id: 'ev_2', title: 'Changed' }));
    await reader.list(query, CONTEXT);
    const same = await reader.evaluation('ev_1', CONTEXT);
    expect(same).toMatchObject({ outcome: 'hit', ageMs: 0 });
    expect(same.entry.answer).toBe(before.entry.answer);
    expect(recordOf(await reader.evaluation('ev_2', CONTEXT)).title).toBe('Changed');
    expect(store.count('evaluation')).toBe(2);
  });

  test('a seed replaces nothing whose fetch was under way when the list was asked for', async () => {
    const { store, timers, reader } = seeded();
    store.hold();
    const single = reader.evaluation('ev_1', CONTEXT);
    await timers.advance(5);
    const list = reader.list(query, CONTEXT);
    await timers.advance(5);
    store.held.splice(0, 1).forEach(({ release }) => release());
    const { entry } = await single;
    store.release();
    await list;
    expect((await reader.evaluation('ev_1', CONTEXT)).entry).toBe(entry);
  });

  test('a seed replaces nothing that was fetched while the list was under way', async () => {
    const { store, timers, reader } = seeded();
    store.hold();
    const list = reader.list(query, CONTEXT);
    await timers.advance(10);
    store.evaluations.set('ev_1', anEvaluation({ _id: 'ev_1', title: 'Newer' }));
    const single = reader.evaluation('ev_1', CONTEXT);
    await settle();
    store.held.splice(1).forEach(({ release }) => release());
    await single;
    store.release();
    await list;
    expect(recordOf(await reader.evaluation('ev_1', CONTEXT)).title).toBe('Newer');
  });
});

describe('what is served is what was asked for', () => {
  test('C4: a record of another id is a failure of the store, and is not stored', async () => {
    const { store, timers, reader } = createRig();
    store.evaluations.set('ev_1', anEvaluation({ _id: 'other' }));
    await expect(reader.evaluation('ev_1', CONTEXT)).rejects.toMatchObject({ kind: 'malformed' });
    await timers.advance(1000);
    await expect(reader.evaluation('ev_1', CONTEXT)).rejects.toMatchObject({ kind: 'malformed' });
    expect(store.count()).toBe(2);
  });

  test('C4: a list loses records of workspaces that were not asked for', async () => {
    const { store, reader } = createRig();
    const mine = anEvaluation({ _id: 'mine' });
    const foreign = anEvaluation({ _id: 'foreign', workspaceId: WORKSPACE_B });
    store.list = () =>
      Promise.resolve({ kind: 'found', record: { items: [foreign, mine], total: 2 }, etag: null, bytes: 9 });
    expect(recordOf(await reader.list(query, CONTEXT)).items).toEqual([mine]);
    expect((await reader.evaluation('foreign', CONTEXT)).outcome).toBe('miss');
  });
});

describe('reports', () => {
  test('every read is reported with its class, how it was answered, and why it missed', async () => {
    const reports: ReadReport[] = [];
    const { store, timers, times, memory, purges, reader } = createRig({
      hooks: { onRead: (report) => reports.push(report) },
    });
    const read = (): Promise<unknown> => promised(() => reader.transcript('ev_1', CONTEXT)).catch(() => null);
    await read();
    await read();
    await timers.advance(freshMs + staleMs);
    await read();
    await purges.purge(['all'], 'hard');
    await read();
    times.set('transcript', { freshMs: 0, staleMs: 0, errorMs: 0 });
    await read();
    memory.clear();
    store.failure = storeFailure();
    await read();
    expect(reports.map(({ outcome, missReason, ageMs }) => [outcome, missReason, ageMs])).toEqual([
      ['miss', 'never-seen', 0],
      ['hit', null, 0],
      ['miss', 'expired', 0],
      ['miss', 'purged', 0],
      ['miss', 'not-cacheable', 0],
      ['failed', 'not-cacheable', null],
    ]);
    expect(new Set(reports.map((report) => report.class))).toEqual(new Set(['transcript']));
  });

  test('a read that misses because its entry had to make room says so', async () => {
    const reports: ReadReport[] = [];
    const { reader } = createRig({ maxBytes: 5000, hooks: { onRead: (report) => reports.push(report) } });
    for (let index = 0; index < 10; index++) await reader.transcript(`ev_${index}`, CONTEXT);
    await reader.transcript('ev_0', CONTEXT);
    expect(reports.at(-1)).toMatchObject({ outcome: 'miss', missReason: 'evicted' });
  });
});
