import { expect, test } from 'vitest';
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

test('keys take turns slice by slice, and the computations of one key run one after another', async () => {
  const queue = new SliceQueue();
  const log: string[] = [];
  const results = await Promise.all([
    ...['a1', 'a2', 'a3'].map((name) => queue.run('a', () => noted(log, name, 3))),
    queue.run('b', () => noted(log, 'b1', 2)),
  ]);
  expect(results).toEqual(['a1', 'a2', 'a3', 'b1']);
  expect(log.join(' ')).toBe('a1 a1 b1 a1 b1 a2 a2 a2 a3 a3 a3');
});

test('at most one slice is run per turn of the event loop', async () => {
  const queue = new SliceQueue();
  const log: string[] = [];
  const ended = Promise.all(['a', 'b'].map((key) => queue.run(key, () => noted(log, key, 3))));
  const runPerTurn: number[] = [];
  for (let before = log.length; log.length < 6; before = log.length) {
    await new Promise((resolve) => void setImmediate(resolve));
    runPerTurn.push(log.length - before);
  }
  await ended;
  expect(Math.max(...runPerTurn)).toBe(1);
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
