/** The background work that follows hard purges. */
import { expect, test, vi } from 'vitest';
import { PurgeSweep } from '../../../src/cache/redis/purge-sweep.ts';
import type { RedisCopies } from '../../../src/cache/redis/redis-copies.ts';
import { PurgeLog } from '../../../src/cache/purge-log.ts';
import { keysOfEvaluation } from '../../../src/cache/request.ts';
import { MemoryJournal } from '../../../src/journal/memory-journal.ts';
import { FakeTime } from '../../support/flight-world.ts';

const ROUND_MS = 5000;
/** As if others held copies too. */
async function createLog(time: FakeTime): Promise<PurgeLog> {
  const log = new PurgeLog({ journal: new MemoryJournal(), clock: time });
  await log.purge(['class:list'], 'hard');
  await log.purge(['workspace:w1'], 'hard');
  return log;
}

async function createLogOfEvaluations(time: FakeTime): Promise<PurgeLog> {
  const log = new PurgeLog({ journal: new MemoryJournal(), clock: time });
  await log.purge(['evaluation:ev_1'], 'hard');
  await log.purge(['evaluation:ev_2'], 'hard');
  return log;
}

const ALL = { entries: 0, bytes: 0, isComplete: true };

/** The rounds of one process. Those in `failing` can not count the names in Redis; a pass has that many batches. */
async function createSweep({ failing = 0, batches = 0, create = createLog } = {}) {
  const time = new FakeTime();
  const failed = vi.fn<(error: unknown) => void>();
  let [passes, batchesDone, failuresLeft] = [0, 0, failing];
  const measure: RedisCopies['measure'] = async (_matches, pass) => {
    passes += 1;
    for (; batchesDone < batches; batchesDone += 1) await pass?.onBatch?.(batchesDone);
    return ALL;
  };
  const countNames = async (): Promise<number> => {
    failuresLeft -= 1;
    if (failuresLeft >= 0) throw new Error('Redis is gone');
    return 1;
  };
  const purges = await create(time);
  const noteSwept = vi.spyOn(purges, 'noteSwept').mockResolvedValue();
  const deletedKeys = new Set<string>();
  const sweep = new PurgeSweep({
    purges,
    copies: {
      measure,
      noteSweep: () => Promise.resolve(),
      countNames,
      delete: async (keys) => {
        for (const key of keys) deletedKeys.add(key);
      },
      mark: () => Promise.resolve(),
      isUp: () => true,
      addEnding: async () => [],
    },
    seenCalls: { noteAnnounced: () => Promise.resolve() },
    isElected: () => true,
    clock: time,
    timers: time,
    onFailed: failed,
  });
  const done = () => ({ passes, batchesDone, failures: failed.mock.calls.length });
  return { time, sweep, done, purges, noteSwept, deletedKeys };
}

test('C6: bytes are deleted a round after the purge was seen, for its own request may do that still', async () => {
  const { time, done } = await createSweep();
  await time.advance(ROUND_MS);
  expect(done().passes).toBe(0);
  await time.advance(ROUND_MS);
  expect(done().passes).toBe(1);
});

test('C6: a round that failed is reported, and the next one tries again', async () => {
  const { time, done } = await createSweep({ failing: 1 });
  await time.advance(2 * ROUND_MS);
  expect(done()).toMatchObject({ passes: 0, failures: 1 });
  await time.advance(ROUND_MS);
  expect(done()).toMatchObject({ passes: 1, failures: 1 });
});

test('a process that ends ends its pass, and has no further round', async () => {
  const { time, sweep, done } = await createSweep({ batches: 10 });
  await time.advance(2 * ROUND_MS);
  // The first batch is over, and the pass pauses.
  sweep.close();
  await time.advance(10 * ROUND_MS);
  expect(done()).toMatchObject({ passes: 1, batchesDone: 1 });
});

test('C6: a purge counts as deleted only if its copies are, also of an evaluation that was purged once more since', async () => {
  const { time, purges, noteSwept, deletedKeys } = await createSweep({ create: createLogOfEvaluations });
  const { last } = purges;
  await time.advance(ROUND_MS);
  await purges.purge(['evaluation:ev_1'], 'hard');
  await time.advance(ROUND_MS);
  expect(noteSwept.mock.calls).toEqual([[last]]);
  expect([...deletedKeys]).toEqual(expect.arrayContaining([...keysOfEvaluation('ev_1'), ...keysOfEvaluation('ev_2')]));
});
