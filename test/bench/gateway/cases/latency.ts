/** What the gateway adds to the time of an answer while it is half busy. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, KOA_MICROS_THERE, micros, named } from '../case.ts';
import { type BenchRequest, CONNECTIONS } from '../load.ts';
import { median } from '../measure.ts';
import { startOrigin } from '../node-peers.ts';
import { LIST } from '../paths.ts';
import { firstDocument, launch, OTHER_CORE } from '../processes.ts';
import type { Server } from '../server.ts';

const DRIVER = fileURLToPath(new URL('../open-loop.ts', import.meta.url));
const MOST_ADDED_MS = 1;
const MOST_ADDED_RATIO = (1000 * MOST_ADDED_MS) / KOA_MICROS_THERE;
const latenciesSchema = z.object({
  /** That were answered. */
  requests: z.number(),
  /** In the seconds after the last was sent. */
  unanswered: z.number(),
  /** Ticks of the clock at which the host had taken a core away. */
  stolenTicks: z.number(),
  /** How often something else had the client's core for over 2 ms. */
  timesHeldUp: z.number(),
  statuses: z.record(z.string(), z.number()),
  latencyMs: z.object({ p50: z.number(), p90: z.number(), p99: z.number(), max: z.number() }),
});
type Latencies = z.output<typeof latenciesSchema>;

export async function latency(bench: Bench): Promise<CaseResult> {
  const gateway = await bench.evalgate();
  const key = await gateway.createKey();
  const request: BenchRequest = { path: LIST, headers: bearer(key) };
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
  for (let run = 0; run < MOST_RUNS_A_ROUND * rounds; run++) {
    for (const one of runs) one.add(await openLoop(one.server, { request, rate, seconds: seconds / RUNS_A_ROUND }));
    if (runs.every(({ quiet }) => quiet.length >= rounds)) break;
  }
  // Of a peer that falls behind, the table tells.
  for (const { server, all } of runs) {
    if (server !== fastify && all.some(({ unanswered }) => unanswered > 0))
      throw new Error(`${server.name} left requests unanswered at ${rate} a second`);
  }
  const p99Ms = (name: string): number =>
    runs.find(({ server }) => server.name === name)?.medianMs('p99') ?? Number.NaN;
  const addedMs = p99Ms('evalgate') - p99Ms('koa');
  const koaPeak = named(peaks, 'koa');
  const ratio = (1000 * addedMs) / koaPeak.cpuMicros;
  const perSecond = rate.toLocaleString('en');
  return {
    rows: [
      {
        name: `p99 at half of peak throughput (${perSecond} requests/s), open loop`,
        bar: `at most ${MOST_ADDED_MS} ms more than Koa at the same rate, where that takes ${KOA_MICROS_THERE} µs for a hot list: ${MOST_ADDED_RATIO} ×`,
        measured: `${addedMs.toFixed(2)} ms more, Koa takes ${micros(koaPeak)}: ${ratio.toFixed(1)} ×`,
        ok: ratio <= MOST_ADDED_RATIO,
      },
    ],
    tables: [
      {
        title: `Open loop, ${perSecond} requests/s`,
        head: [
          'server',
          ...PERCENTILES,
          'never answered',
          'times its client was held up',
          'runs in which the host took no core away',
        ],
        lines: runs.map((one) => one.line()),
      },
    ],
  };
}

/** Many short runs instead of a few long ones: the host leaves some of them alone. */
const RUNS_A_ROUND = 2;
const MOST_RUNS_A_ROUND = 4;
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

  /** Of the quiet runs, and of all where there is none. */
  medianMs(which: (typeof PERCENTILES)[number]): number {
    const runs = this.quiet.length > 0 ? this.quiet : this.all;
    return median(runs.map(({ latencyMs }) => latencyMs[which]));
  }

  line(): readonly string[] {
    const sum = (which: 'unanswered' | 'timesHeldUp'): string =>
      this.all.reduce((total, run) => total + run[which], 0).toLocaleString('en');
    return [
      this.server.name,
      ...PERCENTILES.map((which) => `${this.medianMs(which).toFixed(2)} ms`),
      sum('unanswered'),
      sum('timesHeldUp'),
      `${this.quiet.length} of ${this.all.length}`,
    ];
  }
}

interface Open {
  readonly request: BenchRequest;
  readonly rate: number;
  readonly seconds: number;
}

async function openLoop(server: Server, { request, rate, seconds }: Open): Promise<Latencies> {
  const options = JSON.stringify({ url: server.url, ...request, connections: CONNECTIONS, seconds, rate });
  // It never sleeps, so that nothing is sent late: Redis, on the same core, goes before it at once, as it does before
  // nothing but what is idle.
  const command = ['chrt', '--idle', '0', process.execPath, DRIVER];
  const driver = launch({ core: OTHER_CORE, command, env: { OPTIONS: options } });
  const found = await firstDocument(driver.child, latenciesSchema);
  if (found.statuses['200'] !== found.requests) {
    throw new Error(`${server.name} answered with something else: ${JSON.stringify(found)}`);
  }
  return found;
}
