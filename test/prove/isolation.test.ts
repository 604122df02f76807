/** Keys of three tenants, some of lesser scopes, at two gateways of one fleet: nothing of one is ever shown to another. */
import * as fc from 'fast-check';
import { test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { stepOf } from '../support/isolation-steps.ts';
import { IsolationWorld } from '../support/isolation-world.ts';
import { count, percent, prove } from './bar.ts';

const GATEWAYS = 2;
const REQUESTS = 100_000;
const STEPS_A_RUN = 1000;
/** So many that caches are mostly warm. */
const READS_PER_CHANGE = 25;

test('nothing crosses between tenants', async (context) => {
  const world = await forTest(IsolationWorld.start('redis', { gateways: GATEWAYS, env: { LOG_LEVEL: 'error' } }));
  const { tally } = world;
  for (let seed = 1; tally.requests < REQUESTS && tally.leaks.length === 0; seed += 1) {
    await world.play(fc.sample(stepOf(READS_PER_CHANGE), { numRuns: STEPS_A_RUN, seed }));
  }
  const served = tally.served / tally.requests;
  const fromCache = tally.fromCache / tally.served;
  const refused = tally.refused / tally.requests;
  prove(context, {
    name: 'isolation',
    bar: `${count(REQUESTS)} requests of three tenants' keys and lesser scopes to ${GATEWAYS} gateways over warm caches, with purges, moves, time and store failures between: nothing crosses`,
    measured: `${count(tally.requests)} requests, ${percent(served)} served (${percent(fromCache)} of them from a cache), ${percent(refused)} refused, ${percent(tally.failed / tally.requests)} failed with the store, ${count(tally.changes)} changes around them: ${tally.leaks[0] ?? 'nothing crossed'}`,
    // None of these is a matter of course.
    ok: tally.leaks.length === 0 && served > 0.25 && fromCache > 0.5 && refused > 0.25,
  });
});
