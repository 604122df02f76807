/** What becomes of a flight whose leader dies or is frozen. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CacheWorld, withCacheWorld } from '../../support/cache-workers.ts';
import { ms, type Row, scaled, type Scale, slackMs } from '../row.ts';

const PROCESSES = 4;
const LEASE_MS = 2000;
const HOUR_MS = 3_600_000;
const TIMES = { freshMs: HOUR_MS, staleMs: 0, errorMs: 0 };

export async function run(scale: Scale): Promise<readonly Row[]> {
  return await withCacheWorld({ processes: PROCESSES, times: TIMES }, async (world) => [
    await killed(world, scale),
    await paused(world, scale),
  ]);
}

async function killed(world: CacheWorld, scale: Scale): Promise<Row> {
  const [rounds, storeMs] = [scaled(scale, 20), 500];
  const allowedMs = LEASE_MS + storeMs + 250 + slackMs(scale);
  let [mostCalls, longestMs] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const id = `killed_${round}`;
    const answeredMs = await killLeader(world, id, storeMs);
    mostCalls = Math.max(mostCalls, world.calls(id));
    longestMs = Math.max(longestMs, answeredMs);
  }
  return {
    name: 'leader killed',
    bar: `SIGKILL mid-fetch, ${rounds} times: at most 2 calls, all waiters answered within ${ms(allowedMs)} of the kill`,
    measured: `at most ${mostCalls} calls, the last answered after ${ms(longestMs)}`,
    ok: mostCalls <= 2 && longestMs <= allowedMs,
  };
}

/** How long after the kill the last waiter was answered. */
async function killLeader(world: CacheWorld, id: string, storeMs: number): Promise<number> {
  const [leader, ...others] = world.workers.splice(0);
  if (leader === undefined) throw new RangeError('There is no worker.');
  world.workers.push(...others);
  world.answerAfter(storeMs);
  leader.read({ id, readers: 1 }).catch(() => undefined);
  await world.store.waitForCalls(world.store.calls() + 1);
  const waiting = others.map((worker) => worker.read({ id, readers: 25 }));
  await sleep(storeMs / 5);
  const killedAtMs = Date.now();
  await leader.kill();
  const reads = (await Promise.all(waiting)).flat();
  await world.addWorker();
  if (reads.some(({ title }) => title !== world.title)) return Number.POSITIVE_INFINITY;
  return Math.max(...reads.map(({ endedAtMs }) => endedAtMs)) - killedAtMs;
}

async function paused(world: CacheWorld, scale: Scale): Promise<Row> {
  const rounds = scaled(scale, 10);
  let overwritten = 0;
  for (let round = 0; round < rounds; round += 1) {
    if (await isOverwrittenByPaused(world, round)) overwritten += 1;
  }
  return {
    name: 'leader paused',
    bar: `SIGSTOP past its lease, ${rounds} times: newer data is never overwritten`,
    measured: `overwritten ${overwritten} times`,
    ok: overwritten === 0,
  };
}

async function isOverwrittenByPaused(world: CacheWorld, round: number): Promise<boolean> {
  const id = `paused_${round}`;
  const [leader, second, third] = [world.worker(round), world.worker(round + 1), world.worker(round + 2)];
  world.answerAfter(0);
  world.title = `old ${round}`;
  const held = world.hold();
  const late = leader.read({ id, readers: 1 });
  await world.store.waitForCalls(world.store.calls() + 1);
  leader.pause();
  // What the second waits for ends when the lease lapses; its own call is answered at once.
  held.letThrough();
  world.title = `new ${round}`;
  const [taken] = await second.read({ id, readers: 1 });
  held.release();
  leader.resume();
  const [stale] = await late;
  const seen = await Promise.all([leader, second, third].map((worker) => worker.read({ id, readers: 1 })));
  if (taken?.title !== world.title || stale?.title !== `old ${round}` || world.calls(id) !== 2) {
    throw new Error(`The leader was not overtaken: ${taken?.title}, ${stale?.title}, ${world.calls(id)} calls.`);
  }
  return seen.flat().some(({ title }) => title !== world.title);
}
