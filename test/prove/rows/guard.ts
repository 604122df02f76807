/** What shields the store: one that fails all the time, and one that bears less than it is asked. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BusyStore } from '../../support/busy-store.ts';
import type { Seen } from '../../support/busy-store-commands.ts';
import { Closers } from '../../support/faults-world.ts';
import { GatewayProcess } from '../../support/gateway-process.ts';
import { Pressure } from '../../support/pressure.ts';
import type { Answered } from '../../support/pressure-commands.ts';
import { count, ms, percentile, type Row, type Scale, slackMs } from '../row.ts';

export async function run(scale: Scale): Promise<readonly Row[]> {
  return [await failingStore(scale), ...(await overload(scale))];
}

interface World {
  readonly store: BusyStore;
  readonly pressure: Pressure;
  /** Of a single read at the gateway, `%` for the id. */
  readonly url: string;
  readonly key: string;
}

interface Strengths {
  readonly serviceMs: number;
  readonly bears: number;
}

/** A gateway as it is run for real, with its cap on calls at what the store bears. */
async function withWorld<T>(strengths: Strengths, work: (world: World) => Promise<T>): Promise<T> {
  const closers = new Closers();
  try {
    const folder = await closers.keep(mkdtemp(join(tmpdir(), 'evalgate-guard-')), (path) =>
      rm(path, { recursive: true }),
    );
    const file = join(folder, 'config.yaml');
    await writeFile(file, `upstream:\n  maxConnections: ${strengths.bears}\n`);
    const store = await closers.keep(BusyStore.start(strengths), (opened) => opened.close());
    const pressure = await closers.keep(Pressure.start(), (opened) => opened.close());
    const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: 'a-token', CONFIG_FILE: file };
    const gateway = await closers.keep(GatewayProcess.start({ env }), (opened) => opened.kill());
    const key = await gateway.issueKey();
    return await work({ store, pressure, key, url: `${gateway.publicUrl}/v2/calls/%` });
  } finally {
    await closers.close();
  }
}

const FAILING_PER_SECOND = 50;
/** The breaker needs half of the calls of the last 10 s to fail, or 41 of the last 80. */
const OPEN_WITHIN_MS = 10_000;
const RECOVERED_WITHIN_MS = 5000;
/** Probes are a second apart where they are sent; on the way two can come closer, where the machine is busy. */
const PROBE_APART_MS = 500;

function failingStore(scale: Scale): Promise<Row> {
  const [wellMs, failingMs, afterMs] = scale === 'whole' ? [5000, 60_000, 10_000] : [500, 3000, 2500];
  return withWorld({ serviceMs: 20, bears: 50 }, async ({ store, pressure, url, key }) => {
    const forMs = wellMs + failingMs + afterMs;
    const load = pressure.open({ url, key, perSecond: FAILING_PER_SECOND, forMs, ids: null });
    await sleep(wellMs);
    await store.look();
    const downAtMs = Date.now();
    await store.fail(true);
    await sleep(failingMs);
    const seen = await store.look();
    const upAtMs = Date.now();
    await store.fail(false);
    const answers = await load;
    const offered = answers.filter(({ dueAtMs }) => dueAtMs >= downAtMs && dueAtMs < upAtMs).length;
    const probes = probesOf(seen);
    const lastFailedMs = Math.max(...answers.filter(({ status }) => status !== 200).map(({ dueAtMs }) => dueAtMs));
    const recoveredMs = Math.max(0, lastFailedMs - upAtMs);
    const openForS = (upAtMs - probes.openedAtMs) / 1000;
    const allowedMs = RECOVERED_WITHIN_MS + slackMs(scale);
    return {
      name: 'store at 100 % 503',
      bar: `${FAILING_PER_SECOND} requests/s of ids never asked for before, ${failingMs / 1000} s: attempts at most 1.1 × offered; breaker open within ${OPEN_WITHIN_MS / 1000} s, then at most 1 probe/s; recovered within ${ms(allowedMs)} of the store`,
      measured: `${count(offered)} offered, ${count(seen.arrivedAtMs.length)} attempts (${(seen.arrivedAtMs.length / offered).toFixed(2)} ×); open after ${ms(probes.openedAtMs - downAtMs)}, then ${probes.sentAtMs.length} probes in ${openForS.toFixed(1)} s, the closest ${ms(probes.closestMs)} apart; recovered after ${ms(recoveredMs)}`,
      ok:
        seen.arrivedAtMs.length <= 1.1 * offered &&
        probes.openedAtMs - downAtMs <= OPEN_WITHIN_MS &&
        probes.sentAtMs.length <= Math.ceil(openForS) &&
        probes.closestMs >= PROBE_APART_MS &&
        recoveredMs <= allowedMs,
    };
  });
}

/** The breaker was open from the first pause on that no load of 50 requests a second leaves. */
function probesOf({ arrivedAtMs }: Seen): { openedAtMs: number; sentAtMs: readonly number[]; closestMs: number } {
  const gaps = arrivedAtMs.map((atMs, index) => (arrivedAtMs[index + 1] ?? Number.POSITIVE_INFINITY) - atMs);
  const last = gaps.findIndex((gapMs) => gapMs >= PROBE_APART_MS);
  return {
    openedAtMs: arrivedAtMs[last] ?? Number.POSITIVE_INFINITY,
    sentAtMs: arrivedAtMs.slice(last + 1),
    closestMs: Math.min(...gaps.slice(last)),
  };
}

