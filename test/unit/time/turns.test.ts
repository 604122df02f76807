import { expect, test } from 'vitest';
import { Batches, createYield, nextTurn } from '../../../src/time/turns.ts';

/** How much longer the log is after each turn of the event loop, until it has so many entries. */
async function entriesPerTurn(log: readonly unknown[], entries: number): Promise<readonly number[]> {
  const added: number[] = [];
  for (let before = log.length; log.length < entries; before = log.length) {
    await new Promise((resolve) => void setImmediate(resolve));
    added.push(log.length - before);
  }
  return added;
}

test('those who wait for a turn go on one by one, each in a turn of its own, in their order', async () => {
  const log: string[] = [];
  const takeTwo = async (name: string): Promise<void> => {
    for (const turn of [1, 2]) {
      await nextTurn();
      log.push(`${name}${turn}`);
    }
  };
  for (const name of ['a', 'b', 'c']) void takeTwo(name);
  expect(Math.max(...(await entriesPerTurn(log, 6)))).toBe(1);
  expect(log.join(' ')).toBe('a1 b1 c1 a2 b2 c2');
});

test('short work does not wait; long work waits for a turn', async () => {
  const log: string[] = [];
  setImmediate(() => log.push('others'));
  const yieldIfLong = createYield();
  const ended = (async () => {
    await yieldIfLong();
    log.push('short');
    for (const beganMs = performance.now(); performance.now() - beganMs < 15;);
    await yieldIfLong();
    log.push('long');
  })();
  await ended;
  expect(log).toEqual(['short', 'others', 'long']);
});

test('short work waits for two steps of long work at most, and long work goes on however much short work comes', async () => {
  const log: string[] = [];
  const take = async (name: string, usedMs: number): Promise<void> => {
    await nextTurn(usedMs);
    log.push(name);
  };
  for (const name of ['long1', 'long2', 'long3', 'long4']) void take(name, 50);
  for (const name of ['short1', 'short2', 'short3']) void take(name, 0);
  expect(Math.max(...(await entriesPerTurn(log, 7)))).toBe(1);
  expect(log.filter((name) => name.startsWith('short'))).toEqual(['short1', 'short2', 'short3']);
  expect(log.filter((name) => name.startsWith('long'))).toEqual(['long1', 'long2', 'long3', 'long4']);
  expect(log.indexOf('short1')).toBeLessThanOrEqual(1);
  expect(log.indexOf('short3')).toBeLessThanOrEqual(5);
  expect(log.indexOf('long2')).toBeLessThanOrEqual(4);
});

test('work that has had much of the event loop lets go first what has had none', async () => {
  const log: string[] = [];
  const yieldIfLong = createYield();
  const hold = async (): Promise<void> => {
    for (const beganMs = performance.now(); performance.now() - beganMs < 12;);
    await yieldIfLong();
  };
  await hold();
  const rest = Promise.all([hold(), hold()]).then(() => log.push('long'));
  const short = [1, 2].map(async (n) => {
    await nextTurn();
    log.push(`short${n}`);
  });
  await Promise.all([rest, ...short]);
  expect(log.indexOf('short1')).toBeLessThan(log.indexOf('long'));
});

test('many who wait for the same thing go on in batches, one in a turn; a few do not wait', async () => {
  const batches = new Batches();
  const log: number[] = [];
  const waiters = Array.from({ length: 120 }, async (_, i) => {
    await batches.next();
    log.push(i);
  });
  await Promise.resolve();
  await Promise.resolve();
  expect(log).toHaveLength(50);
  expect(await entriesPerTurn(log, 120)).toSatisfy((added: readonly number[]) => Math.max(...added) === 50);
  await Promise.all(waiters);
  expect(log).toEqual(Array.from({ length: 120 }, (_, i) => i));
});
