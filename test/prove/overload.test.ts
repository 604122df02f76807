/** The protection of the store: of one that always fails, and of one with more load than it can handle. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, test } from 'vitest';
import { fileOf } from '../support/files.ts';
import { forTest } from '../support/opened.ts';
import { closedLoop, Load, type Sample, type Target } from '../support/load.ts';
import { GatewayProcess } from '../support/process.ts';
import { percentile } from '../support/percentile.ts';
import { anEvaluation } from '../support/records.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';
import { count, ms, p99, prove } from './bar.ts';

interface Strength {
  readonly serviceMs: number;
  /** Requests at a time. */
  readonly bears: number;
}

/** A gateway that may call the store as often at a time as it bears. */
async function startWorld(strength: Strength) {
  // All requests come with one key.
  const file = fileOf(`upstream:\n  maxConnections: ${strength.bears}\n  reservePercent: 0\n`);
  const store = await createStoreServer({ latencyMs: strength.serviceMs });
  store.evaluations.make = (id) => anEvaluation({ _id: id });
  store.setFaults({ capacity: strength.bears });
  onTestFinished(() => store.close());
  const load = await forTest(Load.start());
  const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, CONFIG_FILE: file, LOG_LEVEL: 'fatal' };
  const gateway = await GatewayProcess.start({ env });
  onTestFinished(() => gateway.kill());
  const key = await gateway.issueKey();
  const target = (id: string): Target => ({ url: `${gateway.publicUrl}/v2/calls/${id}`, key });
  return { store, load, cold: [target('{n}')], warm: Array.from({ length: 20 }, (_, i) => target(`warm-${i}`)) };
}

test('a store that fails all the time', async (context) => {
  const [perSecond, wellMs, failingMs, afterMs] = [50, 5000, 60_000, 10_000];
  /** The breaker needs half of the calls of the last 10 s to fail, or 41 of the last 80. */
  const openWithinMs = 10_000;
  const recoveredWithinMs = 5000;
  /** Probes are sent a second apart; on the way two can come closer if the machine is busy. */
  const probeApartMs = 500;
  const { store, load, cold } = await startWorld({ serviceMs: 20, bears: 50 });
  const begun = await load.begin(cold, perSecond);
  await sleep(wellMs);
  store.forget();
  const downAtMs = Date.now();
  const recover = store.fail(503);
  await sleep(failingMs);
  const arrivedAtMs = store.requests.map((request) => request.arrivedAtMs);
  const upAtMs = Date.now();
  recover();
  await sleep(afterMs);
  const answers = await load.end(begun);
  const offered = answers.filter(({ atMs }) => atMs >= downAtMs && atMs < upAtMs).length;
  // It is open from the first pause on that no load of 50 requests a second leaves.
  const gaps = arrivedAtMs.map((atMs, index) => (arrivedAtMs[index + 1] ?? Number.POSITIVE_INFINITY) - atMs);
  const last = gaps.findIndex((gapMs) => gapMs >= probeApartMs);
  const openedAtMs = arrivedAtMs[last] ?? Number.POSITIVE_INFINITY;
  const probes = arrivedAtMs.slice(last + 1);
  const closestMs = Math.min(...gaps.slice(last));
  const openForS = (upAtMs - openedAtMs) / 1000;
  const lastFailedMs = Math.max(...answers.filter(({ status }) => status !== 200).map(({ atMs }) => atMs));
  const recoveredMs = Math.max(0, lastFailedMs - upAtMs);
  prove(context, {
    name: 'store at 100 % 503',
    bar: `${perSecond} requests/s of ids never read before, ${failingMs / 1000} s: attempts at most 1.1 × offered; circuit open within ${openWithinMs / 1000} s, then at most 1 probe/s; recovered within ${ms(recoveredWithinMs)} of the store`,
    measured: `${count(offered)} offered, ${count(arrivedAtMs.length)} attempts (${(arrivedAtMs.length / offered).toFixed(2)} ×); open after ${ms(openedAtMs - downAtMs)}, then ${probes.length} probes in ${openForS.toFixed(1)} s, the closest ${ms(closestMs)} apart; recovered after ${ms(recoveredMs)}`,
    ok:
      arrivedAtMs.length <= 1.1 * offered &&
      openedAtMs - downAtMs <= openWithinMs &&
      probes.length <= Math.ceil(openForS) &&
      closestMs >= probeApartMs &&
      recoveredMs <= recoveredWithinMs,
  });
});

