/** The shared cache in Redis by itself: two processes that share nothing else, each step in the hands of the test. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { workspaceSetOf, type WorkspaceSet } from '../../src/cache/address.ts';
import { Entry, type StoredEntry } from '../../src/cache/entry.ts';
import { LATE_MS, type Tag } from '../../src/cache/purge-log.ts';
import type { Position } from '../../src/journal/journal.ts';
import { recordRequest } from '../../src/cache/request.ts';
import { type Lease, toFailure } from '../../src/cache/shared-cache.ts';
import { CacheNames } from '../../src/redis/names.ts';
import { StoreError } from '../../src/upstream/store-error.ts';
import { forFile } from '../support/opened.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { connectToAny } from '../support/redis/client.ts';
import { openProcess } from '../support/redis/shared-cache.ts';
import { startRedis } from '../support/redis.ts';

const LEASE_MS = 2000;
const RENEW_MS = 600;
const SEEN_MS = Date.UTC(2026, 0, 15);
const HOUR_MS = 3_600_000;
const DOWN = toFailure(new StoreError('unreachable', 'the store is down'));
const names = new CacheNames('store');

const redis = await forFile(startRedis());
const raw = await connectToAny(redis.url);
afterAll(() => raw.disconnect());
const ofProcess = { url: redis.url, names, leaseMs: LEASE_MS };
const [here, there] = [await openProcess(ofProcess), await openProcess(ofProcess)];

type Process = typeof here;

let id: string;
let key: string;
beforeEach(() => {
  id = `ev_${randomUUID()}`;
  ({ key } = recordRequest('evaluation', id));
});

afterEach(() => void vi.restoreAllMocks());

const setOf = (...workspaceIds: string[]): WorkspaceSet => workspaceSetOf({ workspaceIds });
const OF_A = setOf(WORKSPACE_A);
const OF_B = setOf(WORKSPACE_B);
const OF_BOTH = setOf(WORKSPACE_A, WORKSPACE_B);
const keptFor = (set: WorkspaceSet) => ({ set, keyId: 'key_1' });
const leaseName = (set = OF_A): string => names.of(key).lease(set.name);

/** By a reader of that set, who has seen nothing unless said otherwise. */
function look({ shared }: Process, set = OF_A, seenAtMs: number | null = null, isLeaseWanted = true) {
  return shared.look({ kind: 'evaluation', key, ...keptFor(set), seenAtMs, isLeaseWanted });
}

/** The lease of that set, whatever there is. */
async function acquire(process: Process, set = OF_A): Promise<Lease> {
  let looked = await look(process, set);
  if (looked.status === 'found') looked = await look(process, set, looked.seenAtMs);
  if (looked.status !== 'leased') throw new Error(`The lease is ${looked.status}.`);
  return looked.lease;
}

/** A lease that has lapsed, as for a process that was paused, and another's in its place. */
async function acquireLapsed() {
  const lapsed = await acquire(here);
  await raw.del(leaseName());
  return { lapsed, current: await acquire(there) };
}

const POSITION: Position = { history: 'one', sequence: 5 };

/** The store's answer that it has the evaluation, of that workspace. */
function found(requestedAtMs: number, position = POSITION, owner = WORKSPACE_A): StoredEntry {
  const record = anEvaluation({ _id: id, workspaceId: owner, title: String(requestedAtMs) });
  const entry = new Entry<unknown>({ kind: 'found', record, etag: null, bytes: 500 }, requestedAtMs);
  const tags: Tag[] = ['all', `workspace:${owner}`];
  return { kind: 'evaluation', owner, entry, tags, position, receivedAtMs: requestedAtMs + 1 };
}

/** Its answer that there is none, for that set. */
function absent(requestedAtMs: number, set = OF_A): StoredEntry {
  const entry = new Entry<unknown>({ kind: 'absent', code: 'NOT_FOUND' }, requestedAtMs);
  const tags: Tag[] = ['all', 'class:notFound'];
  return { kind: 'evaluation', owner: set.name, entry, tags, position: POSITION, receivedAtMs: requestedAtMs + 1 };
}

/** The answer that a reader of that set finds: when it was requested, and whether it is a record. Null if there is none. */
async function kept(set = OF_A) {
  const looked = await look(there, set, null, false);
  if (looked.status !== 'found') return null;
  return [looked.answer?.entry.requestedAtMs, looked.answer?.entry.answer.kind];
}

/** Lets the lease come near its end, and the next renewal pass. */
async function renew(): Promise<number> {
  await raw.pexpire(leaseName(), LEASE_MS / 2);
  await here.time.advance(RENEW_MS);
  await here.link.run((client) => client.get('any'));
  return raw.pttl(leaseName());
}

