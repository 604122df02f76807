/** How soon a purge is seen by every process of the fleet, also by those that don't hear of it, and also mid-fetch. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CacheWorld, withCacheWorld } from '../../support/cache-workers.ts';
import { countSubscribers, cutSubscribers } from '../../support/redis/client.ts';
import { ms, percentile, type Row, scaled, type Scale, slackMs } from '../row.ts';

const PROCESSES = 4;
/** One for what is told of the state and one for what is told of entries, in each process. */
const CONNECTIONS = 2 * PROCESSES;
const HOUR_MS = 3_600_000;
const TIMES = { freshMs: HOUR_MS, staleMs: HOUR_MS, errorMs: HOUR_MS };
const GIVE_UP_MS = 10_000;
const ID = 'purged';

export async function run(scale: Scale): Promise<readonly Row[]> {
  return await withCacheWorld({ processes: PROCESSES, times: TIMES }, async (world) => {
    return [await spread(world, scale), await cut(world, scale), await duringFetch(world, scale)];
  });
}

async function spread(world: CacheWorld, scale: Scale): Promise<Row> {
  const rounds = scaled(scale, 1000);
  const allowedMs = 100 + slackMs(scale);
  const seenMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) seenMs.push(...(await purgeAndSee(world, `spread ${round}`, round)));
  const p99 = percentile(seenMs, 0.99);
  return {
    name: 'purge',
    bar: `${rounds.toLocaleString('en')} times: the new record read in every one of ${PROCESSES} processes, p99 at most ${ms(allowedMs)}`,
    measured: `p50 ${ms(percentile(seenMs, 0.5))}, p99 ${ms(p99)}, longest ${ms(Math.max(...seenMs))}`,
    ok: p99 <= allowedMs,
  };
}

async function cut(world: CacheWorld, scale: Scale): Promise<Row> {
  const rounds = scaled(scale, 50);
  const allowedMs = 1000 + slackMs(scale);
  let [longestMs, cuts] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    await allSubscribed(world);
    cuts += await cutSubscribers(world.redis);
    longestMs = Math.max(longestMs, ...(await purgeAndSee(world, `cut ${round}`, round)));
  }
  return {
    name: "purge, subscribers' connections cut",
    bar: `${rounds} times: nobody reads the old record beyond ${ms(allowedMs)}`,
    measured: `${cuts} connections cut; the old record was last read after ${ms(longestMs)} at most`,
    ok: cuts === rounds * CONNECTIONS && longestMs <= allowedMs,
  };
}

/** Until every connection that was cut is back. */
async function allSubscribed({ redis }: CacheWorld): Promise<void> {
  const untilMs = performance.now() + GIVE_UP_MS;
  for (;;) {
    const count = await countSubscribers(redis);
    if (count === CONNECTIONS) return;
    if (performance.now() > untilMs) throw new Error(`${count} connections for messages instead of ${CONNECTIONS}`);
    await sleep(10);
  }
}

/** How long after the purge began each process read the new record. */
async function purgeAndSee(world: CacheWorld, title: string, round: number): Promise<readonly number[]> {
  world.title = title;
  const watching = world.workers.map((worker) => worker.watch({ id: ID, title, timeoutMs: GIVE_UP_MS }));
  const purgedAtMs = Date.now();
  await world.worker(round).purge(ID);
  return (await Promise.all(watching)).map((seenAtMs) => seenAtMs - purgedAtMs);
}

async function duringFetch(world: CacheWorld, scale: Scale): Promise<Row> {
  const rounds = scaled(scale, 100);
  let [survived, longestMs] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const id = `late_${round}`;
    world.title = `old ${round}`;
    const held = world.hold();
    const late = world.worker(round).read({ id, readers: 5 });
    await world.store.waitForCalls(world.store.calls() + 1);
    world.title = `new ${round}`;
    await world.worker(round + 1).purge(id);
    const purgedAtMs = Date.now();
    held.release();
    await late;
    // The word of the purge may be under way still; once it has arrived, the late fill must not be there any more.
    const awaited = { id, title: world.title, timeoutMs: GIVE_UP_MS };
    const seenAtMs = await Promise.all(world.workers.map((worker) => worker.watch(awaited)));
    longestMs = Math.max(longestMs, ...seenAtMs.map((atMs) => atMs - purgedAtMs));
    const reads = await Promise.all(world.workers.map((worker) => worker.read({ id, readers: 2 })));
    if (reads.flat().some(({ title }) => title !== world.title)) survived += 1;
  }
  return {
    name: 'purge during a fetch',
    bar: `${rounds} times: the late fill never survives`,
    measured: `survived ${survived} times; the new record was read everywhere within ${ms(longestMs)}`,
    ok: survived === 0 && longestMs <= 1000 + slackMs(scale),
  };
}
