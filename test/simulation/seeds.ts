/** The seeds that the tests run, in parts, so that each core has some. */
import { expect, inject, it } from 'vitest';
import { reportOf, simulate } from './simulate.ts';

const PARTS = 2;
const [IN_TEST, IN_PROVE] = [300, 10_000];
/** So many in one test. */
const BATCH = 50;

/** Declares the tests of that part, from 0. */
export function testSeeds(part: number): void {
  const count = (inject('thoroughness') === 1 ? IN_TEST : IN_PROVE) / PARTS;
  for (let first = part * count + 1; first <= (part + 1) * count; first += BATCH) {
    it(`keeps the rules in the fleets ${first} to ${first + BATCH - 1}`, { timeout: 600_000 }, async () => {
      for (let seed = first; seed < first + BATCH; seed += 1) {
        expect(reportOf(await simulate(seed), seed)).toBe('');
      }
    });
  }
}
