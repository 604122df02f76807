/** The predictions of the what-if curves compared with a cache that holds every key: for one process and for a fleet. */
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { forTest } from '../support/opened.ts';
import { CACHE_CLASSES, type CacheClass, type CacheTtl, overridesFor } from '../../src/cache/ttl-policy.ts';
import { newSubject, putSubject } from '../http/common/subject.ts';
import { Fleet } from '../support/fleet.ts';
import { startTestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededRandom } from '../support/random.ts';
import { percentile } from '../support/percentile.ts';
import { burstyTrace, type ReadTrace, zipfTrace } from '../support/read-traces.ts';
import { ChangingStore, readsOfStore, type TimesOf } from '../support/changing-store.ts';
import { createStoreServer } from '../support/store-server.ts';
import { Watched } from '../support/watched.ts';
import { count, ms, prove } from './bar.ts';

const BAR_POINTS = 1;
const BAR_BYTES = 2_500_000;
const BAR_CPU = 0.02;
const READS_PER_SECOND = 2000;

interface Setting {
  readonly name: string;
  readonly class: CacheClass;
  readonly trace: ReadTrace;
  /** In force while the model watches; none of those that it tries out by itself. */
  readonly freshMs: number;
}

/** Hours enough for a day's freshness to end. */
const SETTINGS: readonly Setting[] = [
  {
    name: 'Zipf 0.8',
    class: 'evaluation',
    trace: zipfTrace({ seed: 1, reads: 180_000, hours: 26, keys: 120_000, exponent: 0.8 }),
    freshMs: 300_000,
  },
  {
    name: 'Zipf 1.0',
    class: 'transcript',
    trace: zipfTrace({ seed: 2, reads: 200_000, hours: 30, keys: 250_000, exponent: 1 }),
    freshMs: 30_000,
  },
  {
    name: 'Zipf 1.15',
    class: 'scorecard',
    trace: zipfTrace({ seed: 3, reads: 160_000, hours: 25, keys: 1_000_000, exponent: 1.15 }),
    freshMs: 900_000,
  },
  {
    name: 'bursts and crowds',
    class: 'dealInsights',
    trace: burstyTrace({ seed: 4, reads: 180_000, hours: 26, keys: 120_000, exponent: 0.9 }),
    freshMs: 60_000,
  },
];

interface Read {
  readonly class: CacheClass;
  readonly key: string;
  /** From the beginning. */
  readonly atMs: number;
}

/** The share of reads that do not wait for the store, and the calls to the store per read. */
interface Ratios {
  readonly hitRatio: number;
  readonly storeCallsPerRead: number;
}
type Curve = readonly (Ratios & { readonly freshMs: number })[];

/** As long stale as fresh. */
function timesOf(freshMs: number): CacheTtl {
  return { freshMs, staleMs: freshMs, errorMs: freshMs };
}

/** Those of a cache that holds every key. Freshness is up to a tenth shorter by chance. */
function ratiosOf(
  reads: readonly Pick<Read, 'key' | 'atMs'>[],
  { freshMs, staleMs }: Pick<CacheTtl, 'freshMs' | 'staleMs'>,
): Ratios {
  const random = new SeededRandom(freshMs);
  const freshUntilMs = new Map<string, number>();
  let calls = 0;
  let waits = 0;
  for (const { key, atMs } of reads) {
    const untilMs = freshUntilMs.get(key) ?? Number.NEGATIVE_INFINITY;
    if (atMs < untilMs) continue;
    calls += 1;
    if (atMs >= untilMs + staleMs) waits += 1;
    freshUntilMs.set(key, atMs + freshMs * (1 - random.next() / 10));
  }
  return { hitRatio: 1 - waits / reads.length, storeCallsPerRead: calls / reads.length };
}

function readsOf({ class: cacheClass, trace }: Setting): readonly Read[] {
  return Array.from(trace.atMs, (atMs, index) => ({
    class: cacheClass,
    key: `ev_${trace.keys[index]}`,
    atMs,
  }));
}

