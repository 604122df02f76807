import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { hash32 } from '../../../../src/cache/hash.ts';
import { GROUPS, TrialKeys } from '../../../../src/cache/trial/keys.ts';

const KEYS = Array.from({ length: 20_000 }, (_, index) => hash32(`v1:{list:workspace-${index % 50}:page-${index}}`));

const anyTrial = fc.record({ id: fc.uuid(), share: fc.double({ min: 0.001, max: 0.5, noNaN: true }) });

test('the share of keys is what was asked for, within what chance allows', () => {
  fc.assert(
    fc.property(anyTrial, ({ id, share }) => {
      const keys = new TrialKeys({ id, share });
      const had = KEYS.filter((keyHash) => keys.has(keyHash)).length;
      const deviation = Math.sqrt(KEYS.length * share * (1 - share));
      expect(Math.abs(had - KEYS.length * share)).toBeLessThan(6 * deviation);
    }),
    { numRuns: 50 },
  );
});

test('every process chooses the same keys, in every release', () => {
  const [one, two] = [new TrialKeys({ id: 'a', share: 0.1 }), new TrialKeys({ id: 'a', share: 0.1 })];
  expect(KEYS.map((keyHash) => one.armOf(keyHash))).toEqual(KEYS.map((keyHash) => two.armOf(keyHash)));
  const first = KEYS.slice(0, 200).flatMap((keyHash, index) =>
    one.has(keyHash) ? [[index, one.groupOf(keyHash)]] : [],
  );
  expect(first).toMatchInlineSnapshot(`
    [
      [
        7,
        28,
      ],
      [
        13,
        0,
      ],
      [
        17,
        3,
      ],
      [
        19,
        0,
      ],
      [
        31,
        18,
      ],
      [
        34,
        27,
      ],
      [
        59,
        28,
      ],
      [
        72,
        4,
      ],
      [
        73,
        11,
      ],
      [
        96,
        10,
      ],
      [
        110,
        20,
      ],
      [
        114,
        9,
      ],
      [
        115,
        7,
      ],
      [
        128,
        3,
      ],
      [
        173,
        4,
      ],
      [
        175,
        29,
      ],
      [
        186,
        5,
      ],
      [
        190,
        15,
      ],
    ]
  `);
});

test('another trial has other keys', () => {
  const [one, two] = [new TrialKeys({ id: 'a', share: 0.1 }), new TrialKeys({ id: 'b', share: 0.1 })];
  const inBoth = KEYS.filter((keyHash) => one.has(keyHash) && two.has(keyHash)).length;
  // A hundredth of all, as of two choices that know nothing of each other.
  expect(Math.abs(inBoth - KEYS.length / 100)).toBeLessThan(6 * Math.sqrt(KEYS.length / 100));
});

test('a larger share has the keys of a smaller one too', () => {
  const [small, large] = [new TrialKeys({ id: 'a', share: 0.05 }), new TrialKeys({ id: 'a', share: 0.5 })];
  expect(KEYS.filter((keyHash) => small.has(keyHash) && !large.has(keyHash))).toEqual([]);
});

test('groups are as large as one another, in both arms', () => {
  const keys = new TrialKeys({ id: 'a', share: 0.2 });
  for (const arm of ['trial', 'control'] as const) {
    const own = KEYS.filter((keyHash) => keys.armOf(keyHash) === arm);
    const sizes = Array.from({ length: GROUPS }, () => 0);
    for (const keyHash of own) sizes[keys.groupOf(keyHash)] = (sizes[keys.groupOf(keyHash)] ?? 0) + 1;
    const expected = own.length / GROUPS;
    for (const size of sizes) expect(Math.abs(size - expected)).toBeLessThan(6 * Math.sqrt(expected));
  }
});
