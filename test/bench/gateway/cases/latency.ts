/** The latency that the gateway adds while it is half busy. */
import { Load } from '../../../support/load.ts';
import { percentile } from '../../../support/percentile.ts';
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, named, reported } from '../case.ts';
import type { BenchRequest } from '../../../support/load.ts';
import { median } from '../measure.ts';
import { startOrigin } from '../node-peers.ts';
import { LIST } from '../paths.ts';
import { ON_OTHER_CORE, stolenTicks } from '../processes.ts';
import type { Server } from '../server.ts';

/** The first requests are not counted: the generator is slow until V8 has compiled it. */
const WARM_UP_MS = 2500;
/** Requests sent later than this are not counted: another program had the generator's core. */
const MAX_LATE_MS = 2;
const UNANSWERED = 0;

interface Latencies {
  readonly unanswered: number;
  /** Ticks of the clock at which the host had taken a core away. */
  readonly stolenTicks: number;
  /** How many requests were sent too late to count. */
  readonly late: number;
  readonly latencyMs: Readonly<Record<(typeof PERCENTILES)[number], number>>;
}

export async function latency(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const key = await gateway.createKey();
  const request = { path: LIST, headers: bearer(key), key };
  const { file: bodyFile } = await bench.bodyOf(gateway, request);
  const origin = bench.keep(await startOrigin(bodyFile));
  const koa = await bench.peer('koa', { bodyFile });
  const fastify = await bench.peer('fastify', { originUrl: origin.url, keys: [key] });
  // Warms all of them up; the peak that counts is the gateway's.
  const peaks = await bench.measure(
    [gateway, koa, fastify].map((server) => ({ name: server.name, server, load: { requests: [request] } })),
  );
  const rate = Math.round(named(peaks, 'evalgate').requestsPerSecond / 2);
  const { rounds, seconds } = bench.effort;
  const runs = [koa, fastify, gateway].map((server) => new Runs(server));
  for (let run = 0; run < MAX_RUNS_PER_ROUND * rounds; run++) {
    for (const one of runs) one.add(await openLoop(one.server, { request, rate, seconds: seconds / RUNS_A_ROUND }));
    if (runs.every(({ quiet }) => quiet.length >= rounds)) break;
  }
  // A peer that falls behind is shown in the table.
  for (const { server, all } of runs) {
    if (server !== fastify && all.some(({ unanswered }) => unanswered > 0))
      throw new Error(`${server.name} left requests unanswered at ${rate} a second`);
  }
  const p99Ms = (name: string): number =>
    runs.find(({ server }) => server.name === name)?.medianMs('p99') ?? Number.NaN;
  const addedMs = p99Ms('evalgate') - p99Ms('koa');
  const perSecond = rate.toLocaleString('en');
  return {
    rows: [
      reported(
        `p99 at half of peak throughput (${perSecond} requests/s), open loop`,
        `${addedMs.toFixed(2)} ms more than Koa at the same rate`,
      ),
    ],
    tables: [
      {
        title: `Open loop, ${perSecond} requests/s`,
        head: [
          'server',
          ...PERCENTILES,
          'never answered',
          'sent late, not counted',
          'runs in which the host took no core away',
        ],
        lines: runs.map((one) => one.line()),
      },
    ],
  };
}

/** Many short runs instead of a few long ones: the host leaves some of them alone. */
const RUNS_A_ROUND = 2;
const MAX_RUNS_PER_ROUND = 4;
const PERCENTILES = ['p50', 'p90', 'p99'] as const;

class Runs {
  readonly server: Server;
  readonly all: Latencies[] = [];

  constructor(server: Server) {
    this.server = server;
  }

  get quiet(): readonly Latencies[] {
    return this.all.filter((run) => run.stolenTicks === 0);
  }

  add(run: Latencies): void {
    this.all.push(run);
  }

  /** Taken from the quiet runs, or from all if none was quiet. */
  medianMs(which: (typeof PERCENTILES)[number]): number {
    const runs = this.quiet.length > 0 ? this.quiet : this.all;
    return median(runs.map(({ latencyMs }) => latencyMs[which]));
  }

  line(): readonly string[] {
    const sum = (which: 'unanswered' | 'late'): string =>
      this.all.reduce((total, run) => total + run[which], 0).toLocaleString('en');
    return [
      this.server.name,
      ...PERCENTILES.map((which) => `${this.medianMs(which).toFixed(2)} ms`),
      sum('unanswered'),
      sum('late'),
      `${this.quiet.length} of ${this.all.length}`,
    ];
  }
}

interface Open {
  readonly request: BenchRequest & { readonly key: string };
  readonly rate: number;
  readonly seconds: number;
}

async function openLoop(server: Server, { request, rate, seconds }: Open): Promise<Latencies> {
  // It never sleeps, so that nothing is sent late: Redis, on the same core, goes before it at once, as it does before
  // nothing but what is idle.
  const load = await Load.start({ through: [...ON_OTHER_CORE, 'chrt', '--idle', '0'], isSpinning: true });
  try {
    const targets = [{ url: server.url + request.path, key: request.key }];
    await load.run(targets, { perSecond: rate, forMs: WARM_UP_MS });
    const stolenBefore = stolenTicks();
    const samples = await load.run(targets, { perSecond: rate, forMs: seconds * 1000 });
    const stolen = stolenTicks() - stolenBefore;
    const others = samples.filter(({ status }) => status !== 200 && status !== UNANSWERED);
    if (others.length > 0) throw new Error(`${server.name} answered with something else: ${others[0]?.status}`);
    const counted = samples.filter(({ status, lateMs }) => status === 200 && lateMs <= MAX_LATE_MS);
    const tookMs = counted.map((one) => one.tookMs);
    return {
      unanswered: samples.filter(({ status }) => status === UNANSWERED).length,
      stolenTicks: stolen,
      late: samples.filter(({ lateMs }) => lateMs > MAX_LATE_MS).length,
      latencyMs: { p50: percentile(tookMs, 0.5), p90: percentile(tookMs, 0.9), p99: percentile(tookMs, 0.99) },
    };
  } finally {
    await load.close();
  }
}