/** Two calls, of which the one that was begun first ends last. */
async function endInTurn(older: StoredEntry, newer: StoredEntry, set = OF_BOTH) {
  const [first, second] = [await acquire(here), await acquire(there, set)];
  expect(await second.complete(newer)).toMatchObject({ status: 'stored' });
  return first.complete(older);
}

/** Ends the lease; resolves once the other process, whose time stands still, has noticed that. */
async function endNoticed(end: (lease: Lease) => Promise<unknown>) {
  const lease = await acquire(here);
  const following = there.shared.follow(key, OF_A);
  const ended = await end(lease);
  await following.next(HOUR_MS);
  following.close();
  return ended;
}

describe('C10: a lease that has passed to another process', () => {
  test.each<[string, (lease: Lease) => Promise<unknown>]>([
    ['fail', (lease) => lease.fail(DOWN)],
    ['release', (lease) => lease.release()],
    ['complete', (lease) => lease.complete(found(SEEN_MS))],
  ])('is not ended by its first holder: %s', async (_how, end) => {
    const { lapsed, current } = await acquireLapsed();
    await end(lapsed);
    expect(await look(here)).toMatchObject({ status: 'taken' });
    expect(await current.complete(found(SEEN_MS + 1))).toEqual({ status: 'stored', ended: [] });
    expect(await kept()).toEqual([SEEN_MS + 1, 'found']);
  });

  test('is not renewed by its first holder', async () => {
    const { current } = await acquireLapsed();
    await raw.pexpire(leaseName(), LEASE_MS / 2);
    await here.time.advance(RENEW_MS);
    await here.link.run((client) => client.get('any'));
    expect(await raw.pttl(leaseName())).toBeLessThanOrEqual(LEASE_MS / 2);
    await current.release();
  });

  test('keeps no answer, though nobody has it now', async () => {
    const lease = await acquire(here);
    await raw.del(leaseName());
    expect(await lease.complete(found(SEEN_MS))).toEqual({ status: 'lost', ended: [] });
    expect(await kept()).toBeNull();
  });
});

describe('renewals', () => {
  test('go on though one of them was not answered', async () => {
    const lease = await acquire(here);
    vi.spyOn(here.link, 'run').mockRejectedValueOnce(new Error('no answer'));
    expect(await renew()).toBeLessThanOrEqual(LEASE_MS / 2);
    for (let i = 0; i < 2; i += 1) expect(await renew()).toBeGreaterThan(LEASE_MS / 2);
    await lease.release();
  });

  test.each<[string, (lease: Lease) => Promise<unknown>]>([
    ['an answer', (lease) => lease.complete(found(SEEN_MS))],
    ['a failure', (lease) => lease.fail(DOWN)],
  ])('end with %s', async (_how, end) => {
    const sent = vi.spyOn(here.link, 'run');
    await end(await acquire(here));
    sent.mockClear();
    await here.time.advance(2 * LEASE_MS);
    expect(sent).not.toHaveBeenCalled();
  });

  test('end with an answer that can not be written, and its lease too', async () => {
    const lease = await acquire(here);
    vi.spyOn(here.cipher, 'keyId', 'get').mockImplementationOnce(() => {
      throw new Error('no memory');
    });
    await expect(lease.complete(found(SEEN_MS))).rejects.toThrow('no memory');
    expect(await look(there)).toMatchObject({ status: 'leased' });
  });
});

describe('calls for two sets at once', () => {
  test('an older answer is not kept', async () => {
    expect(await endInTurn(found(SEEN_MS), found(SEEN_MS + 1))).toEqual({ status: 'overtaken', ended: [] });
    expect(await kept()).toEqual([SEEN_MS + 1, 'found']);
  });

  test('an older answer that knows of more purges is kept', async () => {
    const knows = found(SEEN_MS, { history: 'one', sequence: 6 });
    expect(await endInTurn(knows, found(SEEN_MS + 1))).toMatchObject({ status: 'stored' });
    expect(await kept()).toEqual([SEEN_MS, 'found']);
  });

  test('an older answer of another history is kept', async () => {
    const other = found(SEEN_MS, { history: 'two', sequence: 1 });
    expect(await endInTurn(other, found(SEEN_MS + 1))).toMatchObject({ status: 'stored' });
  });

  test.each([
    ['absent', () => absent(SEEN_MS + 1, OF_BOTH)],
    ['moved', () => found(SEEN_MS + 1, POSITION, WORKSPACE_B)],
  ])('C4: an older answer is not kept after one that says otherwise: %s', async (_what, newer) => {
    expect(await endInTurn(found(SEEN_MS), newer())).toEqual({ status: 'overtaken', ended: [] });
    expect([await kept(), await there.copies.ownersOf(key)]).toEqual([null, expect.not.arrayContaining([WORKSPACE_A])]);
  });

  test('K7a: a negative entry is kept, whatever is newer', async () => {
    expect(await endInTurn(absent(SEEN_MS), found(SEEN_MS + 1, POSITION, WORKSPACE_B), OF_B)).toMatchObject({
      status: 'stored',
    });
    expect([await kept(OF_A), await kept(OF_B)]).toEqual([
      [SEEN_MS, 'absent'],
      [SEEN_MS + 1, 'found'],
    ]);
  });
});

