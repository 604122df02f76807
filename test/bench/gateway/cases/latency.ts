/** What the gateway adds to the time of an answer while it is half busy. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { bearer, type Bench } from '../bench.ts';
import type { CaseResult } from '../case.ts';
import { type BenchRequest, CONNECTIONS } from '../load.ts';
import { median } from '../measure.ts';
import { LIST } from '../paths.ts';
import { firstDocument, launch, OTHER_CORE } from '../processes.ts';
import type { Server } from '../server.ts';

const DRIVER = fileURLToPath(new URL('../open-loop.ts', import.meta.url));
const MOST_ADDED_MS = 1;
const latenciesSchema = z.object({
  requests: z.number(),
  errors: z.number(),
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
  const request: BenchRequest = { path: LIST, headers: bearer(await gateway.createKey()) };
  const { file } = await bench.bodyOf(gateway, request);
  const koa = await bench.peer('koa', { bodyFile: file });
  const [peak] = await bench.measure([{ name: 'evalgate', server: gateway, load: { requests: [request] } }]);
  const rate = Math.round((peak?.requestsPerSecond ?? 0) / 2);
  const runs = { koa: new Runs(), evalgate: new Runs() };
  const { rounds, seconds } = bench.effort;
  const open = { request, rate, seconds: seconds / RUNS_A_ROUND };
  for (let run = 0; run < MOST_RUNS_A_ROUND * rounds; run++) {
    runs.koa.add(await openLoop(koa, open));
    runs.evalgate.add(await openLoop(gateway, open));
    if (runs.koa.quiet.length >= rounds && runs.evalgate.quiet.length >= rounds) break;
  }
  const addedMs = runs.evalgate.medianMs('p99') - runs.koa.medianMs('p99');
  const line = (name: 'koa' | 'evalgate'): readonly string[] => [
    name,
    ...PERCENTILES.map((which) => `${runs[name].medianMs(which).toFixed(2)} ms`),
    String(runs[name].timesHeldUp),
    `${runs[name].quiet.length} of ${runs[name].all.length}`,
  ];
  const perSecond = rate.toLocaleString('en');
  return {
    rows: [
      {
        name: `p99 at half of peak throughput (${perSecond} requests/s), open loop`,
        bar: `at most ${MOST_ADDED_MS} ms more than koa at the same rate`,
        measured: `${addedMs.toFixed(2)} ms more`,
        ok: addedMs <= MOST_ADDED_MS,
      },
    ],
    tables: [
      {
        title: `Open loop, ${perSecond} requests/s`,
        head: ['server', ...PERCENTILES, 'times its client was held up', 'runs in which the host took no core away'],
        lines: [line('koa'), line('evalgate')],
      },
    ],
  };
}

/** Many short runs instead of a few long ones: the host leaves some of them alone. */
const RUNS_A_ROUND = 2;
const MOST_RUNS_A_ROUND = 4;
const PERCENTILES = ['p50', 'p90', 'p99'] as const;

class Runs {
  readonly all: Latencies[] = [];

  get quiet(): readonly Latencies[] {
    return this.all.filter((run) => run.stolenTicks === 0);
  }

  get timesHeldUp(): number {
    return this.all.reduce((sum, run) => sum + run.timesHeldUp, 0);
  }

  add(run: Latencies): void {
    this.all.push(run);
  }

  /** Of the quiet runs, and of all where there is none. */
  medianMs(which: (typeof PERCENTILES)[number]): number {
    const runs = this.quiet.length > 0 ? this.quiet : this.all;
    return median(runs.map(({ latencyMs }) => latencyMs[which]));
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
  if (found.errors > 0 || found.statuses['200'] !== found.requests) {
    throw new Error(`${server.name} left requests unanswered: ${JSON.stringify(found)}`);
  }
  return found;
}
