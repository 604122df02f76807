/** A bar of `npm run prove`: recorded with the test that measures it, for the table at the end, and asserted. */
import { expect, type TestContext } from 'vitest';
import type { Sample } from '../support/load.ts';
import { percentile } from '../support/percentile.ts';

export interface Bar {
  readonly name: string;
  /** The promise, in words with figures. */
  readonly bar: string;
  /** The measurement, in the same terms. */
  readonly measured: string;
  readonly ok: boolean;
}

declare module 'vitest' {
  interface TaskMeta {
    bars?: readonly Bar[];
  }
}

/** Fails the test, with what was measured, if one is missed. */
export function prove({ task }: Pick<TestContext, 'task'>, ...bars: readonly Bar[]): void {
  task.meta.bars = [...(task.meta.bars ?? []), ...bars];
  expect(bars.filter(({ ok }) => !ok).map(({ name, measured }) => `${name}: ${measured}`)).toEqual([]);
}

/** Says so where it is seen, and leaves the rest of the test out. */
export function skipLoudly({ task, skip }: Pick<TestContext, 'task' | 'skip'>, why: string): never {
  process.stderr.write(`\nSKIPPED  ${task.name}: ${why}\n`);
  return skip(why);
}

export function p99(samples: readonly Sample[]): number {
  return percentile(
    samples.map(({ tookMs }) => tookMs),
    0.99,
  );
}

/** The most of the times that any closed stretch of that length holds. */
export function mostWithin(times: readonly number[], length: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  let [first, most] = [0, 0];
  for (const [index, end] of sorted.entries()) {
    while ((sorted[first] ?? end) < end - length) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

/** Whole milliseconds for people. */
export function ms(value: number): string {
  return `${Math.round(value).toLocaleString('en')} ms`;
}

export function count(value: number): string {
  return value.toLocaleString('en');
}

export function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