describe('C4: an answer ends the copies of its set that it speaks against', () => {
  beforeEach(async () => void (await (await acquire(here)).complete(found(SEEN_MS))));

  test.each([
    ['there is none', () => absent(SEEN_MS + 1, OF_BOTH)],
    ['it is of the other workspace', () => found(SEEN_MS + 1, POSITION, WORKSPACE_B)],
  ])('%s', async (_what, answer) => {
    const completion = await (await acquire(there, OF_BOTH)).complete(answer());
    expect(completion).toEqual({ status: 'stored', ended: [WORKSPACE_A] });
    expect(await raw.exists(names.of(key).copy(WORKSPACE_A))).toBe(0);
    expect(await kept()).toBeNull();
    // For so long an older answer may come.
    expect(await raw.pttl(names.of(key).owners)).toBeGreaterThan(LATE_MS - HOUR_MS / 60);
  });

  test('also one that Redis has evicted: processes may have it in memory', async () => {
    const lease = await acquire(there, OF_BOTH);
    await raw.del(names.of(key).copy(WORKSPACE_A));
    expect(await lease.complete(absent(SEEN_MS + 1, OF_BOTH))).toMatchObject({ ended: [WORKSPACE_A] });
  });

  test('not a newer one, and not that of another set', async () => {
    expect(await (await acquire(there, OF_BOTH)).complete(absent(SEEN_MS - 1, OF_BOTH))).toMatchObject({ ended: [] });
    expect(await (await acquire(there, OF_B)).complete(absent(SEEN_MS + 1, OF_B))).toMatchObject({ ended: [] });
    expect(await kept()).toEqual([SEEN_MS, 'found']);
  });

  test('a list that shows it in another workspace does, and its record is filed there', async () => {
    const moved = { key, stored: found(SEEN_MS + HOUR_MS, POSITION, WORKSPACE_B) };
    vi.spyOn(here.time, 'nowMs').mockReturnValue(SEEN_MS + HOUR_MS);
    expect(await here.shared.backfill([moved], keptFor(OF_BOTH))).toEqual([{ isTooLate: false, ended: [WORKSPACE_A] }]);
    expect([await kept(OF_A), await kept(OF_B)]).toEqual([null, [SEEN_MS + HOUR_MS, 'found']]);
  });

  test('a copy that its key does not list is none: nobody could delete it by its id', async () => {
    await raw.del(names.of(key).owners);
    expect([await kept(), await there.copies.ownersOf(key)]).toEqual([null, []]);
  });
});

describe('a process that asks', () => {
  beforeEach(async () => void (await (await acquire(here)).complete(found(SEEN_MS))));

  test('finds what is newer than it has seen, and nothing as old as that', async () => {
    expect(await look(there, OF_A, SEEN_MS - 1)).toMatchObject({ status: 'found', seenAtMs: SEEN_MS });
    const looked = await look(there, OF_A, SEEN_MS);
    expect(looked).toMatchObject({ status: 'leased' });
    if (looked.status === 'leased') await looked.lease.release();
  });

  test('finds an entry before a failure that came since, and the failure if it has seen the entry', async () => {
    await (await acquire(here)).fail(DOWN);
    expect(await look(there)).toMatchObject({ status: 'found' });
    expect(await look(there, OF_A, SEEN_MS)).toEqual({ status: 'failed', failure: DOWN });
  });

  test('gets no lease that it does not want', async () => {
    expect(await look(there, OF_A, SEEN_MS, false)).toEqual({ status: 'nothing' });
    expect(await raw.exists(leaseName())).toBe(0);
  });

  test('finds the newest of what is filed under its workspaces', async () => {
    await (await acquire(here, OF_B)).complete(found(SEEN_MS + 1, POSITION, WORKSPACE_B));
    expect([await kept(OF_A), await kept(OF_BOTH)]).toEqual([
      [SEEN_MS, 'found'],
      [SEEN_MS + 1, 'found'],
    ]);
    await (await acquire(here)).complete(absent(SEEN_MS + 2));
    expect([await kept(OF_A), await kept(OF_BOTH)]).toEqual([
      [SEEN_MS + 2, 'absent'],
      [SEEN_MS + 1, 'found'],
    ]);
  });

  test('C9: finds no entry from the future, unless it has seen none', async () => {
    await (await acquire(here)).complete(found(Date.now() + HOUR_MS));
    expect(await look(there, OF_A, SEEN_MS)).toMatchObject({ status: 'leased' });
    expect(await look(there, OF_B, null)).toMatchObject({ status: 'leased' });
    expect(await look(there)).toMatchObject({ status: 'found', seenAtMs: 0 });
  });
});

