/** Whether the what-if curves of a fleet are those of one process that sees all reads, and what that costs. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hash32 } from '../../../src/cache/hash.ts';
import { AdjustableTimes } from '../../../src/cache/times.ts';
import { adviceOf } from '../../../src/cache/what-if/advice.ts';
import { WhatIfModel } from '../../../src/cache/what-if/model.ts';
import { OUTDATED_LIMITS } from '../../support/insight.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startRedis } from '../../support/redis.ts';
import { listAdviceSchema, readsSchema, type WhatIfCommand } from '../../support/what-if-commands.ts';
import { WorkerProcess } from '../../support/worker-calls.ts';
import { count, ms, type Row, scaled, type Scale, slackMs } from '../row.ts';

const WORKER = join(import.meta.dirname, '../../support/what-if-worker.ts');
const PROCESSES = 4;
const PER_SECOND = 2000;
const GIVE_UP_MS = 10_000;

type Curve = readonly { readonly freshMs: number; readonly hitRatio: number }[];

export async function run(scale: Scale): Promise<readonly Row[]> {
  const durationMs = scaled(scale, 30_000);
  const redis = await startRedis();
  const workers: WorkerProcess[] = [];
  try {
    for (let index = 0; index < PROCESSES; index += 1) workers.push(await WorkerProcess.start(WORKER, redis.url));
    const all = (command: WhatIfCommand): Promise<unknown[]> =>
      Promise.all(workers.map((worker) => worker.call(command)));
    await all({ name: 'know', processes: PROCESSES });
    const bare = await traffic(workers, durationMs, false);
    const watched = await traffic(workers, durationMs, true);
    const reads = watched.flatMap((one) => one.reads);
    const { knownMs, curves } = await known(reads.length, async () =>
      (await all({ name: 'advice' })).map((one) => listAdviceSchema.parse(one)),
    );
    const cpuMs = cpuOf(watched) - cpuOf(bare);
    return [
      curvesRow({ reads, curves, knownMs, allowedMs: 2000 + slackMs(scale) }),
      costRow(cpuMs / PROCESSES / durationMs, scale),
    ];
  } finally {
    await Promise.all(workers.map((worker) => worker.kill()));
    await redis.close();
  }
}

async function traffic(workers: readonly WorkerProcess[], durationMs: number, isWatched: boolean) {
  const read = { name: 'read', durationMs, perSecond: PER_SECOND, isWatched } as const;
  const done = await Promise.all(workers.map((worker, index) => worker.call({ ...read, seed: index + 1 })));
  return done.map((one) => readsSchema.parse(one));
}

function cpuOf(done: readonly { readonly cpuMs: number }[]): number {
  return done.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
}

/** How long after the last read all processes knew of all of them, and what they say then. */
async function known(
  reads: number,
  ask: () => Promise<readonly { readonly reads: number; readonly curve: Curve }[]>,
): Promise<{ readonly knownMs: number; readonly curves: readonly Curve[] }> {
  const sinceMs = performance.now();
  for (;;) {
    const said = await ask();
    const knownMs = performance.now() - sinceMs;
    if (knownMs > GIVE_UP_MS || said.every((one) => Math.abs(one.reads - reads) < 1)) {
      return { knownMs, curves: said.map(({ curve }) => curve) };
    }
    await sleep(10);
  }
}

function curvesRow(parts: {
  readonly reads: readonly (readonly [key: string, atMs: number])[];
  readonly curves: readonly Curve[];
  readonly knownMs: number;
  readonly allowedMs: number;
}): Row {
  const { reads, curves, knownMs, allowedMs } = parts;
  const exact = curveOfOne(reads);
  const errors = curves.flatMap((curve) =>
    exact.map(({ hitRatio }, index) => Math.abs((curve[index]?.hitRatio ?? Number.NaN) - hitRatio)),
  );
  const points = 100 * Math.max(...errors);
  return {
    name: 'what-if, fleet',
    bar: `${PROCESSES} processes, each ${count(PER_SECOND)} reads/s of the same keys: all of them say the same as one that sees all reads, within 1 point of hit ratio, at most ${ms(allowedMs)} old`,
    measured: `${count(reads.length)} reads, ${exact.length} times: at most ${points.toFixed(2)} points; all was known everywhere ${ms(knownMs)} after the last read`,
    ok: points <= 1 && knownMs <= allowedMs,
  };
}

/** As one process would say that sees all reads in order. */
function curveOfOne(reads: readonly (readonly [key: string, atMs: number])[]): Curve {
  const inOrder = reads.toSorted(([, a], [, b]) => a - b);
  const clock = new ManualClock(inOrder[0]?.[1] ?? 0);
  const times = new AdjustableTimes();
  const model = new WhatIfModel({ clock, times });
  for (const [key, atMs] of inOrder) {
    clock.advance(atMs - clock.nowMs());
    model.read('list', hash32(key), atMs);
  }
  const options = { times, outdatedLimits: OUTDATED_LIMITS, nowMs: clock.nowMs() };
  return adviceOf([model.snapshot()], options).find((advice) => advice.class === 'list')?.curve ?? [];
}

function costRow(share: number, scale: Scale): Row {
  const allowed = scale === 'whole' ? 0.02 : 0.15;
  return {
    name: 'what-if, fleet, cost',
    bar: `at ${count(PER_SECOND)} reads/s a process, with the exchange of ${PROCESSES}: at most ${(allowed * 100).toFixed(0)} % of a CPU`,
    measured: `${(share * 100).toFixed(2)} %`,
    ok: share <= allowed,
  };
}
