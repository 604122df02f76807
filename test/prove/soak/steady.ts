/** The soak of `npm run soak`: steady load over many records through an ordinary day, and whether anything grows. */
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../../support/percentile.ts';
import { SeededRandom } from '../../support/random.ts';
import { withClient } from '../../support/redis/client.ts';
import { type Bar, count, ms, percent } from '../bar.ts';
import { type Failure, type Fault, FaultLog } from './faults.ts';
import { recordsOf, type SoakRecord } from './records.ts';
import { type Rest, restOf } from './rest.ts';
import { follow, routineOf } from './routine.ts';
import { Traffic } from './traffic.ts';
import { floors, mean, type Reading, riseOf } from './trend.ts';
import { requestsBar, secretsBar } from './verdict.ts';
import { type Look, Watch } from './watch.ts';
import { SoakWorld } from './world.ts';

const MINUTE_MS = 60_000;
const MB = 1_000_000;
const SEED = 6;
const CONSUMERS = 12;
const LIMITED_PER_MINUTE = 30;
/** A prime number of workspaces, so that the purges of each are hard and soft by turns. */
const RECORDS = recordsOf({ workspaces: 23, perWorkspace: 870 });
/** Four fifths of the reads go to so many of them, which are spread over all workspaces. */
const OFTEN_READ = 1000;
const OFTEN_READ_SHARE = 0.8;
const STRIDE = 7919;
/** Copies live for five minutes at most, and memory is small: both tiers are full long before the second half. */
const CLASSES = {
  list: '{fresh: 20s, stale: 40s, error: 2m}',
  evaluation: '{fresh: 1m, stale: 1m, error: 4m}',
  transcript: '{fresh: 2m, stale: 1m, error: 3m}',
  scorecard: '{fresh: 2m, stale: 1m, error: 3m}',
  rubric: '{fresh: 2m, stale: 1m, error: 3m}',
  dealInsights: '{fresh: 2m, stale: 1m, error: 3m}',
};
const CONFIG = [
  // Above the balancer's idle time, and short enough for a look at what is left at rest.
  'server: {keepAlive: 15s}',
  // The store shares its process with the load, so its latencies say nothing of it.
  'upstream: {adaptive: false}',
  'log: {requests: errors}',
  'changes: {announced: true, keep: 10m}',
  `cache: {memory: 16MB, classes: {${Object.entries(CLASSES)
    .map(([name, times]) => `${name}: ${times}`)
    .join(', ')}}}`,
].join('\n');
const HOLD_MS = 500;
const WARM_UP_MS = 20_000;
const LOOK_EVERY_MS = 2000;
/** Several full collections of garbage. */
const FLOOR_WINDOW_MS = 5 * MINUTE_MS;
const MAX_RISE = 0.03;
const MAX_LAG_SECONDS = 0.1;
/** Memory that is still being filled shows no trend. */
const LEAST_TREND_MINUTES = 20;
/** How much later the slowest hundredth of the hits may come in the last quarter than in the second. */
const MAX_SLOWER_SHARE = 0.25;
const MAX_SLOWER_MS = 2;
const MAX_SHOWN = 150;

/** The figures of one minute. */
interface Minute {
  readonly number: number;
  readonly requests: number;
  readonly hitP99Ms: number;
  /** Since the beginning. */
  readonly unexplained: readonly Failure[];
  readonly look: Look | null;
}

export interface SteadyOptions {
  readonly minutes: number;
  /** Reads per second. */
  readonly rate: number;
  /** Takes a line of progress. */
  readonly say: (line: string) => void;
}

