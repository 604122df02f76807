import { describe, expect, test } from 'vitest';
import { purge, type PurgeResult } from '../../../src/cache/purge.ts';
import { MemoryPurgeLog, PurgeTable, type PurgeMode } from '../../../src/cache/purge-log.ts';
import type { Tag } from '../../../src/cache/tags.ts';
import type { ListQuery } from '../../../src/upstream/store.ts';
import { CONTEXT, createRig, recordOf, type Rig, TEST_TIMES } from '../../support/cache-rig.ts';
import { storeFailure } from '../../support/counting-store.ts';
import { settle } from '../../support/manual-timers.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const fail = (): Promise<never> => Promise.reject(new Error('out of reach'));

const listOf = (workspaceId: string): ListQuery => ({
  workspaceIds: [workspaceId],
  search: null,
  scorecardId: null,
  offset: 0,
  limit: 50,
});

function run(
  { memory, purges }: Rig,
  tag: Tag,
  options: { mode?: PurgeMode; isDryRun?: boolean } = {},
): Promise<PurgeResult> {
  const request = { tags: [tag], mode: options.mode ?? 'hard', isDryRun: options.isDryRun ?? false };
  return purge(request, { memory, shared: null, purges });
}

/** One evaluation with its parts and its list in each workspace, all cached. */
async function createWarmRig(): Promise<Rig> {
  const rig = createRig();
  rig.store.evaluations.set('a', anEvaluation({ _id: 'a' }));
  const scorecardRef = { id: 'sc_2', name: 'Another' };
  rig.store.evaluations.set('b', anEvaluation({ _id: 'b', workspaceId: WORKSPACE_B, scorecardRef }));
  await readAll(rig);
  return rig;
}

/** Reads everything and tells what was asked of the store anew. */
async function readAll({ reader, store, timers }: Rig): Promise<readonly string[]> {
  await timers.advance(1);
  const before = store.calls.length;
  await reader.evaluation('a', CONTEXT);
  await reader.evaluation('b', CONTEXT);
  await reader.transcript('a', CONTEXT);
  await reader.rubric('sc_1', CONTEXT);
  await reader.rubric('sc_2', CONTEXT);
  await reader.list(listOf(WORKSPACE_A), CONTEXT);
  await reader.list(listOf(WORKSPACE_B), CONTEXT);
  await settle();
  return store.calls.slice(before).map(({ kind, subject }) => {
    if (kind !== 'list') return `${kind} ${subject}`;
    return subject.includes(WORKSPACE_A) ? 'list A' : 'list B';
  });
}

describe('what a purge drops', () => {
  test.each([
    ['all', ['evaluation a', 'evaluation b', 'transcript a', 'rubric sc_1', 'rubric sc_2', 'list A', 'list B']],
    ['class:list', ['list A', 'list B']],
    ['class:rubric', ['rubric sc_1', 'rubric sc_2']],
    // The sample rubrics are of workspace A, both of them.
    [`workspace:${WORKSPACE_A}`, ['evaluation a', 'transcript a', 'rubric sc_1', 'rubric sc_2', 'list A']],
    [`workspace:${WORKSPACE_B}`, ['evaluation b', 'list B']],
    ['scorecard:sc_2', ['evaluation b', 'rubric sc_2', 'list B']],
  ] as const)('%s', async (tag, expected) => {
    const rig = await createWarmRig();
    expect(await readAll(rig)).toEqual([]);
    await run(rig, tag);
    expect(await readAll(rig)).toEqual(expected);
    expect(await readAll(rig)).toEqual([]);
  });

  test('C6: an evaluation, its parts, and the lists of its workspace, which may hold it', async () => {
    const rig = await createWarmRig();
    await run(rig, 'evaluation:a');
    expect(await readAll(rig)).toEqual(['evaluation a', 'transcript a', 'list A']);
  });

  test('C6: all lists, where no copy tells the workspace of the evaluation', async () => {
    const rig = await createWarmRig();
    await run(rig, 'evaluation:unheard-of');
    expect(await readAll(rig)).toEqual(['list A', 'list B']);
  });

  test('what is absent goes with every workspace, because it may have been of that', async () => {
    const rig = createRig();
    await rig.reader.evaluation('none', CONTEXT);
    await run(rig, `workspace:${WORKSPACE_B}`);
    await rig.reader.evaluation('none', CONTEXT);
    expect(rig.store.count()).toBe(2);
  });
});

describe('how', () => {
  test('a hard purge leaves nothing, not even for a failing store', async () => {
    const rig = await createWarmRig();
    await run(rig, 'evaluation:a');
    rig.store.failure = storeFailure();
    await expect(rig.reader.transcript('a', CONTEXT)).rejects.toBe(rig.store.failure);
  });

  test('after a hard purge the store is asked unconditionally: what was dropped is not to be confirmed', async () => {
    const rig = await createWarmRig();
    await run(rig, 'evaluation:a');
    await rig.reader.transcript('a', CONTEXT);
    expect(rig.store.calls.at(-1)?.options).not.toHaveProperty('ifNoneMatch');
  });

  test('a soft purge makes fresh copies stale: they are served while they are refreshed', async () => {
    const rig = await createWarmRig();
    rig.store.revision = 2;
    await run(rig, 'evaluation:a', { mode: 'soft' });
    const read = await rig.reader.transcript('a', CONTEXT);
    expect(read).toMatchObject({ outcome: 'stale-while-revalidate', ttlMs: 0 });
    expect(recordOf(read).body).toBe('Sam: 1');
    await settle();
    const after = await rig.reader.transcript('a', CONTEXT);
    expect(after.outcome).toBe('hit');
    expect(recordOf(after).body).toBe('Sam: 2');
  });

  test('a dry run tells entries and bytes and drops nothing; the purge itself tells the same, and then nothing is left', async () => {
    const rig = await createWarmRig();
    const dry = await run(rig, `workspace:${WORKSPACE_B}`, { isDryRun: true });
    expect(dry.entries).toBe(2);
    expect(dry.bytes).toBeGreaterThan(2 * 512);
    expect(dry.bytes).toBeLessThan(rig.memory.usage().bytes);
    expect(await readAll(rig)).toEqual([]);
    expect(await run(rig, `workspace:${WORKSPACE_B}`)).toEqual(dry);
    expect(await run(rig, `workspace:${WORKSPACE_B}`, { isDryRun: true })).toMatchObject({ entries: 0, bytes: 0 });
  });

  test('a shared tier that is out of reach keeps nobody from purging', async () => {
    const rig = await createWarmRig();
    const shared = { get: fail, set: fail, seed: fail, delete: fail, measure: fail };
    const { memory, purges } = rig;
    const result = await purge({ tags: ['evaluation:a'], mode: 'hard', isDryRun: false }, { memory, shared, purges });
    expect(result.entries).toBe(3);
    expect(await readAll(rig)).toEqual(['evaluation a', 'transcript a', 'list A']);
  });
});

