/** A quarter of an hour of everything at once. Its length can be set: SOAK_MINUTES=5. `npm run soak` is the ordinary day. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { SeededRandom } from '../support/random.ts';
import { withClient } from '../support/redis/client.ts';
import { percentile } from '../support/percentile.ts';
import { ms, prove } from './bar.ts';
import { type Failure, FAULTS, FaultLog } from './soak/faults.ts';
import { recordsOf } from './soak/records.ts';
import { Traffic } from './soak/traffic.ts';
import { floors, mean, slopePerHour } from './soak/trend.ts';
import { requestsBar, secretsBar } from './soak/verdict.ts';
import { Watch } from './soak/watch.ts';
import { SoakWorld } from './soak/world.ts';

const MINUTES = Number(process.env['SOAK_MINUTES'] ?? '15');
const PER_SECOND = 60;
const SEED = 6;
const RECORDS = recordsOf({ workspaces: 3, perWorkspace: 60 });
/** Small, so that the memory tier is full before the measuring begins; short, so that the store is read again and again. */
const CONFIG = 'cache: {memory: 4MB, classes: {list: {fresh: 2s}, evaluation: {fresh: 3s}, transcript: {fresh: 4s}}}\n';
const CHANGED_CONFIG = CONFIG.replace('list: {fresh: 2s}', 'list: {fresh: 3s}');
const CONSUMERS = 12;
const LIMITED_PER_MINUTE = 30;
/** How long a fault lasts, and how long nothing is done after it. */
const HOLD_MS = [2000, 8000] as const;
const CALM_MS = [6000, 14_000] as const;
const LOOK_EVERY_MS = 2000;
/** Trends are judged from then on. */
const WARM_UP_SHARE = 1 / 3;
const FLOOR_WINDOW_MS = 15_000;
/** The noise in the floors of resident memory over a quarter of an hour. */
const MAX_GROWTH_PER_HOUR_MB = 40;
/** Memory that is still being filled shows no trend. */
const LEAST_TREND_MINUTES = 10;
const MAX_LAG_SECONDS = 0.1;
const MB = 1_000_000;

test('soak', { timeout: (MINUTES + 5) * 60_000 }, async (context) => {
  const world = await forTest(
    SoakWorld.start({ records: RECORDS, configs: [CONFIG, CHANGED_CONFIG], logLevel: 'debug', redis: 'proxied' }),
  );
  const { secrets, redis } = world.parts;
  const failures: Failure[] = [];
  const random = new SeededRandom(SEED);
  const ofTraffic = new SeededRandom(SEED + 1);
  const traffic = new Traffic(world, {
    random: ofTraffic,
    pickRecord: () => ofTraffic.oneOf(RECORDS),
    onFailure: (failure) => void failures.push(failure),
  });
  for (let i = 0; i < CONSUMERS; i += 1) traffic.consumers.push(await world.issue());
  traffic.consumers.push(await world.issue({ perMinute: LIMITED_PER_MINUTE }));
  const log = new FaultLog();
  const watch = new Watch(world, LOOK_EVERY_MS);
  const beganMs = Date.now();
  traffic.begin(PER_SECOND);
  // All of them come once before any comes again, in an order of its own each time.
  for (let left = [...FAULTS]; Date.now() - beganMs < MINUTES * 60_000; left = left.length === 0 ? [...FAULTS] : left) {
    await sleep(random.integer(...CALM_MS));
    const [fault] = left.splice(random.integer(0, left.length - 1), 1);
    if (fault !== undefined) await log.run(fault, world, traffic, random.integer(...HOLD_MS));
  }
  await sleep(CALM_MS[1]);
  await traffic.end();
  const endedMs = Date.now();
  await watch.end();
  await withClient(redis.url, (client) => secrets.searchRedis(client));
  const what = `${MINUTES} minutes of mixed load on a gateway and one with WORKERS=2, faults at random`;
  const warmMs = beganMs + WARM_UP_SHARE * (endedMs - beganMs);
  const lows = floors(
    watch.readings(({ residentBytes }) => residentBytes).filter(({ atMs }) => atMs >= warmMs),
    FLOOR_WINDOW_MS,
  );
  const bytesPerHour = slopePerHour(lows);
  const lags = watch.looks.map(({ lagSeconds }) => lagSeconds);
  const lag = percentile(lags, 0.5);
  prove(context, requestsBar({ what, traffic, failures, log, beganMs, endedMs }), secretsBar(secrets), {
    name: 'soak, memory and event loop',
    bar: `after the first third: resident memory grows by at most ${MAX_GROWTH_PER_HOUR_MB} MB an hour (line through its floors), the event loop's p99 lag is ${ms(1000 * MAX_LAG_SECONDS)} at most (median of all looks)`,
    measured: `${(bytesPerHour / MB).toFixed(1)} MB an hour at ${(mean(lows.map(({ value }) => value)) / MB).toFixed(0)} MB; lag ${ms(1000 * lag)}, at most ${ms(1000 * percentile(lags, 1))}`,
    ok: (MINUTES < LEAST_TREND_MINUTES || bytesPerHour <= MAX_GROWTH_PER_HOUR_MB * MB) && lag <= MAX_LAG_SECONDS,
  });
});