/** The reads of all, in order of time. */
const TOGETHER = SETTINGS.flatMap(readsOf).toSorted((a, b) => a.atMs - b.atMs);

function watch(settings: readonly Setting[], reads: readonly Read[], after: (watched: Watched) => void = () => {}) {
  const watched = new Watched();
  for (const one of settings) watched.ttl.override(one.class, overridesFor(timesOf(one.freshMs), null));
  for (const { class: cacheClass, key, atMs } of reads) {
    watched.readAt(atMs, key, cacheClass);
    after(watched);
  }
  return watched;
}

/** In points of hit ratio, or in store calls per hundred reads. */
function largestError(curve: Curve, measured: ReadonlyMap<number, Ratios>): number {
  const errors = [...measured].flatMap(([freshMs, { hitRatio, storeCallsPerRead }]) => {
    const predicted = curve.find((point) => point.freshMs === freshMs);
    if (predicted === undefined) return [Number.NaN];
    return [predicted.hitRatio - hitRatio, predicted.storeCallsPerRead - storeCallsPerRead].map(
      (difference) => 100 * Math.abs(difference),
    );
  });
  return errors.length === 0 ? Number.NaN : Math.max(...errors);
}

test('accuracy', (context) => {
  const together = watch(SETTINGS, TOGETHER);
  const bars = SETTINGS.map((setting) => {
    const reads = readsOf(setting);
    const curve = watch([setting], reads).advice(setting.class).curve;
    const measured = new Map(
      curve.map(({ freshMs }) => [freshMs, ratiosOf(reads, { freshMs, staleMs: setting.freshMs })]),
    );
    const [alone, beside] = [
      largestError(curve, measured),
      largestError(together.advice(setting.class).curve, measured),
    ];
    const hits = [...measured.values()].map(({ hitRatio }) => Math.round(100 * hitRatio));
    return {
      name: `what-if, ${setting.name}`,
      bar: `hit ratio and store calls per read of ${measured.size} times from 500 ms to 24 h predicted from one trace with ${setting.freshMs / 1000} s in force: off by at most ${BAR_POINTS} point`,
      measured: `${count(reads.length)} reads of ${count(new Set(setting.trace.keys).size)} keys, hit ratios of ${Math.min(...hits)} to ${Math.max(...hits)} %: off by ${alone.toFixed(2)}; in one model with all traces by ${beside.toFixed(2)}`,
      ok: Math.max(alone, beside) <= BAR_POINTS && measured.size >= 13,
    };
  });
  prove(context, ...bars);
});

