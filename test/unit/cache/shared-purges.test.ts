/** The purge log in Redis as one process knows it, and what follows hard purges in the background. */
import { expect, test, vi } from 'vitest';
import { PurgeSweep } from '../../../src/cache/redis/purge-sweep.ts';
import type { RedisSharedCache } from '../../../src/cache/redis/redis-shared-cache.ts';
import { StateStore } from '../../../src/cache/redis/state-scripts.ts';
import { SharedPurgeLog } from '../../../src/cache/redis/state-sync.ts';
import { FakeTime } from '../../support/flight-world.ts';

const ROUND_MS = 5000;
const PURGES = ['AAAAAAAAAAAA ["hard",["class:list"]]', 'BBBBBBBBBBBB ["hard",["workspace:w1"]]'] as const;

const down = (): Promise<never> => Promise.reject(new Error('Redis is gone'));

/** A log that has read these purges, and nothing since: Redis is gone. */
function createLog(): SharedPurgeLog {
  const log = new SharedPurgeLog(new StateStore({ kind: 'single', db: 0, run: down }), down, () => undefined);
  log.adopt({
    history: 'one',
    sequence: PURGES.length,
    floor: 0,
    purges: [...PURGES],
    ttlVersion: '',
    ttls: null,
    maintenance: '',
    kept: new Map(),
    forgotten: 0,
    lost: 0,
    swept: { sequence: 0, entries: 0, of: 0 },
    head: [],
    last: PURGES[1],
  });
  return log;
}

test('a message that comes late or twice changes nothing', () => {
  const log = createLog();
  expect(log.append('one', 1, PURGES[0])).toBe(true);
  expect(log.known).toEqual({ history: 'one', sequence: 2, lastId: 'BBBBBBBBBBBB ' });
  expect(log.since({ history: 'one', sequence: 1 }, ['class:list'])).toBeNull();
  expect(log.since({ history: 'one', sequence: 1 }, ['workspace:w1'])).toBe('hard');
});

const ALL = { entries: 0, bytes: 0, isComplete: true };

/** The rounds of one process. Those in `failing` can not count the names in Redis; a pass has that many batches. */
function createSweep({ failing = 0, batches = 0 } = {}) {
  const time = new FakeTime();
  const failed = vi.fn<(error: unknown) => void>();
  let [passes, batchesDone, failuresLeft] = [0, 0, failing];
  const measure: RedisSharedCache['measure'] = async (_matches, pass) => {
    passes += 1;
    for (; batchesDone < batches; batchesDone += 1) await pass?.onBatch?.(batchesDone);
    return ALL;
  };
  const countNames = async (): Promise<number> => {
    failuresLeft -= 1;
    if (failuresLeft >= 0) throw new Error('Redis is gone');
    return 1;
  };
  const purges = createLog();
  vi.spyOn(purges, 'noteSwept').mockResolvedValue();
  const sweep = new PurgeSweep({
    purges,
    sharedCache: { measure, countNames, delete: () => Promise.resolve(), isUp: () => true },
    isElected: () => true,
    clock: time,
    timers: time,
    onFailed: failed,
  });
  const done = () => ({ passes, batchesDone, failures: failed.mock.calls.length });
  return { time, sweep, done };
}

test('C6: bytes are deleted a round after the purge was seen, for its own request may do that still', async () => {
  const { time, done } = createSweep();
  await time.advance(ROUND_MS);
  expect(done().passes).toBe(0);
  await time.advance(ROUND_MS);
  expect(done().passes).toBe(1);
});

test('C6: a round that failed is reported, and the next one tries again', async () => {
  const { time, done } = createSweep({ failing: 1 });
  await time.advance(2 * ROUND_MS);
  expect(done()).toMatchObject({ passes: 0, failures: 1 });
  await time.advance(ROUND_MS);
  expect(done()).toMatchObject({ passes: 1, failures: 1 });
});

test('a process that ends ends its pass, and has no further round', async () => {
  const { time, sweep, done } = createSweep({ batches: 10 });
  await time.advance(2 * ROUND_MS);
  // The first batch is over, and the pass pauses.
  sweep.close();
  await time.advance(10 * ROUND_MS);
  expect(done()).toMatchObject({ passes: 1, batchesDone: 1 });
});