describe('a purge during a fetch', () => {
  test('the fill that began before it does not survive it; its own reader still gets the answer', async () => {
    const rig = createRig();
    rig.store.hold();
    const read = rig.reader.transcript('a', CONTEXT);
    await settle();
    await run(rig, 'evaluation:a');
    rig.store.release();
    expect(await read).toMatchObject({ outcome: 'miss', stored: false });
    expect((await rig.reader.transcript('a', CONTEXT)).outcome).toBe('miss');
    expect(rig.store.count()).toBe(2);
  });

  test('the workspace of an answer counts, though nobody knew it when the fetch began', async () => {
    const rig = createRig();
    rig.store.hold();
    const read = rig.reader.transcript('a', CONTEXT);
    await settle();
    await run(rig, `workspace:${WORKSPACE_A}`);
    rig.store.release();
    expect((await read).stored).toBe(false);
  });

  test('who comes after it is not given the answer of a flight that began before, and the store has one call at a time', async () => {
    const rig = createRig();
    rig.store.hold();
    const before = rig.reader.transcript('a', CONTEXT);
    await settle();
    await run(rig, 'evaluation:a');
    rig.store.revision = 2;
    const after = [rig.reader.transcript('a', CONTEXT), rig.reader.transcript('a', CONTEXT)];
    await settle();
    expect(rig.store.count()).toBe(1);
    rig.store.release();
    expect(recordOf(await before).body).toBe('Sam: 1');
    for (const read of after) expect(recordOf(await read).body).toBe('Sam: 2');
    expect(rig.store.count()).toBe(2);
  });

  test('a list that was under way seeds nothing', async () => {
    const rig = createRig();
    rig.store.evaluations.set('a', anEvaluation({ _id: 'a' }));
    rig.store.hold();
    const list = rig.reader.list(listOf(WORKSPACE_A), CONTEXT);
    await settle();
    await run(rig, 'evaluation:a');
    rig.store.release();
    await list;
    expect((await rig.reader.evaluation('a', CONTEXT)).outcome).toBe('miss');
  });

  test('C3: a copy that is purged while the store is waited for is not served', async () => {
    const rig = createRig();
    await rig.reader.transcript('a', CONTEXT);
    await rig.timers.advance(TEST_TIMES.freshMs + TEST_TIMES.staleMs);
    rig.store.hold();
    const read = rig.reader.transcript('a', CONTEXT);
    await settle();
    await run(rig, 'evaluation:a');
    await rig.timers.advance(1000);
    rig.store.release();
    expect((await read).outcome).toBe('miss');
  });
});

describe('the log', () => {
  test('an entry from before an unknown history is not there', () => {
    const log = new MemoryPurgeLog();
    expect(log.since({ history: 'another', sequence: 99 }, ['all'])).toBe('hard');
  });

  test('of a soft and a hard purge since its fetch, the hard one rules an entry', () => {
    const table = new PurgeTable('h');
    table.apply(['class:list'], 'hard', 1);
    table.apply(['class:list'], 'soft', 2);
    expect(table.since({ history: 'h', sequence: 0 }, ['class:list'])).toBe('hard');
    expect(table.since({ history: 'h', sequence: 1 }, ['class:list'])).toBe('soft');
    expect(table.since({ history: 'h', sequence: 2 }, ['class:list'])).toBeNull();
    expect(table.since({ history: 'h', sequence: 0 }, ['class:rubric'])).toBeNull();
  });

  test('a table whose past is not known takes everything from before for purged', () => {
    const table = new PurgeTable('h', 7);
    expect(table.since({ history: 'h', sequence: 6 }, ['class:list'])).toBe('hard');
    expect(table.since({ history: 'h', sequence: 7 }, ['class:list'])).toBeNull();
  });

  test('a table that is full forgets the oldest tags, and with them all that was filled before', () => {
    const table = new PurgeTable('h', 0, 2);
    table.apply(['evaluation:a'], 'hard', 1);
    table.apply(['evaluation:b'], 'hard', 2);
    table.apply(['evaluation:a'], 'soft', 3);
    table.apply(['evaluation:c'], 'hard', 4);
    const since = (sequence: number, tag: Tag): PurgeMode | null => table.since({ history: 'h', sequence }, [tag]);
    expect(since(1, 'evaluation:z')).toBe('hard');
    expect(since(2, 'evaluation:z')).toBeNull();
    expect(since(2, 'evaluation:a')).toBe('soft');
    expect(since(2, 'evaluation:c')).toBe('hard');
  });
});