const WARM_PER_SECOND = 50;
const WARM_IDS = 20;
const SINGLE_PER_SECOND = 10;
const OVERLOAD = 3;
/** Of what the store bears. The short form is for machines that do other things too: there it must only not collapse. */
const GOODPUT = { whole: 0.9, short: 0.2 } as const;
const BUSY_MACHINE_MS = { whole: 0, short: 10_000 } as const;
/** Until the first answers come there is nothing to count. */
const STARTING_MS = 500;
/** What a warm read may lose to the mere work of refusing others, on a machine that also runs the store and the load. */
const UNHARMED_MS = 20;

interface Phases {
  readonly bearsPerSecond: number;
  readonly idleWarm: readonly Answered[];
  readonly idleCold: readonly Answered[];
  readonly warm: readonly Answered[];
  readonly cold: readonly Answered[];
  readonly seen: Seen;
  readonly forMs: number;
}

async function overload(scale: Scale): Promise<readonly Row[]> {
  const strengths = scale === 'whole' ? { serviceMs: 120, bears: 50 } : { serviceMs: 120, bears: 10 };
  const phases = await withWorld(strengths, (world) => overloadPhases(world, strengths, scale));
  return overloadRows(phases, strengths, scale);
}

async function overloadPhases(world: World, { bears }: Strengths, scale: Scale): Promise<Phases> {
  const { store, pressure, url, key } = world;
  const [calibrateMs, idleMs, forMs] = scale === 'whole' ? [5000, 5000, 30_000] : [1000, 1000, 2000];
  const calibrate = (): Promise<number> =>
    pressure.closed({ url: `${store.url}/internal/v1/evaluations/%`, connections: bears, forMs: calibrateMs });
  const warmReads = (lastsMs: number) => ({ url, key, perSecond: WARM_PER_SECOND, forMs: lastsMs, ids: WARM_IDS });
  await pressure.open(warmReads(500));
  const before = await calibrate();
  const idleWarm = await pressure.open(warmReads(idleMs));
  const idleCold = await pressure.open({ url, key, perSecond: SINGLE_PER_SECOND, forMs: idleMs, ids: null });
  await store.look();
  const perSecond = OVERLOAD * before;
  const [warm, cold] = await Promise.all([
    pressure.open(warmReads(forMs)),
    pressure.open({ url, key, perSecond, forMs, ids: null }),
  ]);
  const seen = await store.look();
  const bearsPerSecond = Math.max(before, await calibrate());
  return { bearsPerSecond, idleWarm, idleCold, warm, cold, seen, forMs };
}

function p99(answers: readonly Answered[], of: 'tookMs' | 'lateMs' = 'tookMs'): number {
  return percentile(
    answers.map((answer) => answer[of]),
    0.99,
  );
}

function overloadRows(phases: Phases, { serviceMs, bears }: Strengths, scale: Scale): readonly Row[] {
  const { bearsPerSecond, idleWarm, idleCold, warm, cold, seen, forMs } = phases;
  const served = cold.filter(({ status }) => status === 200);
  const refused = cold.filter(({ status }) => status === 500);
  const endMs = (cold[0]?.dueAtMs ?? 0) + forMs;
  const fromMs = endMs - forMs + STARTING_MS;
  const inTime = served.filter(({ dueAtMs, tookMs }) => dueAtMs + tookMs > fromMs && dueAtMs + tookMs <= endMs);
  const goodput = inTime.length / ((endMs - fromMs) / 1000);
  const offered = cold.length / (forMs / 1000);
  const what = `store of ${serviceMs} ms that bears ${bears} in flight, offered ${OVERLOAD} × that in cold reads, open loop, ${forMs / 1000} s`;
  const unharmedMs = UNHARMED_MS + BUSY_MACHINE_MS[scale];
  const refusedWithinMs = 10 * p99(idleCold) + BUSY_MACHINE_MS[scale];
  const isWarmFine = warm.every(({ status }) => status === 200);
  return [
    {
      name: 'overload: goodput',
      bar: `${what}: at least ${100 * GOODPUT[scale]} % of what it bears; in flight at the store never over ${bears}; nothing but 200 and 500`,
      measured: `offered ${count(Math.round(offered))}/s, served ${count(Math.round(goodput))}/s of ${count(Math.round(bearsPerSecond))}/s (${((100 * goodput) / bearsPerSecond).toFixed(1)} %); at most ${seen.mostInFlight} in flight; ${count(served.length)} × 200, ${count(refused.length)} × 500, ${count(cold.length - served.length - refused.length)} others; the load itself came p99 ${ms(p99(cold, 'lateMs'))} late`,
      ok:
        goodput >= GOODPUT[scale] * bearsPerSecond &&
        seen.mostInFlight <= bears &&
        served.length + refused.length === cold.length,
    },
    {
      name: 'overload: rejections',
      bar: `p99 at most 10 × an unloaded cold read's${scale === 'short' ? ` (+ ${ms(BUSY_MACHINE_MS.short)})` : ''}`,
      measured: `p99 ${ms(p99(refused))}, an unloaded cold read's ${ms(p99(idleCold))}`,
      ok: refused.length > 0 && p99(refused) <= refusedWithinMs,
    },
    {
      name: 'overload: warm reads',
      bar: `${WARM_PER_SECOND}/s beside it: all served, p99 + at most ${ms(unharmedMs)}`,
      measured: `${count(warm.filter(({ status }) => status === 200).length)} of ${count(warm.length)} served; p99 ${p99(warm).toFixed(1)} ms, unloaded ${p99(idleWarm).toFixed(1)} ms (${(p99(warm) / p99(idleWarm)).toFixed(1)} ×)`,
      ok: isWarmFine && p99(warm) <= p99(idleWarm) + unharmedMs,
    },
  ];
}
