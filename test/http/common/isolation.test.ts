/**
 * Whatever keys ask for, in whatever order, with whatever is cached, stale, purged, moved or failing: no body and no
 * header ever holds anything of a workspace that the key may not see, or of a surface whose scope it lacks.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { cases } from '../../support/cases.ts';
import { stepOf } from '../../support/isolation-steps.ts';
import { IsolationWorld } from '../../support/isolation-world.ts';

const world = await forFile(IsolationWorld.start('memory'));

test('K5, K6, K7, C4: no interleaving of readers ever shows one what is not its own', async () => {
  const { tally } = world;
  await fc.assert(
    fc.asyncProperty(fc.array(stepOf(5), { minLength: 10, maxLength: 40 }), async (steps) => {
      tally.leaks.length = 0;
      await world.play(steps);
      expect(tally.leaks).toEqual([]);
    }),
    { numRuns: cases(12) },
  );
  // Both happened often, so that neither was a matter of course.
  expect(tally.served).toBeGreaterThan(30);
  expect(tally.refused).toBeGreaterThan(30);
});
