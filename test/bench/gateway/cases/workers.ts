/** The work of several processes. */
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, named, ratioRow } from '../case.ts';
import { CONNECTIONS, load } from '../load.ts';
import { LIST } from '../paths.ts';
import { childrenOf, cpuNanos } from '../processes.ts';

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
      {
        name: 'WORKERS=2, shares',
        bar: 'each worker does 30 % of the work at least',
        measured: `${shares.join(' % and ')} %`,
        ok: shares.length === 2 && Math.min(...shares) >= 30,
      },
    ],
    tables: [comparison('Hot list, one process and two workers on one core, 32 connections to each', measured)],
  };
}
