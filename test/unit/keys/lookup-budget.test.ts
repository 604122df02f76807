import { array, assert, nat, property } from 'fast-check';
import { expect, test } from 'vitest';
import { LookupBudget } from '../../../src/keys/lookup-budget.ts';

test('what is used up comes back a second later, one by one', () => {
  const budget = new LookupBudget(2);
  expect([budget.take(0), budget.take(400), budget.take(999)]).toEqual([true, true, false]);
  expect(budget.left(999)).toBe(0);
  expect(budget.left(1000)).toBe(1);
  expect([budget.take(1000), budget.take(1399), budget.take(1400)]).toEqual([true, false, true]);
});

test('no second, wherever it begins, holds more than ten, and one that could be had is never refused', () => {
  const gaps = array(nat({ max: 300 }), { minLength: 1, maxLength: 200 });
  assert(
    property(gaps, (gapsMs) => {
      const budget = new LookupBudget(10);
      const taken: number[] = [];
      let nowMs = 0;
      for (const gapMs of gapsMs) {
        nowMs += gapMs;
        const lately = taken.filter((atMs) => nowMs - atMs < 1000).length;
        const isTaken = budget.take(nowMs);
        expect(isTaken).toBe(lately < 10);
        if (isTaken) taken.push(nowMs);
      }
    }),
  );
});
