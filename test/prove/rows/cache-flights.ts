/** One flight a question in the whole fleet: herds on a cold cache, a slow and a failing store, a key that is always asked for. */
import { Agent, get } from 'node:http';
import { type CacheWorld, type Reads, withCacheWorld } from '../../support/cache-workers.ts';
import { ms, percentile, type Row, scaled, type Scale, slackMs } from '../row.ts';

const PROCESSES = 4;
const MINUTE_MS = 60_000;

export async function run(scale: Scale): Promise<readonly Row[]> {
  const long = { freshMs: 60 * MINUTE_MS, staleMs: 0, errorMs: 0 };
  const herds = await withCacheWorld({ processes: PROCESSES, times: long }, async (world) => [
    await coldHerd(world, scale),
    await slowStore(world, scale),
    await failingStore(world, scale),
  ]);
  return [...herds, await hotKey(scale)];
}

async function coldHerd(world: CacheWorld, scale: Scale): Promise<Row> {
  const [readers, storeMs] = [scaled(scale, 250), 500];
  // Neither pays for its first requests in the measurement.
  await overHttp(world, readers, '/bare?ms=1');
  await overHttp(world, readers, '/cached/warm');
  world.answerAfter(storeMs);
  const bare = percentile(await overHttp(world, readers, `/bare?ms=${storeMs}`), 0.99);
  const cached = percentile(await overHttp(world, readers, '/cached/herd'), 0.99);
  const calls = world.calls('herd');
  const allowedMs = 1.3 * bare + slackMs(scale);
  return {
    name: 'cold herd',
    bar: `${PROCESSES} processes × ${readers} readers, ${ms(storeMs)} store: 1 call; p99 at most 1.3 × that of a bare Koa server that waits as long${scale === 'short' ? ` (+ ${ms(slackMs(scale))})` : ''}`,
    measured: `${calls} call; p99 ${ms(cached)}, bare Koa ${ms(bare)}: ${(cached / bare).toFixed(2)} ×`,
    ok: calls === 1 && cached <= allowedMs,
  };
}

async function slowStore(world: CacheWorld, scale: Scale): Promise<Row> {
  // Longer than a lease in any case, so that it has to be renewed.
  const [readers, storeMs] = scale === 'whole' ? [300, 7000] : [16, 2500];
  world.answerAfter(storeMs);
  const reads = await readAll(world, 'slow', readers / PROCESSES);
  const p99 = percentile(
    reads.map(({ durationMs }) => durationMs),
    0.99,
  );
  const calls = world.calls('slow');
  const allowedMs = storeMs + 500 + slackMs(scale);
  return {
    name: 'slow store',
    bar: `${readers} readers, ${ms(storeMs)} store: 1 call, p99 at most ${ms(allowedMs)}`,
    measured: `${calls} call, p99 ${ms(p99)}`,
    ok: calls === 1 && p99 <= allowedMs && reads.every(({ title }) => title === world.title),
  };
}

async function failingStore(world: CacheWorld, scale: Scale): Promise<Row> {
  const readers = scale === 'whole' ? 100 : 20;
  const allowedMs = 200 + slackMs(scale);
  world.answerAfter(200, 500);
  const reads = await readAll(world, 'failing', readers / PROCESSES);
  const toldMs = Math.max(...reads.map(({ endedAtMs }) => endedAtMs)) - world.answeredAtMs;
  const calls = world.calls('failing');
  world.answerAfter(0);
  return {
    name: 'failing store',
    bar: `${readers} readers over ${PROCESSES} processes, 500 after 200 ms: 1 call; all told within ${ms(allowedMs)} of the failure`,
    measured: `${calls} call; the last told after ${ms(toldMs)}`,
    ok: calls === 1 && toldMs <= allowedMs && reads.every(({ outcome }) => outcome === 'failed: refused'),
  };
}

async function hotKey(scale: Scale): Promise<Row> {
  const [freshMs, durationMs] = scale === 'whole' ? [5000, MINUTE_MS] : [300, 3000];
  const times = { freshMs, staleMs: MINUTE_MS, errorMs: MINUTE_MS };
  return await withCacheWorld({ processes: PROCESSES, times }, async (world) => {
    world.answerAfter(100);
    await readAll(world, 'hot', 1);
    const load = { id: 'hot', readers: 16, durationMs, pauseMs: 10 };
    const results = await Promise.all(world.workers.map((worker) => worker.hammer(load)));
    const count = (isCounted: (outcome: string) => boolean): number =>
      results
        .flatMap(({ outcomes }) => Object.entries(outcomes))
        .filter(([outcome]) => isCounted(outcome))
        .reduce((sum, [, reads]) => sum + reads, 0);
    const [all, waited] = [count(() => true), count((name) => name !== 'hit' && name !== 'stale-while-revalidate')];
    const calls = world.calls('hot');
    const longestMs = Math.max(...results.map((result) => result.longestMs));
    return {
      name: 'hot key',
      bar: `fresh ${ms(freshMs)} for ${ms(durationMs)} under load: at most 15 calls, no reader waits for the store once warm`,
      measured: `${calls} calls, ${waited} of ${all.toLocaleString('en')} reads waited (longest read ${ms(longestMs)})`,
      ok: calls <= 15 && waited === 0 && all > 100,
    };
  });
}

/** All readers of all processes at once. */
async function readAll(world: CacheWorld, id: string, readers: number): Promise<Reads> {
  return (await Promise.all(world.workers.map((worker) => worker.read({ id, readers })))).flat();
}

/** So many requests to each process, all at once; how long each took. */
async function overHttp(world: CacheWorld, readers: number, path: string): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  try {
    return await Promise.all(
      world.workers.flatMap(({ url }) => Array.from({ length: readers }, () => timed(url + path, agent))),
    );
  } finally {
    agent.destroy();
  }
}

function timed(url: string, agent: Agent): Promise<number> {
  const startedMs = performance.now();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  get(url, { agent }, (response) => {
    const isOk = response.statusCode === 200;
    response.resume().on('end', () => {
      if (isOk) resolve(performance.now() - startedMs);
      else reject(new Error(`${url} answered ${response.statusCode}`));
    });
  }).on('error', reject);
  return promise;
}
