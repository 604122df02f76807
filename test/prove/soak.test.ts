/** A quarter of an hour of everything at once. Its length can be set: SOAK_MINUTES=5. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { SeededRandom } from '../support/random.ts';
import { withClient } from '../support/redis/client.ts';
import { percentile } from '../support/percentile.ts';
import { count, ms, percent, prove } from './bar.ts';
import { type Failure, FAULTS, FaultLog } from './soak/faults.ts';
import { Traffic } from './soak/traffic.ts';
import { SoakWorld } from './soak/world.ts';

const MINUTES = Number(process.env['SOAK_MINUTES'] ?? '15');
const PER_SECOND = 60;
const SEED = 6;
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
/** The least of the time in which nothing may fail. */
const LEAST_CALM_SHARE = 0.3;
const MB = 1_000_000;

interface Reading {
  readonly atMs: number;
  readonly value: number;
}

/** The smallest of each window of that length: what is between two collections of garbage is no growth. */
function floors(readings: readonly Reading[], windowMs: number): readonly Reading[] {
  const windows = Map.groupBy(readings, ({ atMs }) => Math.floor(atMs / windowMs));
  return [...windows.values()].flatMap((window) => window.toSorted((a, b) => a.value - b.value).slice(0, 1));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The slope of the least-squares line, per hour. */
function slopePerHour(readings: readonly Reading[]): number {
  const [meanMs, meanValue] = [mean(readings.map(({ atMs }) => atMs)), mean(readings.map(({ value }) => value))];
  const spread = readings.reduce((sum, { atMs }) => sum + (atMs - meanMs) ** 2, 0);
  const together = readings.reduce((sum, { atMs, value }) => sum + (atMs - meanMs) * (value - meanValue), 0);
  return spread === 0 ? 0 : (together / spread) * 3_600_000;
}

test('soak', { timeout: (MINUTES + 5) * 60_000 }, async (context) => {
  const world = await forTest(SoakWorld.start());
  const { secrets, redis } = world.parts;
  const failures: Failure[] = [];
  const random = new SeededRandom(SEED);
  const traffic = new Traffic({
    urls: world.urls,
    records: world.records,
    random: new SeededRandom(SEED + 1),
    secrets,
    onFailure: (failure) => void failures.push(failure),
  });
  for (let i = 0; i < CONSUMERS; i += 1) traffic.consumers.push(await world.issue());
  traffic.consumers.push(await world.issue({ perMinute: LIMITED_PER_MINUTE }));
  const resident: Reading[] = [];
  const lags: number[] = [];
  const looking = new AbortController();
  const look = async (): Promise<void> => {
    while (!looking.signal.aborted) {
      resident.push({ atMs: Date.now(), value: world.residentBytes() });
      // A worker that is killed takes its connections of the admin listener along.
      const lag = await world.look().catch(() => null);
      if (lag !== null) lags.push(lag);
      await sleep(LOOK_EVERY_MS);
    }
  };
  const looked = look();
  const log = new FaultLog();
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
  looking.abort();
  await looked;
  await withClient(redis.url, (client) => secrets.searchRedis(client));
  const unexplained = failures.filter((failure) => !log.isExplained(failure));
  const calm = log.calmShare(beganMs, endedMs);
  const statuses = [...traffic.statuses].toSorted(([a], [b]) => a - b).map(([one, times]) => `${one}: ${count(times)}`);
  const shown = unexplained
    .slice(0, 3)
    .map(({ what, gateway, toMs }) => `${what} (gateway ${gateway}, ${log.before(toMs)})`);
  const lows = floors(
    resident.filter(({ atMs }) => atMs >= beganMs + WARM_UP_SHARE * (endedMs - beganMs)),
    FLOOR_WINDOW_MS,
  );
  const bytesPerHour = slopePerHour(lows);
  const lag = percentile(lags, 0.5);
  prove(
    context,
    {
      name: 'soak, requests',
      bar: `${MINUTES} minutes of mixed load on a gateway and one with WORKERS=2, faults at random: no failed request that none of them explains, at least ${percent(LEAST_CALM_SHARE)} of the time with nothing to explain any`,
      measured: `${count(traffic.requests)} requests (${statuses.join(', ')}), ${failures.length} failed, ${unexplained.length} unexplained${shown.length === 0 ? '' : `: ${shown.join('; ')}`}; longest ${ms(traffic.longestMs)}; calm ${percent(calm)}; ${log.counts()}`,
      ok: unexplained.length === 0 && calm >= LEAST_CALM_SHARE,
    },
    {
      name: 'soak, secrets',
      bar: 'API keys, admin and store tokens and query strings in no log, metric, error or anywhere in Redis; contents of records in no log, metric or error',
      measured: `${count(secrets.searched)} texts searched: ${secrets.found.length === 0 ? 'none found' : secrets.found.join('; ')}`,
      ok: secrets.found.length === 0 && secrets.searched > 100,
    },
    {
      name: 'soak, memory and event loop',
      bar: `after the first third: resident memory grows by at most ${MAX_GROWTH_PER_HOUR_MB} MB an hour (line through its floors), the event loop's p99 lag is ${ms(1000 * MAX_LAG_SECONDS)} at most (median of all looks)`,
      measured: `${(bytesPerHour / MB).toFixed(1)} MB an hour at ${(mean(lows.map(({ value }) => value)) / MB).toFixed(0)} MB; lag ${ms(1000 * lag)}, at most ${ms(1000 * percentile(lags, 1))}`,
      ok: (MINUTES < LEAST_TREND_MINUTES || bytesPerHour <= MAX_GROWTH_PER_HOUR_MB * MB) && lag <= MAX_LAG_SECONDS,
    },
  );
});
