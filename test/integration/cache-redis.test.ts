/** The shared cache in Redis by itself: two processes that share nothing else, each step in the hands of the test. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Entry, type StoredEntry } from '../../src/cache/entry.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { LATE_MS, type PurgeEpoch, type Tag } from '../../src/cache/purge-log.ts';
import { purgesAlone } from '../support/purges.ts';
import { RecordCipher } from '../../src/cache/redis/encryption.ts';
import { RedisSharedCache } from '../../src/cache/redis/redis-shared-cache.ts';
import { recordRequest } from '../../src/cache/request.ts';
import { type Completed, type Lease, toFailure } from '../../src/cache/shared-cache.ts';
import { TtlPolicy } from '../../src/cache/ttl-policy.ts';
import { loadConfig } from '../../src/config/load.ts';
import { RedisLink } from '../../src/redis/connection.ts';
import { CacheNames } from '../../src/redis/names.ts';
import { StoreError } from '../../src/upstream/store-error.ts';
import { FakeTime } from '../support/flight-world.ts';
import { forFile } from '../support/opened.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { connectToAny } from '../support/redis/client.ts';
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
const [here, there] = [await createProcess(), await createProcess()];

async function createProcess() {
  const link = await forFile(new RedisLink({ url: redis.url, role: 'cache', timeoutMs: 5000 }));
  await vi.waitUntil(() => link.isUp() && link.subscriber.isUp(), { timeout: 15_000 });
  const time = new FakeTime();
  const cipher = new RecordCipher([]);
  const memory = new MemoryTier({ maxBytes: 1_000_000, clock: time });
  const budget = { isOver: false };
  const log = purgesAlone(time);
  const noteSwept = vi.fn<() => Promise<void>>(() => Promise.resolve());
  const shared = await forFile(
    new RedisSharedCache({
      cache: link,
      names,
      self: randomUUID(),
      ttl: new TtlPolicy(time, loadConfig({ env: {} }).config.cache.classes),
      cipher,
      memory,
      purges: Object.assign(log, { noteSwept }),
      budget,
      leaseMs: LEASE_MS,
      maxAnswerBytes: 8_000_000,
      clock: time,
      timers: time,
      onBroken: (error) => {
        throw error;
      },
    }),
  );
  return { shared, link, time, cipher, memory, budget, log, noteSwept };
}
type Process = Awaited<ReturnType<typeof createProcess>>;

let id: string;
let key: string;
beforeEach(() => {
  id = `ev_${randomUUID()}`;
  ({ key } = recordRequest('evaluation', id));
});

afterEach(() => void vi.restoreAllMocks());

const leaseName = (audience = WORKSPACE_A): string => names.of(key).lease(audience);

/** By a reader of that workspace, who has seen nothing unless said otherwise. */
function ask({ shared }: Process, workspaceId = WORKSPACE_A, newerThanMs: number | null = null) {
  return shared.acquire({ key, audience: workspaceId, reader: { workspaceIds: [workspaceId] }, newerThanMs });
}

async function acquire(process: Process, workspaceId = WORKSPACE_A, newerThanMs: number | null = null): Promise<Lease> {
  const attempt = await ask(process, workspaceId, newerThanMs);
  if (attempt.status !== 'acquired') throw new Error(`The lease is ${attempt.status}.`);
  return attempt.lease;
}

/** A lease that has lapsed, as for a process that was paused, and another's in its place. */
async function acquireLapsed() {
  const lapsed = await acquire(here);
  await raw.del(leaseName());
  return { lapsed, current: await acquire(there) };
}

const POSITION: PurgeEpoch = { history: 'one', sequence: 5 };

/** An answer of the store: the evaluation, or that there is none. */
function answer(requestedAtMs: number, { isFound = true, epoch = POSITION } = {}): StoredEntry {
  const record = anEvaluation({ _id: id, title: String(requestedAtMs) });
  const found = { kind: 'found', record, etag: null, bytes: 500 } as const;
  const tags: Tag[] = isFound ? ['all', `workspace:${record.workspaceId}`] : ['all', 'class:notFound'];
  const entry = new Entry<unknown>(isFound ? found : { kind: 'absent', code: 'NOT_FOUND' }, requestedAtMs);
  return { kind: 'evaluation', entry, tags, epoch, receivedAtMs: requestedAtMs + 1 };
}

