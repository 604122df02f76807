/** Orderly restarts lose no request, and a crash of one worker only those that it was at. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { forTest } from '../support/opened.ts';
import { Balancer } from '../support/balancer.ts';
import { Fleet } from '../support/fleet.ts';
import type { Sample, Target } from '../support/load.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { percentile } from '../support/percentile.ts';
import { count, ms, prove } from './bar.ts';

const TIMES = 20;
const PER_SECOND = 200;
/** As many reads wait for the store as are answered from memory, so that there is always something in flight. */
const STORE_MS = 50;
const PATHS = Array.from({ length: 200 }, (_, i) => [
  `/v2/calls/ev_${i}`,
  `/v1/workspaces/${WORKSPACE_A}/reports/ev_${i}`,
]).flat();

async function startFleet(gateways: number, env: Readonly<Record<string, string>> = {}): Promise<Fleet> {
  const common = { CACHE_EVALUATION_FRESH: '1s', CACHE_EVALUATION_STALE: '0s', LOG_LEVEL: 'info' };
  const fleet = await forTest(Fleet.start({ gateways, redis: {}, env: { ...common, ...env } }));
  fleet.store.answerAfter(STORE_MS);
  return fleet;
}

function targets(url: string, key: string): readonly Target[] {
  return PATHS.map((path) => ({ url: url + path, key }));
}

function failuresOf(samples: readonly Sample[]): readonly Sample[] {
  return samples.filter(({ status }) => status !== 200);
}

test('rolling restarts', async (context) => {
  const fleet = await startFleet(2);
  const balancer = await forTest(Balancer.start());
  for (const gateway of fleet.gateways) await balancer.add(gateway);
  const load = await fleet.load();
  await load.begin(targets(balancer.url, await fleet.first.issueKey()), PER_SECOND);
  const ends = new Set<number | string | null>();
  for (let round = 0; round < TIMES; round += 1) {
    const [old] = fleet.gateways.splice(0, 1);
    if (old === undefined) throw new Error('There is no gateway.');
    const [code, signal] = await old.stop();
    ends.add(code ?? signal);
    balancer.remove(old);
    await balancer.add(await fleet.add());
  }
  const samples = await load.end();
  const failed = failuresOf(samples);
  const because = [...new Set(balancer.failures)].slice(0, 3).join('; ');
  prove(context, {
    name: 'rolling restarts',
    bar: `${TIMES} restarts by SIGTERM in turn of two gateways behind a balancer that goes by /readyz and tries nothing twice, ${PER_SECOND} requests/s by keep-alive clients: no failed request, every exit status 0`,
    measured: `${count(samples.length)} requests, ${failed.length} failed${because === '' ? '' : ` (${because})`}; exit status ${[...ends].join(', ')}`,
    ok: failed.length === 0 && [...ends].join() === '0',
  });
});

test('worker crashes', async (context) => {
  const replacedWithinMs = 10_000;
  /** A connection's end may be read a moment after the next request was written to it. */
  const noticedWithinMs = 100;
  const fleet = await startFleet(1, { WORKERS: '2' });
  const { first: gateway } = fleet;
  const load = await fleet.load();
  await load.begin(targets(gateway.publicUrl, await gateway.issueKey()), PER_SECOND);
  const kills: { readonly fromMs: number; readonly toMs: number }[] = [];
  const replacedMs: number[] = [];
  while (kills.length < TIMES) {
    // Longer than what counts as a crash at once.
    await sleep(2100);
    const pid = gateway.workerPids[kills.length];
    if (pid === undefined) throw new Error('There is no worker.');
    const fromMs = Date.now();
    process.kill(pid, 'SIGKILL');
    // Until then its connections stand, and requests go to where nobody reads them.
    kills.push({ fromMs, toMs: await gateway.untilEnded(pid) });
    await gateway.untilReady(2 + kills.length);
    replacedMs.push(Date.now() - fromMs);
  }
  const samples = await load.end();
  const failed = failuresOf(samples);
  const unexplained = failed.filter(
    ({ atMs, tookMs }) =>
      !kills.some(({ fromMs, toMs }) => atMs <= toMs + noticedWithinMs && atMs + tookMs >= fromMs - 1),
  );
  const goneMs = kills.map(({ fromMs, toMs }) => toMs - fromMs);
  prove(context, {
    name: 'worker crashes',
    bar: `WORKERS=2, ${PER_SECOND} requests/s by keep-alive clients, one worker killed (SIGKILL) ${TIMES} times: only requests in flight between a kill and the process's end fail, each worker replaced within ${ms(replacedWithinMs)}`,
    measured: `${count(samples.length)} requests, ${failed.length} failed, ${unexplained.length} of them not in flight at a kill; gone after ${ms(percentile(goneMs, 0.5))}, at most ${ms(percentile(goneMs, 1))}; replaced after ${ms(percentile(replacedMs, 0.5))}, at most ${ms(percentile(replacedMs, 1))}`,
    ok: unexplained.length === 0 && percentile(replacedMs, 1) <= replacedWithinMs,
  });
});
