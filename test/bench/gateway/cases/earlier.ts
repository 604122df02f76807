/**
 * Hits and misses beside 0.3 in one run: each version has a Redis of its own, both stand in front of one store. It needs a
 * checkout of 0.3 with its packages:
 *
 *     git worktree add ../evalgate-0.3 a5d8bad8 && (cd ../evalgate-0.3 && npm ci)
 *     EVALGATE_0_3=$PWD/../evalgate-0.3 npm run bench -- --only earlier
 */
import { join } from 'node:path';
import { type BenchRequest, Load } from '../../../support/load.ts';
import { percentile } from '../../../support/percentile.ts';
import { PROGRAM } from '../../../support/process.ts';
import { withClient } from '../../../support/redis/client.ts';
import { bearer, type Bench } from '../bench.ts';
import { type CaseResult, comparison, ratioRow, reported, type Table } from '../case.ts';
import type { Evalgate } from '../evalgate.ts';
import { load } from '../load.ts';
import type { Effort } from '../measure.ts';
import { LIST, NEVER_SEEN, SINGLE, UNSEEN_LIST } from '../paths.ts';
import { ON_OTHER_CORE } from '../processes.ts';

const LATENCY_PER_SECOND = 100;
/** As in 0.3: with a limit that is found, the two would not ask the store for as much at once. */
const FIXED_LIMIT = 'upstream:\n  adaptive: false\n';

interface Read {
  readonly name: string;
  readonly path: string;
  /** The CPU time that this version may take, as a multiple of 0.3's. */
  readonly most: number;
}

const READS: readonly Read[] = [
  { name: 'hit, list', path: LIST, most: 1.05 },
  { name: 'hit, one call', path: SINGLE, most: 1.05 },
  { name: 'cold miss, one call', path: NEVER_SEEN, most: 1 },
  { name: 'cold miss, list of 8', path: UNSEEN_LIST, most: 1 },
];

interface Version {
  readonly name: string;
  readonly server: Evalgate;
  readonly key: string;
  readonly redisUrl: string;
}

export async function earlier(bench: Bench): Promise<CaseResult> {
  const checkout = process.env['EVALGATE_0_3'];
  if (checkout === undefined) return { rows: [reported('beside 0.3', 'not measured: no EVALGATE_0_3')], tables: [] };
  const versions = [
    await start(bench, '0.3', { program: join(checkout, 'src/cli/evalgate.js') }),
    await start(bench, 'now', { program: PROGRAM, file: FIXED_LIMIT }),
  ];
  const results: CaseResult[] = [];
  for (const read of READS) results.push(await compare(bench, read, versions));
  return { rows: results.flatMap(({ rows }) => rows), tables: results.flatMap(({ tables }) => tables) };
}

async function start(
  bench: Bench,
  name: string,
  how: { readonly program: string; readonly file?: string },
): Promise<Version> {
  const { url: redisUrl } = await bench.startRedis();
  const server = await bench.evalgate({ ...how, redisUrl });
  return { name, server, redisUrl, key: await server.createKey() };
}

async function compare(bench: Bench, { name, path, most }: Read, versions: readonly Version[]): Promise<CaseResult> {
  const subjects = versions.map((one) => ({
    name: one.name,
    server: one.server,
    load: { requests: [requestOf(path, one)] },
  }));
  const measured = await bench.measure(subjects);
  const [before, now] = measured;
  if (before === undefined || now === undefined) throw new Error('both versions are needed');
  return {
    rows: [ratioRow(`${name}, CPU`, [now, before], most)],
    tables: [
      comparison(`${name}: 32 connections`, measured),
      await latencies(`${name}: ${LATENCY_PER_SECOND} requests/s, latency`, path, versions, bench.effort),
      await redisCosts(`${name}: work of Redis per request`, path, versions, bench.effort),
    ],
  };
}

function requestOf(path: string, { key }: Version): BenchRequest {
  return { path, headers: bearer(key) };
}

/** Hardly any request meets another: the time is that of the work and of the trips that follow one another. */
async function latencies(
  title: string,
  path: string,
  versions: readonly Version[],
  { rounds, seconds }: Effort,
): Promise<Table> {
  const tookMs = versions.map((): number[] => []);
  const generator = await Load.start({ through: [...ON_OTHER_CORE, 'chrt', '--idle', '0'], isSpinning: true });
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, { server, key }] of versions.entries()) {
        const rate = { perSecond: LATENCY_PER_SECOND, forMs: (seconds * 1000) / 2 };
        const samples = await generator.run([{ url: server.url + path, key }], rate);
        if (samples.some(({ status }) => status !== 200)) throw new Error(`${path} was not always answered with 200`);
        tookMs[index]?.push(...samples.map((one) => one.tookMs));
      }
    }
  } finally {
    await generator.close();
  }
  return {
    title,
    head: ['version', 'requests', 'p50', 'p90', 'p99'],
    lines: versions.map(({ name }, index) => {
      const times = tookMs[index] ?? [];
      return [
        name,
        String(times.length),
        ...[0.5, 0.9, 0.99].map((part) => `${percentile(times, part).toFixed(2)} ms`),
      ];
    }),
  };
}

async function redisCosts(
  title: string,
  path: string,
  versions: readonly Version[],
  { seconds }: Effort,
): Promise<Table> {
  const lines: string[][] = [];
  for (const version of versions) {
    const before = await redisWork(version.redisUrl);
    const { requests } = await load(version.server, { requests: [requestOf(path, version)], seconds });
    const after = await redisWork(version.redisUrl);
    const commands = [...after.calls]
      .map(([command, calls]) => ({ command, each: (calls - (before.calls.get(command) ?? 0)) / requests }))
      .filter(({ each }) => each >= 0.05)
      .toSorted((a, b) => b.each - a.each);
    const sent = commands
      .filter(({ command }) => command.startsWith('evalsha'))
      .reduce((sum, one) => sum + one.each, 0);
    const all = commands.map(({ command, each }) => `${each.toFixed(1)} ${command}`).join(', ');
    const micros = ((after.cpuSeconds - before.cpuSeconds) * 1e6) / requests;
    lines.push([version.name, `${micros.toFixed(1)} µs`, sent.toFixed(1), all]);
  }
  return { title, head: ['version', 'CPU', 'scripts', 'commands, those within scripts included'], lines };
}

async function redisWork(url: string) {
  const text = await withClient(
    url,
    async (client) => (await client.info('commandstats')) + (await client.info('cpu')),
  );
  const calls = new Map([...text.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)].map(([, name = '', n]) => [name, Number(n)]));
  const cpuSeconds = ['user', 'sys'].reduce(
    (sum, mode) => sum + Number(new RegExp(`used_cpu_${mode}:([\\d.]+)`).exec(text)?.[1] ?? Number.NaN),
    0,
  );
  return { calls, cpuSeconds };
}
