/** Keys of three tenants, some of lesser scopes, at two gateways of one fleet: nothing of one is ever shown to another. */
import * as fc from 'fast-check';
import { stepOf } from '../../support/isolation-steps.ts';
import { IsolationWorld } from '../../support/isolation-world.ts';
import { startRedis } from '../../support/redis.ts';
import { count, type Row, scaled, type Scale } from '../row.ts';

const GATEWAYS = 2;
const STEPS_A_RUN = 1000;
/** So many that caches are mostly warm. */
const READS_PER_CHANGE = 25;

export async function run(scale: Scale): Promise<readonly Row[]> {
  const requests = scaled(scale, 100_000);
  const redis = await startRedis();
  try {
    const env = { REDIS_URL: redis.url, LOG_LEVEL: 'error' };
    const world = await IsolationWorld.start({ gateways: GATEWAYS, env });
    try {
      return [await interleavings(world, requests)];
    } finally {
      await world.close();
    }
  } finally {
    await redis.close();
  }
}

async function interleavings(world: IsolationWorld, requests: number): Promise<Row> {
  const { tally } = world;
  for (let seed = 1; tally.requests < requests && tally.leaks.length === 0; seed += 1) {
    await world.play(fc.sample(stepOf(READS_PER_CHANGE), { numRuns: STEPS_A_RUN, seed }));
  }
  const served = tally.served / tally.requests;
  const fromCache = tally.fromCache / tally.served;
  const refused = tally.refused / tally.requests;
  const failed = tally.failed / tally.requests;
  return {
    name: 'isolation',
    bar: `${count(requests)} requests of three tenants' keys and lesser scopes to ${GATEWAYS} gateways over warm caches, with purges, moves, time and store failures between: nothing crosses`,
    measured: `${count(tally.requests)} requests, ${percent(served)} served (${percent(fromCache)} of them from a cache), ${percent(refused)} refused, ${percent(failed)} failed with the store, ${count(tally.changes)} changes around them: ${tally.leaks[0] ?? 'nothing crossed'}`,
    // Neither was a matter of course.
    ok: tally.leaks.length === 0 && served > 0.25 && fromCache > 0.5 && refused > 0.25,
  };
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