const found = (requestedAtMs: number, epoch = POSITION): Completed => ({
  entry: answer(requestedAtMs, { epoch }),
  negative: null,
});

/** When what a reader of that workspace finds was requested. */
async function kept(workspaceId = WORKSPACE_A) {
  const { entry, negative } = await there.shared.lookUp(key, { workspaceIds: [workspaceId] });
  return [entry?.entry.requestedAtMs ?? null, negative?.entry.requestedAtMs ?? null];
}

/** Lets the lease come near its end, and the next renewal pass. */
async function renew(): Promise<number> {
  await raw.pexpire(leaseName(), LEASE_MS / 2);
  await here.time.advance(RENEW_MS);
  await here.link.run((client) => client.get('any'));
  return raw.pttl(leaseName());
}

/** Two calls, of which the one that was begun first ends last. */
async function endInTurn(older: Completed, newer: Completed) {
  const [first, second] = [await acquire(here), await acquire(there, WORKSPACE_B)];
  expect(await second.complete(newer)).toBe('stored');
  return first.complete(older);
}

/** Ends the lease; resolves once the other process, whose time stands still, has noticed that. */
async function endNoticed(end: (lease: Lease) => Promise<unknown>) {
  const lease = await acquire(here);
  const following = there.shared.follow(key, WORKSPACE_A);
  const ended = await end(lease);
  await following.next(HOUR_MS);
  following.close();
  return ended;
}

describe('a lease that has passed to another process', () => {
  test.each<[string, (lease: Lease) => Promise<unknown>]>([
    ['fail', (lease) => lease.fail(DOWN)],
    ['release', (lease) => lease.release()],
    ['complete', (lease) => lease.complete(found(SEEN_MS))],
  ])('is not ended by its first holder: %s', async (_how, end) => {
    const { lapsed, current } = await acquireLapsed();
    await end(lapsed);
    expect(await ask(here)).toMatchObject({ status: 'taken' });
    expect(await current.complete(found(SEEN_MS + 1))).toBe('stored');
    expect(await kept()).toEqual([SEEN_MS + 1, null]);
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
    expect(await lease.complete(found(SEEN_MS))).toBe('lost');
    expect(await kept()).toEqual([null, null]);
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
    expect(await ask(there)).toMatchObject({ status: 'acquired' });
  });
});

describe('calls for two sets at once', () => {
  test('an older answer is not kept', async () => {
    expect(await endInTurn(found(SEEN_MS), found(SEEN_MS + 1))).toBe('overtaken');
    expect(await kept()).toEqual([SEEN_MS + 1, null]);
  });

  test('an older answer that knows of more purges is kept', async () => {
    expect(await endInTurn(found(SEEN_MS, { history: 'one', sequence: 6 }), found(SEEN_MS + 1))).toBe('stored');
    expect(await kept()).toEqual([SEEN_MS, null]);
  });

  test('an older answer of another history is kept', async () => {
    expect(await endInTurn(found(SEEN_MS, { history: 'two', sequence: 1 }), found(SEEN_MS + 1))).toBe('stored');
  });

  test('K7a: its negative entry is kept all the same', async () => {
    const absent = answer(SEEN_MS, { isFound: false });
    expect(await endInTurn({ entry: absent, negative: absent }, found(SEEN_MS + 1))).toBe('overtaken');
    expect(await kept()).toEqual([SEEN_MS + 1, SEEN_MS]);
  });
});

