/** One call to the store per record in the whole fleet: herds on a cold cache, a slow and a failing store, a hot key. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { forTest } from '../support/opened.ts';
import { Fleet, PLAIN_STORE_CONFIG } from '../support/fleet.ts';
import type { Sample, Target } from '../support/load.ts';
import { firstJson } from '../support/process.ts';
import { count, ms, p99, prove } from './bar.ts';

const BARE_KOA = join(import.meta.dirname, 'bare-koa-worker.ts');
const PROCESSES = 4;

async function startFleet(env: Readonly<Record<string, string>> = {}): Promise<Fleet> {
  const fleet = await forTest(
    Fleet.start({
      gateways: PROCESSES,
      redis: {},
      env: { CONFIG_FILE: PLAIN_STORE_CONFIG, CACHE_EVALUATION_FRESH: '1h', ...env },
    }),
  );
  fleet.store.title = 'Discovery call';
  return fleet;
}

async function startBareKoa(): Promise<string> {
  const child = spawn(process.execPath, [BARE_KOA], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill());
  return z.object({ url: z.string() }).parse(await firstJson(child)).url;
}

function isServed({ status, title }: Sample): boolean {
  return status === 200 && title === 'Discovery call';
}

test('cold herd', async (context) => {
  const [readers, storeMs] = [250, 500];
  const fleet = await startFleet();
  const load = await fleet.load();
  const key = await fleet.first.issueKey();
  const bareUrls = await Promise.all(Array.from({ length: PROCESSES }, startBareKoa));
  const bareTargets = (afterMs: number): readonly Target[] =>
    bareUrls.map((url) => ({ url: `${url}/?ms=${afterMs}`, key }));
  // Neither pays for its first requests and connections in the measurement.
  for (let round = 0; round < 4; round += 1) {
    await load.burst(bareTargets(1), readers);
    await load.burst(fleet.targets(['/v2/calls/warm'], key), readers);
  }
  fleet.store.answerAfter(storeMs);
  const rounds: { readonly bareMs: number; readonly herdMs: number; readonly calls: number }[] = [];
  for (const id of ['herd_1', 'herd_2', 'herd_3']) {
    const bareMs = p99(await load.burst(bareTargets(storeMs), readers));
    const herd = await load.burst(fleet.targets([`/v2/calls/${id}`], key), readers);
    expect(herd.every(isServed)).toBe(true);
    rounds.push({ bareMs, herdMs: p99(herd), calls: fleet.store.calls(id) });
  }
  const best = Math.min(...rounds.map(({ herdMs, bareMs }) => herdMs / bareMs));
  prove(context, {
    name: 'cold herd',
    bar: `${PROCESSES} processes × ${readers} readers, ${ms(storeMs)} store, three times: 1 call each; p99 at best at most 1.3 × that of bare Koa servers that wait as long`,
    measured: rounds
      .map(
        ({ calls, herdMs, bareMs }) =>
          `${calls} call, ${ms(herdMs)} to ${ms(bareMs)}: ${(herdMs / bareMs).toFixed(2)} ×`,
      )
      .join('; '),
    ok: rounds.every(({ calls }) => calls === 1) && best <= 1.3,
  });
});

test('slow store', async (context) => {
  // Longer than a lease, so that it has to be renewed.
  const [readers, storeMs, allowedMs] = [300, 7000, 7500];
  const fleet = await startFleet();
  const load = await fleet.load();
  const key = await fleet.first.issueKey();
  await load.burst(fleet.targets(['/v2/calls/warm'], key), readers / PROCESSES);
  fleet.store.answerAfter(storeMs);
  const reads = await load.burst(fleet.targets(['/v2/calls/slow'], key), readers / PROCESSES);
  const calls = fleet.store.calls('slow');
  prove(context, {
    name: 'slow store',
    bar: `${readers} readers, ${ms(storeMs)} store: 1 call, p99 at most ${ms(allowedMs)}`,
    measured: `${calls} call, ${reads.filter(isServed).length} served, p99 ${ms(p99(reads))}`,
    ok: calls === 1 && reads.every(isServed) && p99(reads) <= allowedMs,
  });
});

test('failing store', async (context) => {
  const [readers, allowedMs] = [100, 200];
  const fleet = await startFleet();
  const load = await fleet.load();
  const key = await fleet.first.issueKey();
  await load.burst(fleet.targets(['/v2/calls/warm'], key), readers / PROCESSES);
  fleet.store.answerAfter(200, 500);
  const reads = await load.burst(fleet.targets(['/v2/calls/failing'], key), readers / PROCESSES);
  const endedAtMs = Math.max(...reads.map(({ atMs, tookMs }) => atMs + tookMs));
  const afterMs = endedAtMs - fleet.store.answeredAtMs;
  const calls = fleet.store.calls('failing');
  prove(context, {
    name: 'failing store',
    bar: `${readers} readers over ${PROCESSES} processes, 500 after 200 ms: 1 call; all answered within ${ms(allowedMs)} of the failure`,
    measured: `${calls} call; the last answered after ${ms(afterMs)}`,
    ok: calls === 1 && reads.every(({ status }) => status === 500) && afterMs <= allowedMs,
  });
});

test('hot key', async (context) => {
  const [freshMs, forMs, perSecond] = [5000, 60_000, 200];
  const fleet = await startFleet({ CACHE_EVALUATION_FRESH: `${freshMs}ms`, CACHE_EVALUATION_STALE: '1m' });
  const load = await fleet.load();
  const key = await fleet.first.issueKey();
  fleet.store.answerAfter(100);
  const targets = fleet.targets(['/v2/calls/hot'], key);
  await load.burst(targets, 1);
  const reads = await load.run(targets, { perSecond, forMs });
  const waited = reads.filter(({ cacheStatus }) => !/^evalgate; hit; ttl=(\d|-\d+; detail=stale-w)/.test(cacheStatus));
  const calls = fleet.store.calls('hot');
  prove(context, {
    name: 'hot key',
    bar: `fresh ${ms(freshMs)} for ${ms(forMs)} at ${perSecond} requests/s over ${PROCESSES} processes: at most 15 calls, no reader waits for the store once warm`,
    measured: `${calls} calls, ${waited.length} of ${count(reads.length)} reads waited${waited[0] === undefined ? '' : ` (${waited[0].status} ${waited[0].cacheStatus})`}; p99 ${ms(p99(reads))}`,
    ok: calls <= 15 && waited.length === 0 && reads.every(isServed),
  });
});
