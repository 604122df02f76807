/** The memory of the packed program: before its first request, under load, and over time. Linux only, by /proc. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { installPacked } from '../../../support/packed.ts';
import type { BenchRequest } from '../../../support/load.ts';
import { bearer, type Bench } from '../bench.ts';
import type { CaseResult, Table } from '../case.ts';
import type { Evalgate } from '../evalgate.ts';
import { load } from '../load.ts';
import { median } from '../measure.ts';
import { LIST, NEVER_SEEN, SINGLE, TRANSCRIPT_PAGE } from '../paths.ts';
import { residentBytes } from '../processes.ts';

const MEGABYTE = 1_000_000;
const MAX_IDLE_MB = 95;
const MAX_LOADED_MB = 180;
const READS_PER_SECOND = 100;
const CACHE_MB = 20;
const ROUNDS = 10;
/** Until all that a start asks for has been asked. */
const START_MS = 5000;

/**
 * Mixed load, much of it on records that were never seen, so that the memory tier is full long before the end: for half of
 * the time at the rate of the bar, then as much as the gateway takes.
 */
export async function memory(bench: Bench): Promise<CaseResult> {
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-bench-packed-'));
  try {
    const { program } = await installPacked(folder);
    const gateway = await bench.evalgate({ program, file: `cache:\n  memory: ${CACHE_MB}MB\n` });
    await sleep(START_MS);
    const idleMb = residentMb(gateway);
    const table = await partsOf(gateway);
    const seconds = bench.effort.memorySeconds / 2 / ROUNDS;
    const atRate = await watch(gateway, { seconds, rate: READS_PER_SECOND });
    const atMost = await watch(gateway, { seconds });
    const half = Math.floor(ROUNDS / 2);
    const grownMb = median(atMost.slice(half)) - median(atMost.slice(1, half));
    return {
      rows: [
        {
          name: 'memory, before the first request, with Redis',
          bar: `at most ${MAX_IDLE_MB} MB`,
          measured: `${Math.round(idleMb)} MB resident`,
          ok: idleMb <= MAX_IDLE_MB,
        },
        {
          name: `memory at ${READS_PER_SECOND} reads/s, ${CACHE_MB} MB of cache`,
          bar: `at most ${MAX_LOADED_MB} MB`,
          measured: `${atRate.map(Math.round).join(', ')} MB`,
          ok: Math.max(...atRate) <= MAX_LOADED_MB,
        },
        {
          name: `memory over ${Math.round(bench.effort.memorySeconds / 2)} s of all the load it takes`,
          bar: 'flat: the later half at most 5 % above the earlier',
          measured: `${atMost.map(Math.round).join(', ')} MB`,
          ok: grownMb <= 0.05 * median(atMost),
        },
      ],
      tables: [table],
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resident memory after each round, in megabytes. */
async function watch(
  gateway: Evalgate,
  { seconds, rate }: { readonly seconds: number; readonly rate?: number },
): Promise<readonly number[]> {
  const headers = bearer(await gateway.createKey());
  const requests: BenchRequest[] = [LIST, SINGLE, TRANSCRIPT_PAGE, NEVER_SEEN].map((path) => ({ path, headers }));
  const afterMb: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await load(gateway, { requests, seconds, ...(rate === undefined ? {} : { rate }) });
    afterMb.push(residentMb(gateway));
  }
  return afterMb;
}

function residentMb(gateway: Evalgate): number {
  return residentBytes(gateway.pid) / MEGABYTE;
}

/** Where the resident memory is: by the system, and by V8's own count of its heap. */
async function partsOf({ pid, adminUrl }: Evalgate): Promise<Table> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
  const fileMb = (1024 * kilobytes('RssFile')) / MEGABYTE;
  const anonymousMb = (1024 * kilobytes('RssAnon')) / MEGABYTE;
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  const mbOf = (sample: string): number => {
    const line = metrics.split('\n').find((one) => one.startsWith(`${sample} `));
    return Number(line?.slice(sample.length) ?? Number.NaN) / MEGABYTE;
  };
  const spaces = ['old', 'large_object', 'code', 'trusted', 'new'].map((space) => {
    return [space, mbOf(`nodejs_heap_space_size_used_bytes{space="${space}"}`)] as const;
  });
  const externalMb = mbOf('nodejs_external_memory_bytes');
  const knownMb = spaces.reduce((sum, [, mb]) => sum + mb, externalMb);
  const lines: readonly (readonly [string, number])[] = [
    ['files that are mapped: Node.js itself and its libraries', fileMb],
    ...spaces.map(([space, mb]) => [`V8, in use in the space "${space}"`, mb] as const),
    ['external: buffers, and the texts of modules', externalMb],
    ['the rest: unused room of V8, above all of its young generation, TLS, threads', anonymousMb - knownMb],
  ];
  return {
    title: 'Memory before the first request',
    head: ['where', 'MB'],
    lines: [...lines, ['in all', fileMb + anonymousMb] as const].map(([where, mb]) => [where, mb.toFixed(1)]),
  };
}