/** How many answers a second the store gives to as many clients as it bears. */
async function strengthOf(store: StoreServer, { bears }: Strength): Promise<number> {
  const requests = [{ path: '/internal/v1/evaluations/{n}', headers: { authorization: `Bearer ${store.token}` } }];
  const { statuses, seconds } = await closedLoop({ url: store.url, requests, connections: bears, seconds: 5 });
  return (statuses['200'] ?? 0) / seconds;
}

function endedAt({ atMs, tookMs }: Sample): number {
  return atMs + tookMs;
}

test('a store that bears a third of what it is asked for', async (context) => {
  const strength = { serviceMs: 120, bears: 50 };
  const [overload, goodputShare, warmPerSecond, forMs] = [3, 0.9, 50, 30_000];
  /** How much slower warm reads may be while others are refused, on a machine that also runs the store and the load. */
  const unharmedMs = 20;
  const { store, load, cold, warm } = await startWorld(strength);
  await load.run(warm, { perSecond: warmPerSecond, forMs: 500 });
  const before = await strengthOf(store, strength);
  const idleWarm = await load.run(warm, { perSecond: warmPerSecond, forMs: 5000 });
  const idleCold = await load.run(cold, { perSecond: 10, forMs: 5000 });
  store.forget();
  const [warmReads, coldReads] = await Promise.all([
    load.run(warm, { perSecond: warmPerSecond, forMs }),
    load.run(cold, { perSecond: overload * before, forMs }),
  ]);
  const { mostInFlight } = store;
  const bearsPerSecond = Math.max(before, await strengthOf(store, strength));
  const served = coldReads.filter(({ status }) => status === 200);
  const refused = coldReads.filter(({ status }) => status === 500);
  const others = coldReads.length - served.length - refused.length;
  const endMs = (coldReads[0]?.atMs ?? 0) + forMs;
  // Until the first answers come there is nothing to count.
  const fromMs = endMs - forMs + 500;
  const inTime = served.filter((one) => endedAt(one) > fromMs && endedAt(one) <= endMs);
  const goodput = inTime.length / ((endMs - fromMs) / 1000);
  const lateMs = percentile(
    coldReads.map((one) => one.lateMs),
    0.99,
  );
  const warmServed = warmReads.filter(({ status }) => status === 200).length;
  prove(
    context,
    {
      name: 'overload: goodput',
      bar: `store of ${strength.serviceMs} ms that bears ${strength.bears} in flight, offered ${overload} × that in cold reads, open loop, ${forMs / 1000} s: at least ${100 * goodputShare} % of what it bears; in flight at the store never over ${strength.bears}; nothing but 200 and 500`,
      measured: `offered ${count(Math.round(coldReads.length / (forMs / 1000)))}/s, served ${count(Math.round(goodput))}/s of ${count(Math.round(bearsPerSecond))}/s (${((100 * goodput) / bearsPerSecond).toFixed(1)} %); at most ${mostInFlight} in flight; ${count(served.length)} × 200, ${count(refused.length)} × 500, ${count(others)} others; the load itself came p99 ${ms(lateMs)} late`,
      ok: goodput >= goodputShare * bearsPerSecond && mostInFlight <= strength.bears && others === 0,
    },
    {
      name: 'overload: rejections',
      bar: "p99 at most 10 × an unloaded cold read's",
      measured: `p99 ${ms(p99(refused))}, an unloaded cold read's ${ms(p99(idleCold))}`,
      ok: refused.length > 0 && p99(refused) <= 10 * p99(idleCold),
    },
    {
      name: 'overload: warm reads',
      bar: `${warmPerSecond}/s beside it: all served, p99 + at most ${ms(unharmedMs)}`,
      measured: `${count(warmServed)} of ${count(warmReads.length)} served; p99 ${p99(warmReads).toFixed(1)} ms, unloaded ${p99(idleWarm).toFixed(1)} ms (${(p99(warmReads) / p99(idleWarm)).toFixed(1)} ×)`,
      ok: warmServed === warmReads.length && p99(warmReads) <= p99(idleWarm) + unharmedMs,
    },
  );
});
