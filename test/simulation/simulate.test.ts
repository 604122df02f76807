import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { edited, MUTATIONS } from './mutations.ts';
import { simulate } from './simulate.ts';

it('repeats a seed exactly', async () => {
  const [first, other, again] = [await simulate(3), await simulate(4), await simulate(3)];
  expect(again.trace).toBe(first.trace);
  expect(other.trace).not.toBe(first.trace);
  expect(first.trace.split('\n').length).toBeGreaterThan(100);
});

it.each(Object.entries(MUTATIONS))('can put the fault %s into the source', (_name, { edits }) => {
  for (const edit of edits) {
    const source = readFileSync(`src/${edit.file}`, 'utf8');
    expect(edited(source, edit)).not.toBe(source);
  }
});