/** Resolves with the bars, and with a line per minute. Rejects if the fleet cannot be started or a rollout goes wrong. */
export async function steady({ minutes, rate, say }: SteadyOptions) {
  await using stack = new AsyncDisposableStack();
  const world = await SoakWorld.start({ records: RECORDS, configs: [CONFIG], logLevel: 'info', redis: 'sentinels' });
  stack.defer(() => world.close());
  const failures: Failure[] = [];
  let hits: number[] = [];
  const random = new SeededRandom(SEED);
  const traffic = new Traffic(world, {
    random,
    pickRecord: () => pickRecord(random),
    onFailure: (failure) => void failures.push(failure),
    onHit: (tookMs) => void hits.push(tookMs),
  });
  for (let i = 0; i < CONSUMERS; i += 1) traffic.consumers.push(await world.issue());
  traffic.consumers.push(await world.issue({ perMinute: LIMITED_PER_MINUTE }));
  say(`${count(RECORDS.length)} records, ${rate} reads/s, ${minutes} minutes`);
  traffic.begin(rate / 3);
  await sleep(WARM_UP_MS);
  await traffic.end();
  const before = await restOf(world);
  say(`at rest before: ${describeRest(before)}`);

  const log = new FaultLog();
  const watch = new Watch(world, LOOK_EVERY_MS);
  const beganMs = Date.now();
  const passed: Minute[] = [];
  traffic.begin(rate);
  const everyMinute = setInterval(() => {
    const minute = {
      number: passed.length + 1,
      requests: traffic.requests,
      hitP99Ms: percentile(hits, 0.99),
      unexplained: failures.filter((failure) => !log.isExplained(failure)),
      look: watch.looks.at(-1) ?? null,
    };
    hits = [];
    passed.push(minute);
    world.parts.store.forget();
    say(`${describeMinute(minute)}; ${log.counts()}`);
  }, MINUTE_MS);
  const logsAtHalf = sleep((minutes * MINUTE_MS) / 2).then(() => quotaLogBytes(world));
  const edits = new SeededRandom(SEED + 1);
  await follow(
    routineOf(minutes * MINUTE_MS, () => pickRecord(edits)),
    beganMs + minutes * MINUTE_MS,
    // An operator's action may fail; the day goes on.
    (fault) =>
      log.run(fault, world, traffic, HOLD_MS).catch((error: unknown) => void failures.push(failureOf(fault, error))),
  );
  clearInterval(everyMinute);
  await traffic.end();
  const endedMs = Date.now();
  await watch.end();
  const logs = { atHalf: await logsAtHalf, atEnd: await quotaLogBytes(world) };
  const after = await restOf(world);
  say(`at rest after: ${describeRest(after)}`);
  await withClient(world.parts.redis.url, (client) => world.parts.secrets.searchRedis(client));
  const what = `${minutes} minutes of ${rate} reads/s over ${count(RECORDS.length)} records`;
  const bars = [
    requestsBar({ what, traffic, failures, log, beganMs, endedMs }),
    secretsBar(world.parts.secrets),
    ...growthBars(watch, { minutes, halfMs: (beganMs + endedMs) / 2, logs }),
    restBar(before, after),
    hitsBar(passed),
  ];
  return { bars, minutes: passed.map(describeMinute) };
}

function failureOf({ name }: Fault, error: unknown): Failure {
  const atMs = Date.now();
  return { gateway: 0, fromMs: atMs, toMs: atMs, status: 0, what: `${name}: ${String(error)}` };
}

function pickRecord(random: SeededRandom): SoakRecord {
  if (random.next() > OFTEN_READ_SHARE) return random.oneOf(RECORDS);
  // Some far more often than others.
  const place = Math.floor(OFTEN_READ * random.next() ** 2);
  return RECORDS[(place * STRIDE) % RECORDS.length] ?? random.oneOf(RECORDS);
}

/** The memory of the quotas' logs, which hold each request that was admitted in the last hour (R1: limits are exact). */
function quotaLogBytes(world: SoakWorld): Promise<number> {
  return withClient(world.parts.redis.url, async (client) => {
    let bytes = 0;
    for (const key of await client.keys('evalgate:{quota-*}:*:log')) {
      bytes += (await client.memory('USAGE', key, 'SAMPLES', 0)) ?? 0;
    }
    return bytes;
  });
}

