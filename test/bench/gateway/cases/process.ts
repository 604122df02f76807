/** The start and the memory of a process, and the work of several. */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Bar } from '../../../prove/bar.ts';
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, named, ratioRow, reported } from '../case.ts';
import type { BenchRequest } from '../../../support/load.ts';
import { CONNECTIONS, load } from '../load.ts';
import { median } from '../measure.ts';
import { LIST, NEVER_SEEN, SINGLE, TRANSCRIPT_PAGE } from '../paths.ts';
import { childrenOf, cpuNanos, residentBytes } from '../processes.ts';

const MEGABYTE = 1_000_000;
/** The default size of the gateway's memory tier. */
const TIER_MB = 64;
const MEMORY_ROUNDS = 10;

/** Mixed load, much of it on records that were never seen, so that the memory tier is full long before the end. */
export async function memory(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  await sleep(2000);
  const idleMb = residentBytes(gateway.pid) / MEGABYTE;
  const headers = bearer(await gateway.createKey());
  const requests: BenchRequest[] = [LIST, SINGLE, TRANSCRIPT_PAGE, NEVER_SEEN].map((path) => ({ path, headers }));
  const afterMb: number[] = [];
  const seconds = bench.effort.memorySeconds / MEMORY_ROUNDS;
  for (let round = 0; round < MEMORY_ROUNDS; round++) {
    await load(gateway, { requests, seconds });
    afterMb.push(residentBytes(gateway.pid) / MEGABYTE);
  }
  const mostMb = Math.max(...afterMb);
  const half = Math.floor(MEMORY_ROUNDS / 2);
  const grownMb = median(afterMb.slice(half)) - median(afterMb.slice(1, half));
  return {
    rows: [
      reported('memory, idle', `${Math.round(idleMb)} MB resident`),
      reported('memory under load', `at most ${Math.round(mostMb)} MB resident, ${TIER_MB} MB of it the memory tier's`),
      row(`memory over ${Math.round(bench.effort.memorySeconds / 60)} minutes of load`, {
        bar: 'flat: the later half at most 5 % above the earlier',
        measured: `${afterMb.map(Math.round).join(', ')} MB`,
        ok: grownMb <= 0.05 * median(afterMb),
      }),
    ],
    tables: [],
  };
}

/**
 * Both workers on the one core that a server has, each with as many connections as the one process: on a core of its own
 * a worker would share it with the load or with Redis, and be measured by those.
 */
export async function workers(bench: Bench): Promise<CaseResult> {
  const one = await bench.evalgate();
  const two = await bench.evalgate({ env: { WORKERS: '2' } });
  const requests = [{ path: LIST, headers: bearer(await one.createKey()) }];
  const loadOnTwo = { requests, connections: 2 * CONNECTIONS };
  const measured = await bench.measure([
    { name: 'one process', server: one, load: { requests } },
    { name: 'WORKERS=2', server: two, load: loadOnTwo },
  ]);
  const pids = childrenOf(two.pid);
  const before = pids.map(cpuNanos);
  await load(two, { ...loadOnTwo, seconds: bench.effort.seconds });
  const used = pids.map((pid, index) => cpuNanos(pid) - (before[index] ?? 0));
  const all = used.reduce((sum, nanos) => sum + nanos, 0);
  const shares = used.map((nanos) => Math.round((100 * nanos) / all));
  return {
    rows: [
      ratioRow('WORKERS=2, CPU a request', [named(measured, 'WORKERS=2'), named(measured, 'one process')], 1.1),
      row('WORKERS=2, shares', {
        bar: 'each worker does 30 % of the work at least',
        measured: `${shares.join(' % and ')} %`,
        ok: shares.length === 2 && Math.min(...shares) >= 30,
      }),
    ],
    tables: [comparison('Hot list, one process and two workers on one core, 32 connections to each', measured)],
  };
}

const MAX_LISTENING_MS = 700;
const MAX_READY_MS = 2000;
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

export async function start(bench: Bench): Promise<CaseResult> {
  const listening: number[] = [];
  const ready: number[] = [];
  for (let round = 0; round < bench.effort.rounds + 1; round++) {
    const startedMs = performance.now();
    await bench.evalgate();
    listening.push(performance.now() - startedMs);
    await bench.stopServers();
    ready.push(await npmStartMs());
  }
  // The first start fills the cache of compiled code.
  const listeningMs = median(listening.slice(1));
  const readyMs = median(ready.slice(1));
  return {
    rows: [
      row('start, listening', {
        bar: `at most ${MAX_LISTENING_MS} ms`,
        measured: `${Math.round(listeningMs)} ms`,
        ok: listeningMs <= MAX_LISTENING_MS,
      }),
      row('npm start, ready with the sample store', {
        bar: `at most ${MAX_READY_MS} ms`,
        measured: `${Math.round(readyMs)} ms`,
        ok: readyMs <= MAX_READY_MS,
      }),
    ],
    tables: [],
  };
}

/** From the command to the line that says that it runs. */
async function npmStartMs(): Promise<number> {
  const startedMs = performance.now();
  const child = spawn('npm', ['start'], {
    cwd: ROOT,
    env: { ...process.env, PORT: '0', ADMIN_PORT: '0', DRAIN_DELAY: '0s' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  let text = '';
  for await (const chunk of child.stdout) {
    text += String(chunk);
    if (text.includes('One line for each endpoint')) break;
  }
  const tookMs = performance.now() - startedMs;
  child.kill('SIGINT');
  await ended;
  return tookMs;
}

function row(name: string, rest: Omit<Bar, 'name'>): Bar {
  return { name, ...rest };
}
