/**
 * The case `capacity` of the benchmark: what a fleet of real gateways costs at fixed rates, how each part of that grows,
 * and what follows for fleets of other sizes. It prints the tables of docs/capacity.md.
 */
import type { Bench } from './gateway/bench.ts';
import type { CaseResult, Table } from './gateway/case.ts';
import { SERVER_CORE } from './gateway/processes.ts';
import { asPrinted, coefficientsTable } from './capacity-coefficients.ts';
import { Fleet, type Point } from './capacity-fleet.ts';
import { HOUR_REQUESTS, KEYS } from './capacity-mix.ts';
import * as telling from './capacity-messages.ts';
import * as parts from './capacity-parts.ts';
import { planTables } from './capacity-plan-tables.ts';
import { usedBytes } from './capacity-readings.ts';
import { logLineBytes, type Told, toldBy } from './capacity-single.ts';
import { type Fleets, measuredCoefficients, type Measurements, type Parts } from './capacity-sums.ts';
import { measuredRows, measuredTables } from './capacity-tables.ts';
import { importKeys, keepOnDisk, openCluster, openRedisServer, openStore, prefillLogs } from './capacity-world.ts';

interface Series {
  readonly gateways: number;
  readonly listFresh: string;
  readonly memory?: string;
  /** Requests a second of each. */
  readonly rates: readonly number[];
}

/** What is measured. */
export interface Plan {
  readonly series: readonly Series[];
  /** Of each of four gateways whose state is in a Cluster. */
  readonly clusterRate: number;
}

/**
 * Lists that are fresh for 3 s make ten times the fills, and without a memory tier every read is one from Redis: what those
 * cost can then be told from the rest.
 */
const PLAN: Plan = {
  // None comes last: what expires while nobody asks would be fetched all at once in the next point.
  series: [
    { gateways: 1, listFresh: '30s', rates: [500, 2000, 6000, 0] },
    { gateways: 2, listFresh: '30s', rates: [500, 2000, 0] },
    { gateways: 4, listFresh: '30s', rates: [500, 1000, 2000, 0] },
    { gateways: 1, listFresh: '30s', memory: '0B', rates: [250, 500] },
    { gateways: 1, listFresh: '3s', rates: [250, 500] },
    { gateways: 4, listFresh: '3s', rates: [100, 200] },
  ],
  clusterRate: 1000,
};
const CLUSTER_GATEWAYS = 4;
const MOST_WARM_UP_RATE = 1000;
const SECONDS_A_ROUND = 10;
const PART_SECONDS = 3;

export async function capacity(bench: Bench, plan = PLAN): Promise<CaseResult> {
  const seconds = SECONDS_A_ROUND * bench.effort.rounds;
  const measurements: Measurements = {
    logLineBytes: await logLineBytes(),
    parts: await measureParts(bench),
    ...(await measureFleets(bench, plan.series, seconds)),
    cluster: await measureOnCluster(bench, plan.clusterRate, seconds),
  };
  const { coefficients, fits } = measuredCoefficients(measurements);
  const printed = asPrinted(coefficients);
  const tables: Table[] = [...measuredTables(measurements, fits), coefficientsTable(printed), ...planTables(printed)];
  return { rows: measuredRows(measurements, fits), tables };
}

/** On the gateways' core, which is free: a Redis that has it for itself. */
async function measureParts(bench: Bench): Promise<Parts> {
  const redis = await openRedisServer(bench, SERVER_CORE);
  const { tokens, bytes: keysBytes } = await importKeys(redis);
  const logsBytes = await prefillLogs(redis);
  await keepOnDisk(redis);
  const keyIds = tokens.map((_, key) => `key_${key}`);
  const single = {
    keyBytes: keysBytes / KEYS,
    bytesOfALog: logsBytes / KEYS,
    quotaCalls: await parts.quotaCalls(redis, keyIds, PART_SECONDS),
    hotKeys: await inTurn(HOT_KEYS, ([logLength, requests]) =>
      parts.hotKey(redis, { logLength, requests }, PART_SECONDS),
    ),
    keyLookup: await parts.keyLookup(redis, tokens, PART_SECONDS),
    keyUse: await parts.keyUse(redis, tokens, PART_SECONDS),
    logBytes: await parts.logBytes(redis, LOG_LENGTHS),
    messages: await telling.messages(redis, LISTENERS, PART_SECONDS),
    heartbeats: await inTurn(MEMBERS, (members) => telling.heartbeat(redis, members, PART_SECONDS)),
  };
  await bench.stopServers();
  const clusterMessages = await inTurn(CLUSTER_NODES, async (nodes) => {
    const message = await telling.clusterMessage(await openCluster(bench, nodes), PART_SECONDS);
    await bench.stopServers();
    return message;
  });
  return { ...single, clusterMessages };
}

const LOG_LENGTHS = [100, 1000, 10_000, 100_000];
const LISTENERS = [1, 10, 50, 200];
const MEMBERS = [2, 50, 200, 1000];
const CLUSTER_NODES = [3, 6];
const HOT_KEYS: readonly (readonly [logLength: number, requests: number])[] = [
  [HOUR_REQUESTS, 1],
  [HOUR_REQUESTS, 30],
  [100_000, 1],
  [1_000_000, 1],
  [1_000_000, 100],
  [10_000_000, 1],
];

async function measureFleets(bench: Bench, series: readonly Series[], seconds: number): Promise<Fleets> {
  const store = await openStore(bench);
  const state = await openRedisServer(bench);
  const cache = await openRedisServer(bench);
  const { tokens: keys } = await importKeys(state);
  await prefillLogs(state);
  await keepOnDisk(state);
  const points: Point[] = [];
  let told: Told | null = null;
  const emptyBytes = await usedBytes(cache.nodes);
  for (const { rates, ...of } of series) {
    const warmUpRate = Math.min(MOST_WARM_UP_RATE, ...rates.slice(-1));
    const fleet = await Fleet.start(bench, { ...of, warmUpRate, state, cache, store, keys });
    for (const rate of rates) {
      const point = await fleet.measure(rate, seconds);
      say(point);
      points.push(point);
    }
    told = await fleet.told(toldBy);
    await fleet.stop();
  }
  if (told === null) throw new Error('no fleet was measured');
  const cacheEntryBytes = ((await usedBytes(cache.nodes)) - emptyBytes) / (await cache.client.dbsize());
  await bench.stopServers();
  return { points, told, cacheEntryBytes };
}

/** The state in a Cluster of three. */
async function measureOnCluster(bench: Bench, rate: number, seconds: number): Promise<Point> {
  const store = await openStore(bench);
  const cache = await openRedisServer(bench);
  const state = await openCluster(bench, 3);
  const { tokens: keys } = await importKeys(state);
  await prefillLogs(state);
  await keepOnDisk(state);
  const fleet = await Fleet.start(bench, { gateways: CLUSTER_GATEWAYS, warmUpRate: rate, state, cache, store, keys });
  const point = await fleet.measure(rate, seconds);
  say(point);
  await bench.stopServers();
  return point;
}

/** One after the other. */
async function inTurn<T, R>(all: readonly T[], run: (one: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  for (const one of all) results.push(await run(one));
  return results;
}

function say({ gateways, requests, driven, others }: Point): void {
  const p99 = `p99 ${driven.latencyMs.p99.toFixed(1)} ms`;
  const statuses = others === 0 ? '' : `, ${others} not as they should be: ${JSON.stringify(driven.statuses)}`;
  process.stderr.write(`  ${gateways} gateways, ${Math.round(requests)} requests/s, ${p99}${statuses}\n`);
}
