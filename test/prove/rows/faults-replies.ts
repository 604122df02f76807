/** Answers of Redis come after they were given up, again and again: none is ever taken for the answer to another question. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FaultsWorld, sleep, withFaultsWorld } from '../../support/faults-world.ts';
import type { Sample, Target } from '../../support/load-commands.ts';
import { startRedis } from '../../support/redis.ts';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { count, ms, percentile, type Row, type Scale, scaled } from '../row.ts';

const GATEWAYS = 2;
const IDS = 100;
const PER_SECOND = 300;
const COMMAND_TIMEOUT_MS = 500;
/** So late do answers come: around the time at which commands are given up. */
const LATE_MS = { latencyMs: COMMAND_TIMEOUT_MS + 20, jitterMs: 60 };
const [SLOW_MS, FAST_MS] = [600, 1000];
const GIVE_UP_MS = 120_000;
/** Nothing is kept in memory, so that every answer comes by way of Redis, or from the store. */
const CONFIG = 'cache: { memory: 0MB }\n';

export async function run(scale: Scale): Promise<readonly Row[]> {
  const timeouts = scaled(scale, 10_000);
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-config-'));
  const redis = await startRedis();
  const proxy = await TcpProxy.start(redis.url);
  try {
    const file = join(folder, 'config.yaml');
    await writeFile(file, CONFIG);
    const env = { CONFIG_FILE: file, REDIS_URL: proxy.url };
    return await withFaultsWorld({ gateways: GATEWAYS, env }, async (world) => [
      await lateAnswers(world, proxy, timeouts),
    ]);
  } finally {
    await proxy.close();
    await redis.close();
    await rm(folder, { recursive: true });
  }
}

async function lateAnswers(world: FaultsWorld, proxy: TcpProxy, timeouts: number): Promise<Row> {
  const key = await world.first.issueKey();
  const targets: readonly Target[] = Array.from({ length: IDS }, (_, index) =>
    world.gateways.map(({ publicUrl }) => ({ url: `${publicUrl}/v2/calls/call_${index}`, key, tag: 'read' })),
  ).flat();
  await world.load.run(targets, { perSecond: PER_SECOND, forMs: 1500 });
  await world.load.begin(targets, PER_SECOND);
  const untilMs = performance.now() + GIVE_UP_MS;
  let forced = 0;
  while (forced < timeouts && performance.now() < untilMs) {
    proxy.set('downstream', LATE_MS);
    await sleep(SLOW_MS);
    proxy.heal();
    await sleep(FAST_MS);
    forced = await timeoutsOf(world);
  }
  const samples = await world.load.end();
  const served = samples.filter(({ status }) => status === 200);
  const foreign = served.filter((sample) => !isItsOwn(sample));
  const fromRedis = served.filter(({ cacheStatus }) => cacheStatus?.startsWith('evalgate; hit') === true);
  const others = samples.filter(({ status }) => status !== 200);
  return {
    name: 'late answers of Redis',
    bar: `${count(timeouts)} commands timed out under load, with their answers coming after: none is taken for another's`,
    measured: `${count(forced)} timed out; ${count(served.length)} of ${count(samples.length)} reads served, ${count(fromRedis.length)} of them by way of Redis, ${foreign.length} with another's record${foreign[0] === undefined ? '' : ` (${foreign[0].url}: ${foreign[0].id})`}${others[0] === undefined ? '' : `; ${count(others.length)} answered ${others[0].status}`}; p99 ${ms(
      percentile(
        samples.map(({ tookMs }) => tookMs),
        0.99,
      ),
    )}`,
    ok:
      forced >= timeouts &&
      foreign.length === 0 &&
      // Where Redis is too late for a key as well, that key can't be let in.
      others.every(({ status }) => status === 500) &&
      fromRedis.length > 0,
  };
}

async function timeoutsOf({ gateways }: FaultsWorld): Promise<number> {
  const found = await Promise.all(
    gateways.map((gateway) => gateway.metric('evalgate_redis_command_failures_total', 'timeout')),
  );
  return found.reduce((sum, one) => sum + one, 0);
}

function isItsOwn({ url, id }: Sample): boolean {
  return url.endsWith(`/${id}`);
}
