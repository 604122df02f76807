import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UUID_PATTERN } from '../../../src/domain/records.ts';
import { BASE62, createRandom, randomUuid } from '../../../src/sample/random.ts';

function draws(): number[] {
  const random = createRandom(1, 'a', 'b');
  return Array.from({ length: 4 }, () => random.int(0, 999_999));
}

describe('the sample’s randomness', () => {
  test('gives the same sequence for the same seed and parts, on every machine', () => {
    expect(draws()).toEqual(draws());
    expect(draws()).toMatchInlineSnapshot(`
      [
        682140,
        255818,
        952709,
        946705,
      ]
    `);
  });

  test('tells apart parts that would read the same when put together', () => {
    expect(createRandom(1, 'ab', 'c').next()).not.toBe(createRandom(1, 'a', 'bc').next());
    expect(createRandom(1, 'a').next()).not.toBe(createRandom(2, 'a').next());
  });

  test('draws integers with both ends, and nothing beyond', () => {
    const random = createRandom(3);
    const seen = new Set(Array.from({ length: 500 }, () => random.int(-2, 2)));
    expect([...seen].toSorted((a, b) => a - b)).toEqual([-2, -1, 0, 1, 2]);
  });

  test('stays within any range', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: -1e6, max: 1e6 }), fc.nat(1e6), (seed, min, span) => {
        const drawn = createRandom(seed).int(min, min + span);
        expect(drawn).toBeGreaterThanOrEqual(min);
        expect(drawn).toBeLessThanOrEqual(min + span);
      }),
    );
  });

  test('picks by weight: what weighs nothing never comes', () => {
    const random = createRandom(4);
    const drawn = Array.from({ length: 4000 }, () =>
      random.weighted([
        ['often', 3],
        ['never', 0],
        ['seldom', 1],
      ]),
    );
    expect(drawn).not.toContain('never');
    const share = drawn.filter((item) => item === 'often').length / drawn.length;
    expect(share).toBeGreaterThan(0.72);
    expect(share).toBeLessThan(0.78);
  });

  test('shuffles without losing or repeating anything', () => {
    const items = Array.from({ length: 50 }, (_, index) => index);
    const shuffled = createRandom(5).shuffled(items);
    expect(shuffled).not.toEqual(items);
    expect(shuffled.toSorted((a, b) => a - b)).toEqual(items);
  });

  test('has normal draws with mean 0 and deviation 1', () => {
    const random = createRandom(6);
    const normal = Array.from({ length: 20_000 }, () => random.gaussian());
    const mean = normal.reduce((a, b) => a + b, 0) / normal.length;
    const deviation = Math.sqrt(normal.reduce((sum, draw) => sum + (draw - mean) ** 2, 0) / normal.length);
    expect(mean).toBeCloseTo(0, 1);
    expect(deviation).toBeCloseTo(1, 1);
  });

  test('refuses to pick from nothing', () => {
    expect(() => createRandom(7).pick([])).toThrow(RangeError);
    expect(() => createRandom(7).weighted([])).toThrow(RangeError);
  });

  test('makes UUIDs of version 4 and texts of an alphabet', () => {
    const random = createRandom(8);
    expect(randomUuid(random)).toMatch(UUID_PATTERN);
    expect(randomUuid(random)).toMatch(/^.{14}4.{4}[89ab]/);
    expect(random.text(BASE62, 40)).toMatch(/^[0-9A-Za-z]{40}$/);
  });
});
