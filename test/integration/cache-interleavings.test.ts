/** The model test of the cache: no order of reads, changes, failures, purges and time makes it answer what it may not. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { history } from '../support/cache-actions.ts';
import { CacheModel } from '../support/cache-model.ts';
import { BACKENDS, World } from '../support/world.ts';
import { cases } from '../support/cases.ts';
import { forTest } from '../support/opened.ts';

const RUNS = { memory: 30, redis: 5 } as const;

describe.each(BACKENDS)('%s', (kind) => {
  test('C2, C4, C6, K6, Q9: nobody is shown what is purged, too old, or of another workspace; nothing is asked twice at once; everybody is answered', async () => {
    const world = await forTest(World.start(kind));
    await fc.assert(
      fc.asyncProperty(history, async (actions) => {
        const model = new CacheModel(world);
        await model.start();
        try {
          for (const each of actions) await model.play(each);
          await model.finish();
        } finally {
          model.close();
        }
        // On a machine that is busy enough, Redis may seem gone: then less is promised.
        fc.pre(!world.hasLostRedis());
        expect(model.faults).toEqual([]);
      }),
      { numRuns: cases(RUNS[kind]), endOnFailure: kind === 'redis' },
    );
  }, 300_000);
});