describe('who follows', () => {
  test.each<[string, (lease: Lease) => Promise<unknown>, unknown]>([
    ['fail', (lease) => lease.fail(DOWN), 'failed'],
    ['release', (lease) => lease.release(), 'leased'],
    ['complete', (lease) => lease.complete(found(SEEN_MS)), 'found'],
  ])('is woken by every end: %s', async (_how, end, status) => {
    await endNoticed(end);
    expect(await look(there)).toMatchObject({ status });
  });

  test.each([
    [false, 'stored', undefined],
    [true, 'unshared', SEEN_MS],
  ])('drops its older copy only for an answer that Redis keeps (above the budget: %s)', async (isOver, ended, left) => {
    there.memory.set(key, found(SEEN_MS), { set: OF_A, keyId: undefined });
    here.budget.isOver = isOver;
    expect(await endNoticed((lease) => lease.complete(found(SEEN_MS + 1)))).toMatchObject({ status: ended });
    here.budget.isOver = false;
    expect(there.memory.peek({ key, owner: WORKSPACE_A })?.entry.requestedAtMs).toBe(left);
  });
});

describe('entries', () => {
  test('a deletion leaves what was stored since it looked', async () => {
    await (await acquire(here)).complete(found(SEEN_MS));
    const name = names.of(key).copy(WORKSPACE_A);
    const newer = ((await raw.hget(name, 'meta')) ?? '').replace(
      `"requestedAtMs":${SEEN_MS}`,
      `"requestedAtMs":${SEEN_MS + 1}`,
    );
    // On the same connection, so before the deletion.
    const replace = (): boolean => {
      void here.link.run((client) => client.hset(name, 'meta', newer));
      return true;
    };
    await here.copies.delete([key], replace);
    expect(await kept()).toEqual([SEEN_MS + 1, 'found']);
  });

  test('C6: a deletion that ran out of time is not noted as done', async () => {
    const pass = { isDeleting: true, first: [key] };
    const cutOff = await here.copies.measure(() => false, { ...pass, deadline: AbortSignal.abort() });
    expect(cutOff.isComplete).toBe(false);
    expect(here.noteSwept).not.toHaveBeenCalled();
    expect((await here.copies.measure(() => false, pass)).isComplete).toBe(true);
    expect(here.noteSwept).toHaveBeenCalledOnce();
  });

  test('how far a deletion has come can be read in another process', async () => {
    await here.copies.noteSweep({ passed: 200, of: 900 });
    expect(await there.copies.sweepProgress()).toEqual({ passed: 200, of: 900 });
    await raw.set(names.sweep, 'nonsense');
    expect(await there.copies.sweepProgress()).toEqual({ passed: 0, of: 0 });
  });

  test('C6: a copy is read again if a purge of it may have been forgotten meanwhile', async () => {
    await (await acquire(here)).complete(found(SEEN_MS));
    const looked = look(here);
    // On the same connection, so after it.
    const deleted = here.link.run((client) => client.del(names.of(key).copy(WORKSPACE_A)));
    await here.log.forget(here.log.forgotten + 1);
    expect(await looked).toMatchObject({ status: 'leased' });
    await deleted;
  });

  test('C6: a backfill comes too late once a purge of it may be forgotten', async () => {
    const sinceMs = here.time.nowMs() - LATE_MS;
    const [late, inTime] = [sinceMs, sinceMs + 1].map((atMs) => [{ key, stored: found(atMs) }]);
    expect(await here.shared.backfill(late ?? [], keptFor(OF_A))).toEqual([{ isTooLate: true, ended: [] }]);
    expect(await kept()).toBeNull();
    expect(await here.shared.backfill(inTime ?? [], keptFor(OF_A))).toEqual([{ isTooLate: false, ended: [] }]);
    expect(await kept()).toEqual([sinceMs + 1, 'found']);
  });

  test('a backfill takes nothing from a copy whose fetch was not over when its own began, or from an end', async () => {
    const nowMs = here.time.nowMs();
    await (await acquire(here)).complete(found(nowMs - 1));
    expect(await here.shared.backfill([{ key, stored: found(nowMs) }], keptFor(OF_A))).toEqual([
      { isTooLate: true, ended: [] },
    ]);
    expect(await kept()).toEqual([nowMs - 1, 'found']);
    await (await acquire(here)).complete(absent(nowMs + 2));
    expect(await here.shared.backfill([{ key, stored: found(nowMs + 1) }], keptFor(OF_A))).toMatchObject([
      { isTooLate: true },
    ]);
    expect(await there.copies.ownersOf(key)).toEqual([]);
  });
});
