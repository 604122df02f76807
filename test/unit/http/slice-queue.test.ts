import { expect, test, vi } from 'vitest';
import { SliceQueue } from '../../../src/http/slice-queue.ts';
import type { Slices } from '../../../src/transcript/slices.ts';

/** A computation that notes its name in each of so many slices. */
function* noted(log: string[], name: string, slices: number): Slices<string> {
  for (let i = 1; i < slices; i += 1) {
    log.push(name);
    yield;
  }
  log.push(name);
  return name;
}

function failing(): Slices<string> {
  throw new RangeError('broken');
}

/** How often each name comes in turn: `a1*8 b1*3`. */
function runsOf(log: readonly string[]): string {
  const runs: [string, number][] = [];
  for (const name of log) {
    const last = runs.at(-1);
    if (last?.[0] === name) last[1] += 1;
    else runs.push([name, 1]);
  }
  return runs.map(([name, times]) => `${name}*${times}`).join(' ');
}

test('keys take turns, eight slices each, and the computations of one key run one after another', async () => {
  const queue = new SliceQueue();
  const log: string[] = [];
  const jobs = ['a1', 'a2', 'b1', 'c1'];
  const results = await Promise.all(jobs.map((name) => queue.run(name.slice(0, 1), () => noted(log, name, 20))));
  expect(results).toEqual(jobs);
  const runs = runsOf(log).split(' ');
  expect(runs.filter((run) => run.startsWith('b'))).toEqual(['b1*8', 'b1*8', 'b1*4']);
  expect(log.lastIndexOf('a1')).toBeLessThan(log.indexOf('a2'));
  // All keys with equal jobs have had a turn before one has its third.
  expect(
    runs
      .slice(0, 4)
      .map((run) => run.slice(0, 1))
      .toSorted()
      .join(''),
  ).toMatch(/^a+b+c+$/);
});

test('a small computation waits for one turn of large ones at a time, however many keys have those', async () => {
  const queue = new SliceQueue();
  const log: string[] = [];
  const large = ['a', 'b', 'c', 'd'].map((keyId) => queue.run(keyId, () => noted(log, keyId, 200)));
  await vi.waitUntil(() => log.length >= 100);
  const [small, began] = ['small', log.length];
  await queue.run('e', () => noted(log, small, 12));
  expect(log.filter((name, at) => at >= began && name !== small).length).toBeLessThanOrEqual(4 * 8);
  await Promise.all(large);
  expect(log).toHaveLength(812);
});

test('at most eight slices are run per turn of the event loop', async () => {
  const queue = new SliceQueue();
  const log: string[] = [];
  const ended = Promise.all(['a', 'b'].map((key) => queue.run(key, () => noted(log, key, 20))));
  const runPerTurn: number[] = [];
  for (let before = log.length; log.length < 40; before = log.length) {
    await new Promise((resolve) => void setImmediate(resolve));
    runPerTurn.push(log.length - before);
  }
  await ended;
  expect(Math.max(...runPerTurn)).toBe(8);
});

test('what nobody waits for any more is given up, and a failure is only its own', async () => {
  const queue = new SliceQueue();
  const log: string[] = [];
  const gone = new AbortController();
  const running = queue.run('a', () => noted(log, 'a1', 2));
  const aborted = queue.run('a', () => noted(log, 'never', 2), gone.signal);
  const failed = queue.run('a', failing);
  const last = queue.run('a', () => noted(log, 'a2', 1));
  gone.abort(new Error('gone'));
  expect(await Promise.allSettled([running, aborted, failed, last])).toEqual([
    { status: 'fulfilled', value: 'a1' },
    { status: 'rejected', reason: new Error('gone') },
    { status: 'rejected', reason: new RangeError('broken') },
    { status: 'fulfilled', value: 'a2' },
  ]);
  expect(log).toEqual(['a1', 'a1', 'a2']);
});
