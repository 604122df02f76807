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
  const rounds: { readonly koa: Latencies; readonly evalgate: Latencies }[] = [];
  for (let round = 0; round < bench.effort.rounds; round++) {
    rounds.push({
      koa: await openLoop(koa, { request, rate, seconds: bench.effort.seconds }),
      evalgate: await openLoop(gateway, { request, rate, seconds: bench.effort.seconds }),
    });
  }
  const addedMs = median(rounds.map((round) => round.evalgate.latencyMs.p99 - round.koa.latencyMs.p99));
  const line = (name: 'koa' | 'evalgate'): readonly string[] => [
    name,
    ...(['p50', 'p90', 'p99'] as const).map(
      (which) => `${median(rounds.map((round) => round[name].latencyMs[which])).toFixed(2)} ms`,
    ),
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
        head: ['server', 'p50', 'p90', 'p99'],
        lines: [line('koa'), line('evalgate')],
      },
    ],
  };
}

interface Open {
  readonly request: BenchRequest;
  readonly rate: number;
  readonly seconds: number;
}

async function openLoop(server: Server, { request, rate, seconds }: Open): Promise<Latencies> {
  const options = JSON.stringify({ url: server.url, ...request, connections: CONNECTIONS, seconds, rate });
  // It never sleeps, so that nothing is sent late: Redis, on the same core, goes before it.
  const command = ['nice', '-n', '10', process.execPath, DRIVER];
  const driver = launch({ core: OTHER_CORE, command, env: { OPTIONS: options } });
  const found = await firstDocument(driver.child, latenciesSchema);
  if (found.errors > 0 || found.statuses['200'] !== found.requests) {
    throw new Error(`${server.name} left requests unanswered: ${JSON.stringify(found)}`);
  }
  return found;
}