function heapBytes(): number {
  for (let time = 0; time < 3; time += 1) globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test('memory and CPU', (context) => {
  // All models are kept until the end: one that goes while the next is made would make that look small.
  const filled = Array.from({ length: 9 }, () => {
    const before = heapBytes();
    const watched = watch(SETTINGS, TOGETHER);
    for (const each of CACHE_CLASSES) {
      watched.read(each, each);
      watched.refreshed(each, true, 60_000);
    }
    // As many lists and evaluations on them as are followed.
    for (let page = 0; page < 1200; page += 1) {
      watched.readList(
        `page ${page}`,
        Array.from({ length: 10 }, (_, index) => `ev_${10 * page + index}`),
      );
      watched.read(`ev_${10 * page}`);
    }
    return { watched, bytes: heapBytes() - before };
  });
  // The first four also pay for code that is compiled meanwhile, and garbage of other tests may go while one is made.
  const bytes = percentile(
    filled.slice(4).map((one) => one.bytes),
    0.5,
  );
  let left = 2 * READS_PER_SECOND;
  const began = process.cpuUsage();
  watch(SETTINGS, TOGETHER, ({ whatIf }) => {
    left -= 1;
    if (left > 0) return;
    left = 2 * READS_PER_SECOND;
    JSON.stringify(whatIf.report());
  });
  const { user, system } = process.cpuUsage(began);
  const microsPerRead = (user + system) / TOGETHER.length;
  const share = (microsPerRead * READS_PER_SECOND) / 1e6;
  prove(
    context,
    {
      name: 'what-if, memory',
      bar: `at most ${count(BAR_BYTES)} bytes per process, all classes together`,
      measured: `${count(bytes)} bytes`,
      ok: globalThis.gc !== undefined && bytes > 0 && bytes <= BAR_BYTES,
    },
    {
      name: 'what-if, CPU',
      bar: `at ${count(READS_PER_SECOND)} reads/s, with a snapshot every 2 s: at most ${100 * BAR_CPU} % of a CPU`,
      measured: `${microsPerRead.toFixed(2)} µs per read: ${(100 * share).toFixed(2)} %`,
      ok: share <= BAR_CPU,
    },
  );
});

const adviceSchema = z.object({
  classes: z.array(
    z.object({
      class: z.string(),
      reads: z.number(),
      curve: z.array(z.object({ freshMs: z.number(), hitRatio: z.number(), storeCallsPerRead: z.number() })),
    }),
  ),
});

/** The same four traces, each in its class, short enough for a whole gateway. */
const DOOR_SETTINGS = [
  { class: 'evaluation', path: '', shape: { seed: 21, keys: 150, exponent: 0.8 }, trace: zipfTrace },
  { class: 'transcript', path: '/transcript', shape: { seed: 22, keys: 200, exponent: 1 }, trace: zipfTrace },
  { class: 'scorecard', path: '/scorecard', shape: { seed: 23, keys: 400, exponent: 1.15 }, trace: zipfTrace },
  { class: 'dealInsights', path: '/deal-insights', shape: { seed: 24, keys: 150, exponent: 0.9 }, trace: burstyTrace },
] as const;
const DOOR_READS = 1500;
const IN_FORCE_MS = 300_000;
const OTHER_MS = [15_000, 1_200_000, 10_800_000] as const;

test('a whole gateway', async (context) => {
  const store = await forTest(createStoreServer());
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const { workspaceId } = newSubject();
  for (let number = 0; number < 3000; number += 1)
    putSubject(store, { ...newSubject(workspaceId), id: `ev_${number}` });
  const reads = DOOR_SETTINGS.flatMap(({ class: cacheClass, path, shape, trace }) => {
    const { keys, atMs } = trace({ ...shape, reads: DOOR_READS, hours: 4 });
    const root = cacheClass === 'dealInsights' ? `/v1/workspaces/${workspaceId}/reports` : '/v2/calls';
    return Array.from(keys, (id, index) => ({ path: `${root}/ev_${id}${path}`, atMs: atMs[index] ?? 0 }));
  }).toSorted((a, b) => a.atMs - b.atMs);
  /** Replays all reads to a new gateway; returns its hit ratios by the store's own count, and its advice. */
  const replay = async (freshMs: number) => {
    const times = ['EVALUATION', 'TRANSCRIPT', 'SCORECARD', 'DEAL_INSIGHTS'].flatMap((name): [string, string][] => [
      [`CACHE_${name}_FRESH`, `${freshMs}ms`],
      // So that every call is over before time goes on.
      [`CACHE_${name}_STALE`, '0s'],
      [`CACHE_${name}_ERROR`, '0s'],
    ]);
    const clock = new ManualClock();
    const gateway = await startTestGateway({ store, clock, env: Object.fromEntries(times) });
    const key = await gateway.issueKey({ workspaceIds: [workspaceId], perMinute: 1e9, perHour: 1e9 });
    const startMs = clock.nowMs();
    const callsOf = (): number[] => DOOR_SETTINGS.map((setting) => store.calls(setting.class));
    const before = callsOf();
    for (const { path, atMs } of reads) {
      clock.advance(startMs + atMs - clock.nowMs());
      expect((await gateway.get(path, { key, agent })).status).toBe(200);
    }
    // Without stale copies every call is waited for.
    const ratios = callsOf().map((calls, index): Ratios => {
      const storeCallsPerRead = (calls - (before[index] ?? 0)) / DOOR_READS;
      return { hitRatio: 1 - storeCallsPerRead, storeCallsPerRead };
    });
    const { classes } = adviceSchema.parse((await gateway.admin('GET', '/api/cache/advice')).json);
    await gateway.close();
    return { freshMs, ratios, classes };
  };
  const watched = await replay(IN_FORCE_MS);
  const replays = [watched];
  for (const freshMs of OTHER_MS) replays.push(await replay(freshMs));
  const bars = DOOR_SETTINGS.map((setting, index) => {
    const measured = new Map(
      replays.flatMap(({ freshMs, ratios }) => ratios.slice(index, index + 1).map((one) => [freshMs, one] as const)),
    );
    const curve = watched.classes.find((one) => one.class === setting.class)?.curve ?? [];
    const points = largestError(curve, measured);
    const hits = [...measured.values()].map(({ hitRatio }) => Math.round(100 * hitRatio));
    return {
      name: `what-if at the door, ${setting.class}`,
      bar: `hit ratios of ${measured.size} times predicted by a gateway with ${IN_FORCE_MS / 1000} s in force, against the store's calls of gateways with those times: off by at most ${BAR_POINTS} point`,
      measured: `${count(DOOR_READS)} reads, hit ratios of ${Math.min(...hits)} to ${Math.max(...hits)} %: off by ${points.toFixed(2)}`,
      ok: points <= BAR_POINTS,
    };
  });
  prove(context, ...bars);
});

const CHANGING_HOURS = 2;
/** Looked at about as often as the fastest records change: a rhythm can't be learned from less. */
const WATCHED_WITH = {
  list: { freshMs: 30_000 },
  evaluation: { freshMs: 60_000, staleMs: 0 },
  transcript: { freshMs: 30_000, staleMs: 0 },
  notFound: { freshMs: 15_000 },
} as const satisfies TimesOf;

/** Times whose effect is predicted from what was seen with the times above, and then measured. */
const FORETOLD = [
  { class: 'list', freshMs: 5000, others: {} },
  { class: 'list', freshMs: 120_000, others: {} },
  { class: 'evaluation', freshMs: 15_000, others: { list: { freshMs: 5000 } } },
  { class: 'evaluation', freshMs: 45_000, others: { list: { freshMs: 120_000 } } },
  { class: 'transcript', freshMs: 45_000, others: {} },
  { class: 'transcript', freshMs: 1_200_000, others: {} },
  { class: 'notFound', freshMs: 45_000, others: {} },
] as const;

const hundredths = (ratio: number): string => `${(100 * ratio).toFixed(2)} %`;

test('a store whose records change, a fifth of them every minute and the others every half hour', async (context) => {
  const reads = readsOfStore({ seed: 3, hours: CHANGING_HOURS, perSecond: 1.5 });
  const watched = new ChangingStore(WATCHED_WITH);
  const lastMinutesMs = (CHANGING_HOURS * 60 - 10) * 60_000;
  await watched.read(reads.filter(({ atMs }) => atMs < lastMinutesMs));
  const advised: (readonly (number | null)[])[] = [];
  let growth = 0;
  for (let minute = 0; minute < 10; minute += 1) {
    const fromMs = lastMinutesMs + minute * 60_000;
    await watched.read(reads.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + 60_000));
    const { load, classes } = watched.advice();
    advised.push(classes.map(({ recommendation }) => recommendation.freshMs));
    const totals = classes.flatMap(({ curve, recommendation }) =>
      curve.filter(({ freshMs }) => freshMs === recommendation.freshMs).map(({ totalRps }) => totalRps),
    );
    growth = Math.max(growth, ...[load.recommendedRps, ...totals].map((rps) => rps / load.upstreamRps));
  }
  const bars = [];
  for (const { class: cacheClass, freshMs, others } of FORETOLD) {
    watched.set({ ...WATCHED_WITH, ...others });
    const advice = watched.advice().classes.find((each) => each.class === cacheClass);
    const point = advice?.curve.find((each) => each.freshMs === freshMs);
    const times = { ...WATCHED_WITH, ...others, [cacheClass]: { ...WATCHED_WITH[cacheClass], freshMs } };
    const seen = (await new ChangingStore(times).read(reads)).get(cacheClass);
    const [calls, outdated] = [
      (seen?.calls ?? 0) / (CHANGING_HOURS * 3600),
      (seen?.outdated ?? 0) / (seen?.reads ?? 1),
    ];
    const [foretoldCalls, foretold] = [point?.upstreamRps ?? Number.NaN, point?.outdatedRatio ?? Number.NaN];
    const beside = 'list' in others ? ` with lists at ${others.list.freshMs / 1000} s` : '';
    bars.push({
      name: `what-if of changing records, ${cacheClass} at ${freshMs / 1000} s${beside}`,
      bar: 'store calls within 10 %, outdated answers within a quarter or half a point',
      measured: `${foretoldCalls.toFixed(3)} calls/s foretold, ${calls.toFixed(3)} measured; ${hundredths(foretold)} outdated foretold, ${hundredths(outdated)} measured`,
      ok: Math.abs(foretoldCalls / calls - 1) <= 0.1 && Math.abs(foretold - outdated) <= Math.max(0.005, outdated / 4),
    });
  }
  const distinct = new Set(advised.map((each) => JSON.stringify(each))).size;
  prove(context, ...bars, {
    name: 'what-if of changing records, advice',
    bar: 'no recommendation more than doubles the load of the store, each alone and all together; the same for ten minutes',
    measured: `at most ${growth.toFixed(2)} times the load; ${distinct} different in ten minutes`,
    ok: growth <= 2 && distinct === 1,
  });
}, 600_000);

