/** The memory of purges: what is forgotten, what is not, and what that means for copies and for calls under way. */
import { expect, test } from 'vitest';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { Entry, type StoredEntry } from '../../../src/cache/entry.ts';
import { LATE_MS, mayBeKept, PurgeTable } from '../../../src/cache/purge-log.ts';
import type { Position } from '../../../src/journal/journal.ts';
import { purgesAlone } from '../../support/purges.ts';
import { memoryDropper, purge } from '../../../src/cache/purge.ts';
import { recordRequest } from '../../../src/cache/request.ts';
import type { SharedCacheAdmin } from '../../../src/cache/shared-cache.ts';
import { FakeTime } from '../../support/flight-world.ts';

const CALLS = 100_000;
const EVERY_MS = 3_600_000 / CALLS;

function create() {
  const time = new FakeTime();
  const memory = new MemoryTier({ maxBytes: 10_000_000, clock: time });
  const purges = purgesAlone(time, memoryDropper(memory, time));
  const put = (id: string): StoredEntry => {
    const answer = { kind: 'found', record: {}, etag: null, bytes: 10 } as const;
    const tags = ['all', 'class:evaluation', `evaluation:${id}`, 'workspace:w1'] as const;
    const entry = new Entry(answer, time.nowMs());
    const stored = { kind: 'evaluation', owner: 'w1', entry, tags, position: purges.position } as const;
    const kept = { ...stored, receivedAtMs: time.nowMs() };
    memory.set(recordRequest('evaluation', id).key, kept, { set: { ids: ['w1'], name: 'w1' }, keyId: undefined });
    return kept;
  };
  const has = (id: string): boolean =>
    memory.peek({ key: recordRequest('evaluation', id).key, owner: 'w1' }) !== undefined;
  return { time, memory, purges, put, has };
}

test('C6: 100,000 purges of other evaluations in an hour end no copy, and are forgotten', async () => {
  const { time, purges, put, has } = create();
  const before = put('kept');
  for (let i = 0; i < CALLS; i += 1) {
    await purges.purge([`evaluation:ev_${i}`], 'hard');
    if (i % 100 === 99) await time.advance(100 * EVERY_MS);
  }
  expect([has('kept'), purges.since(before.position, before.tags)]).toEqual([true, null]);
  expect(purges.table.evaluationsUpTo(2 * CALLS).length).toBeLessThan((1.1 * LATE_MS) / EVERY_MS);
});

test('C6: an answer whose fetch began before what is forgotten is not kept', async () => {
  const { time, purges, put } = create();
  const fetched = put('late');
  expect(mayBeKept(purges, fetched)).toBe(true);
  await purges.purge(['evaluation:late'], 'hard');
  for (let i = 0; i < 2; i += 1) {
    expect(mayBeKept(purges, fetched)).toBe(false);
    await time.advance(LATE_MS + 2000);
    await purges.purge(['evaluation:other'], 'hard');
  }
  expect(purges.table.evaluationsUpTo(10).map(([id]) => id)).toEqual(['other']);
  expect(purges.since(fetched.position, fetched.tags)).toBeNull();
  expect(mayBeKept(purges, fetched)).toBe(false);
});

test('C6: a hard purge drops from memory at once what it names by id, and all else in one pass per second', async () => {
  const { time, purges, put, has } = create();
  for (const id of ['a', 'b', 'c']) put(id);
  await purges.purge(['evaluation:a'], 'hard');
  expect([has('a'), has('b')]).toEqual([false, true]);
  await purges.purge(['workspace:w1'], 'hard');
  expect([has('b'), has('c')]).toEqual([false, false]);
  put('d');
  await purges.purge(['workspace:w1'], 'hard');
  expect(has('d')).toBe(true);
  await time.advance(1000);
  expect(has('d')).toBe(false);
});

test('C6: a purge counts what it has ended, and not what was stored since', async () => {
  const { memory, purges, put } = create();
  const ended = put('a');
  const measure: SharedCacheAdmin['measure'] = async (matches) => {
    const entries = [ended, put('a')].filter(matches).length;
    return { entries, bytes: 0, isComplete: true };
  };
  const shared = { isUp: () => true, ownersOf: () => Promise.resolve([]), measure };
  const request = { tags: ['evaluation:a'], mode: 'hard', isExact: true, isDryRun: false } as const;
  expect(await purge(request, { memory, purges, shared })).toMatchObject({ entries: 1, isDeleted: true });
});

test('no purge is forgotten before an answer from before it comes too late', async () => {
  const { time, purges } = create();
  for (let i = 0; i < 2; i += 1) {
    await purges.purge([`evaluation:${i}`], 'hard');
    await time.advance(1000);
  }
  await time.advance(LATE_MS - 1000);
  await purges.purge(['evaluation:2'], 'hard');
  expect(purges.forgotten).toBe(0);
  await time.advance(1);
  await purges.purge(['evaluation:3'], 'hard');
  expect(purges.forgotten).toBe(1);
});

test('a soft purge is remembered when the hard ones of its time are forgotten', async () => {
  const { time, purges, put } = create();
  const soft = put('soft');
  await purges.purge(['evaluation:soft'], 'soft');
  for (let i = 0; i < 3; i += 1) {
    await time.advance(LATE_MS + 2000);
    await purges.purge([`evaluation:hard_${i}`], 'hard');
  }
  expect(purges.forgotten).toBeGreaterThan(0);
  expect(purges.since(soft.position, soft.tags)).toBe('soft');
});

test('memory is dropped at once if purges were missed, though it has just been looked through', async () => {
  const { purges, put, has } = create();
  await purges.purge(['workspace:w1'], 'hard');
  put('a');
  purges.table.restart({ position: purges.position, purges: new Map(), forgotten: 0 });
  expect(has('a')).toBe(false);
});

test('soft purges of too many evaluations: the oldest become hard, the others stay', async () => {
  const { purges, put, has } = create();
  const [first, last] = [put('0'), put('10000')];
  for (let i = 0; i <= 10_000; i += 1) await purges.purge([`evaluation:${i}`], 'soft');
  expect([has('0'), purges.since(first.position, first.tags)]).toEqual([false, 'hard']);
  expect([has('10000'), purges.since(last.position, last.tags)]).toEqual([true, 'soft']);
});

test('a process that missed forgotten purges drops its memory, and trusts shared copies of before', () => {
  const dropped: (readonly string[])[] = [];
  const table = new PurgeTable({ history: 'a', sequence: 0 }, (_purges, tags) => void dropped.push(tags));
  table.apply(['evaluation:x'], 'soft', 1);
  table.restart({
    position: { history: 'a', sequence: 100 },
    purges: new Map([['lists-of:w1', { soft: 0, hard: 50 }]]),
    forgotten: 0,
  });
  table.forget(100);
  expect(dropped).toEqual([['all']]);
  // Its bytes may not be deleted yet.
  expect(table.lastBroad).toBe(50);
  const old: Position = { history: 'a', sequence: 10 };
  expect(table.since(old, ['evaluation:x'])).toBeNull();
  expect(table.since(old, ['class:list', 'lists-of:w1'])).toBe('hard');
  expect(table.since(old, ['class:notFound', 'evaluation:x'])).toBe('hard');
  table.restart({ position: { history: 'b', sequence: 200 }, purges: new Map(), forgotten: 0 });
  expect(table.since({ history: 'a', sequence: 149 }, [])).toBe('hard');
});
