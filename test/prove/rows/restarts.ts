/** Orderly restarts lose no request, and a crash of one worker only those that it was at. */
import { Closers } from '../../support/faults-world.ts';
import { rollingRestarts, workerCrashes } from '../../support/restarts.ts';
import { count, ms, percentile, type Row, type Scale } from '../row.ts';

/** A machine that does other things too starts a gateway in a second or two. */
const REPLACED_WITHIN_MS = 10_000;

export async function run(scale: Scale): Promise<readonly Row[]> {
  return [await restarts(scale === 'whole' ? 20 : 2), await crashes(scale === 'whole' ? 20 : 2)];
}

async function restarts(times: number): Promise<Row> {
  const { requests, failed, reasons, ends } = await closing((closers) => rollingRestarts(times, closers));
  const statuses = [...new Set(ends)].join(', ');
  return {
    name: 'rolling restarts',
    bar: `${times} restarts by SIGTERM in turn of two gateways behind a balancer that goes by /readyz and tries nothing twice, 200 requests/s by keep-alive clients: no failed request, every exit status 0`,
    measured: `${count(requests)} requests, ${failed.length} failed${because(reasons)}; exit status ${statuses}`,
    ok: failed.length === 0 && ends.length === times && ends.every((end) => end === 0),
  };
}

async function crashes(times: number): Promise<Row> {
  const { requests, failed, unexplained, kills, goneMs, replacedMs } = await closing((closers) =>
    workerCrashes(times, closers),
  );
  const slowestMs = percentile(replacedMs, 1);
  return {
    name: 'worker crashes',
    bar: `WORKERS=2, 200 requests/s by keep-alive clients, one worker killed (SIGKILL) ${times} times: only requests under way between a kill and the process's end fail, each worker replaced`,
    measured: `${count(requests)} requests, ${failed.length} failed, ${unexplained.length} of them not under way at one of ${kills} kills; gone after ${ms(percentile(goneMs, 0.5))}, at most ${ms(percentile(goneMs, 1))}; replaced after ${ms(percentile(replacedMs, 0.5))}, at most ${ms(slowestMs)}`,
    ok: unexplained.length === 0 && replacedMs.length === times && slowestMs <= REPLACED_WITHIN_MS,
  };
}

function because(reasons: readonly string[]): string {
  return reasons.length === 0 ? '' : ` (${[...new Set(reasons)].slice(0, 3).join('; ')})`;
}

async function closing<R>(use: (closers: Closers) => Promise<R>): Promise<R> {
  const closers = new Closers();
  try {
    return await use(closers);
  } finally {
    await closers.close();
  }
}