describe('a process that asks', () => {
  beforeEach(async () => void (await (await acquire(here)).complete(found(SEEN_MS))));

  test('finds what is newer than it has seen, and nothing as old as that', async () => {
    expect(await ask(there, WORKSPACE_A, SEEN_MS - 1)).toMatchObject({ status: 'found', newestMs: SEEN_MS });
    const lease = await acquire(there, WORKSPACE_A, SEEN_MS);
    await lease.release();
  });

  test('finds an entry before a failure that came since, and the failure if it has seen the entry', async () => {
    const lease = await acquire(here, WORKSPACE_A, SEEN_MS);
    await lease.fail(DOWN);
    expect(await ask(there)).toMatchObject({ status: 'found' });
    expect(await ask(there, WORKSPACE_A, SEEN_MS)).toEqual({ status: 'failed', failure: DOWN });
  });

  test('C9: finds no entry from the future', async () => {
    const lease = await acquire(here, WORKSPACE_A, SEEN_MS);
    await lease.complete(found(Date.now() + HOUR_MS));
    expect(await ask(there, WORKSPACE_A, SEEN_MS)).toMatchObject({ status: 'acquired' });
  });
});

describe('who follows', () => {
  test.each<[string, (lease: Lease) => Promise<unknown>, unknown]>([
    ['fail', (lease) => lease.fail(DOWN), 'failed'],
    ['release', (lease) => lease.release(), 'acquired'],
    ['complete', (lease) => lease.complete(found(SEEN_MS)), 'found'],
  ])('is woken by every end: %s', async (_how, end, status) => {
    await endNoticed(end);
    expect(await ask(there)).toMatchObject({ status });
  });

  test.each([
    [false, 'stored', undefined],
    [true, 'unshared', SEEN_MS],
  ])('drops its older copy only for an answer that Redis keeps (above the budget: %s)', async (isOver, ended, left) => {
    there.memory.set(key, answer(SEEN_MS), {});
    here.budget.isOver = isOver;
    expect(await endNoticed((lease) => lease.complete(found(SEEN_MS + 1)))).toBe(ended);
    here.budget.isOver = false;
    expect(there.memory.peek(key)?.entry.requestedAtMs).toBe(left);
  });
});

describe('entries', () => {
  test('a deletion leaves what was stored since it looked', async () => {
    await (await acquire(here)).complete(found(SEEN_MS));
    const { entry: name } = names.of(key);
    const newer = ((await raw.hget(name, 'meta')) ?? '').replace(
      `"filledAtMs":${SEEN_MS}`,
      `"filledAtMs":${SEEN_MS + 1}`,
    );
    // On the same connection, so before the deletion.
    const replace = (): boolean => {
      void here.link.run((client) => client.hset(name, 'meta', newer));
      return true;
    };
    await here.shared.delete([key], replace);
    expect(await kept()).toEqual([SEEN_MS + 1, null]);
  });

  test('C6: a deletion that ran out of time is not noted as done', async () => {
    const pass = { isDeleting: true, first: [key] };
    const cutOff = await here.shared.measure(() => false, { ...pass, deadline: AbortSignal.abort() });
    expect(cutOff.isComplete).toBe(false);
    expect(here.noteSwept).not.toHaveBeenCalled();
    expect((await here.shared.measure(() => false, pass)).isComplete).toBe(true);
    expect(here.noteSwept).toHaveBeenCalledOnce();
  });

  test('C6: a copy is read again if a purge of it may have been forgotten meanwhile', async () => {
    await (await acquire(here)).complete(found(SEEN_MS));
    const [looked, asked] = [here.shared.lookUp(key, { workspaceIds: [WORKSPACE_A] }), ask(here)];
    // On the same connection, so after both.
    const deleted = here.link.run((client) => client.del(names.of(key).entry));
    await here.log.forget(here.log.forgotten + 1);
    expect(await looked).toMatchObject({ entry: null });
    expect(await asked).toMatchObject({ status: 'taken', leaseLeftMs: 1 });
    await deleted;
  });

  test('C6: a backfill comes too late once a purge of it may be forgotten', async () => {
    const sinceMs = here.time.nowMs() - LATE_MS;
    await here.shared.backfill([{ key, stored: answer(sinceMs) }]);
    expect(await kept()).toEqual([null, null]);
    await here.shared.backfill([{ key, stored: answer(sinceMs + 1) }]);
    expect(await kept()).toEqual([sinceMs + 1, null]);
  });
});