test('a fleet', async (context) => {
  const [processes, perSecond, forMs, keys, knownWithinMs] = [4, 400, 60_000, 2000, 2000];
  const staleMs = 3_600_000;
  const fleet = await forTest(
    Fleet.start({
      gateways: processes,
      redis: {},
      env: { CACHE_EVALUATION_FRESH: '20s', CACHE_EVALUATION_STALE: `${staleMs}ms` },
    }),
  );
  const load = await fleet.load();
  const key = await fleet.first.issueKey();
  const trace = zipfTrace({ seed: 5, reads: (perSecond * forMs) / 1000, hours: 1, keys, exponent: 1 });
  const random = new SeededRandom(6);
  const targets = Array.from(trace.keys, (id) => {
    const { publicUrl } = fleet.gateway(random.integer(0, processes - 1));
    return { url: `${publicUrl}/v2/calls/ev_${id}`, key };
  });
  const samples = await load.run(targets, { perSecond, forMs });
  const endedMs = performance.now();
  const adviceAt = async (gateway: number) => {
    const advice = await fleet.gateway(gateway).administer('GET', '/api/cache/advice');
    return adviceSchema.parse(advice).classes.find((one) => one.class === 'evaluation');
  };
  const all = async () => Promise.all(Array.from({ length: processes }, (_, gateway) => adviceAt(gateway)));
  let advice = await all();
  const isKnown = (): boolean => advice.every((one) => Math.abs((one?.reads ?? 0) - samples.length) < 1);
  while (!isKnown() && performance.now() - endedMs < 5 * knownWithinMs) {
    await sleep(10);
    advice = await all();
  }
  const knownMs = isKnown() ? performance.now() - endedMs : Number.POSITIVE_INFINITY;
  const reads = samples.map(({ url, atMs }) => ({ key: url.split('/').at(-1) ?? '', atMs }));
  const times = advice[0]?.curve.map(({ freshMs }) => freshMs) ?? [];
  const measured = new Map(times.map((freshMs) => [freshMs, ratiosOf(reads, { freshMs, staleMs })]));
  const points = Math.max(...advice.map((one) => largestError(one?.curve ?? [], measured)));
  prove(context, {
    name: 'what-if, fleet',
    bar: `${processes} processes, ${perSecond} reads/s of the same keys over all of them: each one's curve is that of all reads, within ${BAR_POINTS} point of hit ratio, at most ${ms(knownWithinMs)} old`,
    measured: `${count(samples.length)} reads, ${measured.size} times: at most ${points.toFixed(2)} points; all was known everywhere ${ms(knownMs)} after the last read`,
    ok: points <= BAR_POINTS && knownMs <= knownWithinMs && samples.every(({ status }) => status === 200),
  });
});
