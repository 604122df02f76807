import { array, assert, constantFrom, double, integer, property, tuple } from 'fast-check';
import { expect, test } from 'vitest';
import { HeavyHitters } from '../../../src/admin/heavy-hitters.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'] as const;

/** The definition, by looking at all places for the lightest; null where two are as light and either may go. */
function placesAfter(most: number, calls: readonly (readonly [name: string, ms: number])[]) {
  const places = new Map<string, { calls: number; ms: number; weight: number }>();
  for (const [name, ms] of calls) {
    let place = places.get(name);
    if (place === undefined) {
      let weight = 0;
      if (places.size === most) {
        const [lightest, next] = [...places].toSorted(([, a], [, b]) => a.weight - b.weight);
        if (lightest === undefined || next?.[1].weight === lightest[1].weight) return null;
        places.delete(lightest[0]);
        ({ weight } = lightest[1]);
      }
      place = { calls: 0, ms: 0, weight };
      places.set(name, place);
    }
    place.calls += 1;
    place.ms += ms;
    place.weight += 1 + ms;
  }
  return new Map([...places].map(([name, { calls: count, ms }]) => [name, { calls: count, ms }]));
}

test('the name that is dropped is always the lightest, as looking at all of them finds it', () => {
  const call = tuple(constantFrom(...NAMES), double({ min: 0, max: 1000, noNaN: true }));
  let compared = 0;
  assert(
    property(integer({ min: 1, max: 7 }), array(call, { maxLength: 60 }), (most, calls) => {
      const expected = placesAfter(most, calls);
      if (expected === null) return;
      compared += 1;
      const hitters = new HeavyHitters<null>(most);
      for (const [name, ms] of calls) hitters.add(name, null, ms);
      const counted = hitters.counted().map(({ name, calls: count, ms }) => [name, { calls: count, ms }] as const);
      expect(new Map(counted)).toEqual(expected);
    }),
    { numRuns: 300 },
  );
  expect(compared).toBeGreaterThan(50);
});
