import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { GcWatch } from '../../../src/admin/metrics/gc-watch.ts';

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc()');
}

const HOUR_MS = 3_600_000;

test('of a look in which garbage was collected the share of its time is told', async () => {
  const watch = new GcWatch(HOUR_MS);
  const startedMs = performance.now();
  watch.begin();
  for (let i = 0; i < 20; i += 1) collectGarbage();
  const spentMs = performance.now() - startedMs;
  await setImmediate();
  await setImmediate();
  expect(watch.ratio).toBe(0);
  watch.end();
  const wholeMs = performance.now() - startedMs;
  expect(watch.ratio).toBeGreaterThan((0.3 * spentMs) / wholeMs);
  expect(watch.ratio).toBeLessThanOrEqual(1);
});

test('outside of a look nothing is counted', async () => {
  const watch = new GcWatch(HOUR_MS);
  watch.begin();
  watch.end();
  for (let i = 0; i < 5; i += 1) collectGarbage();
  await setImmediate();
  watch.begin();
  await setImmediate();
  watch.end();
  expect(watch.ratio).toBeLessThan(0.5);
});

test('a look ends by itself', async () => {
  const watch = new GcWatch(20);
  const lookAgain = (): number => {
    watch.begin();
    collectGarbage();
    return watch.ratio;
  };
  await expect.poll(lookAgain).toBeGreaterThan(0);
  watch.end();
});
