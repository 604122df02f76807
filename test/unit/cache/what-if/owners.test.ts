import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hash32 } from '../../../../src/cache/hash.ts';
import { Owners } from '../../../../src/cache/what-if/owners.ts';

const KEYS = Array.from({ length: 20_000 }, (_, index) => hash32(`v1:{evaluation:ev_${index}}`));
const IDS = ['4f6c', '8a01', 'b7e2', 'c9d3'];

function sharesOf(owners: Owners): readonly number[] {
  const counts = owners.ids.map(() => 0);
  for (const key of KEYS) {
    const owner = owners.of(key);
    counts[owner] = (counts[owner] ?? 0) + 1;
  }
  return counts.map((count) => count / KEYS.length);
}

describe('the process that follows a key', () => {
  test('is the only one there is', () => {
    expect(new Set(KEYS.map((key) => new Owners(['a']).of(key)))).toEqual(new Set([0]));
  });

  test('each follows about as many keys as any other', () => {
    for (const share of sharesOf(new Owners(IDS))) expect(Math.abs(share - 0.25)).toBeLessThan(0.015);
  });

  test('where one goes, only its keys change hands, and where one comes, only to it', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.uuid(), { minLength: 2, maxLength: 8 }),
        fc.nat(),
        fc.uniqueArray(fc.integer({ min: 0, max: 0xffffffff }), { minLength: 50, maxLength: 50 }),
        (unordered, pick, keys) => {
          const ids = unordered.toSorted();
          const gone = ids[pick % ids.length];
          const [before, after] = [new Owners(ids), new Owners(ids.filter((id) => id !== gone))];
          const kept = keys.filter((key) => ids[before.of(key)] !== gone);
          expect(kept.map((key) => after.ids[after.of(key)])).toEqual(kept.map((key) => ids[before.of(key)]));
        },
      ),
    );
  });
});