function growthBars(
  watch: Watch,
  {
    minutes,
    halfMs,
    logs,
  }: {
    readonly minutes: number;
    readonly halfMs: number;
    readonly logs: { readonly atHalf: number; readonly atEnd: number };
  },
): readonly Bar[] {
  const bar = (what: string, figure: (look: Look) => number | null, logsRose = 0): Bar => {
    const readings = watch.readings(figure).filter(({ atMs }) => atMs >= halfMs);
    const lows = floors(readings, FLOOR_WINDOW_MS);
    const rise = riseOf(lows) - logsRose / mean(lows.map(({ value }) => value));
    const isJudged = minutes >= LEAST_TREND_MINUTES;
    return {
      name: `soak, ${what}`,
      bar: `rises by at most ${percent(MAX_RISE)} over the second half (line through its floors of five minutes each)`,
      measured: `${(100 * rise).toFixed(1)} % at ${megabytesOf(lows)} MB${isJudged ? '' : ', not judged: too short'}`,
      ok: !isJudged || rise <= MAX_RISE,
    };
  };
  const lags = watch.looks.map(({ lagSeconds }) => 1000 * lagSeconds);
  const lagMs = percentile(lags, 0.5);
  return [
    bar('resident memory of the gateway', ({ residentBytes }) => residentBytes),
    bar('heap of the gateway', ({ heapBytes }) => heapBytes),
    bar(
      `memory of Redis without the quotas' logs (${megabytes(logs.atHalf)} MB at half-time, ${megabytes(logs.atEnd)} MB at the end: in the first hour they grow)`,
      ({ redisBytes }) => redisBytes,
      logs.atEnd - logs.atHalf,
    ),
    {
      name: 'soak, event loop',
      bar: `p99 lag ${ms(1000 * MAX_LAG_SECONDS)} at most (median of all looks)`,
      measured: `${ms(lagMs)}, at most ${ms(percentile(lags, 1))}`,
      ok: lagMs <= 1000 * MAX_LAG_SECONDS,
    },
  ];
}

function restBar(before: Rest, after: Rest): Bar {
  return {
    name: 'soak, descriptors and timers',
    bar: 'at rest after the load, no more than at rest after a short load at the start',
    measured: `before: ${describeRest(before)}; after: ${describeRest(after)}`,
    ok: after.descriptors <= before.descriptors && after.timers <= before.timers,
  };
}

function hitsBar(passed: readonly Minute[]): Bar {
  const quarter = Math.max(1, Math.floor(passed.length / 4));
  const p99Of = (minutes: readonly Minute[]): number =>
    percentile(
      minutes.map(({ hitP99Ms }) => hitP99Ms),
      0.5,
    );
  const [early, late] = [p99Of(passed.slice(quarter, 2 * quarter)), p99Of(passed.slice(-quarter))];
  return {
    name: 'soak, p99 of hits',
    bar: `in the last quarter at most ${percent(MAX_SLOWER_SHARE)} and ${ms(MAX_SLOWER_MS)} above the second quarter (medians of the minutes)`,
    measured: `${early.toFixed(1)} ms, then ${late.toFixed(1)} ms`,
    ok: late <= early * (1 + MAX_SLOWER_SHARE) + MAX_SLOWER_MS,
  };
}

function describeMinute({ number, requests, hitP99Ms, unexplained, look }: Minute): string {
  const parts = [`minute ${number}: ${count(requests)} requests`, `hits p99 ${hitP99Ms.toFixed(1)} ms`];
  if (look !== null) {
    const { residentBytes, heapBytes, workersBytes, redisBytes, descriptors } = look;
    parts.push(
      `resident ${megabytes(residentBytes)} MB`,
      `heap ${megabytes(heapBytes)} MB`,
      `workers ${megabytes(workersBytes)} MB`,
      `Redis ${redisBytes === null ? '-' : megabytes(redisBytes)} MB`,
      `${descriptors} descriptors`,
    );
  }
  const last = unexplained.length === 0 ? '' : `, such as ${unexplained.at(-1)?.what.slice(0, MAX_SHOWN)}`;
  return [...parts, `${unexplained.length} unexplained${last}`].join(', ');
}

function describeRest({ descriptors, timers, heapBytes, residentBytes }: Rest): string {
  return `${descriptors} descriptors, ${timers} timers, heap ${megabytes(heapBytes)} MB, resident ${megabytes(residentBytes)} MB`;
}

function megabytesOf(readings: readonly Reading[]): string {
  return megabytes(mean(readings.map(({ value }) => value)));
}

function megabytes(bytes: number): string {
  return (bytes / MB).toFixed(1);
}
