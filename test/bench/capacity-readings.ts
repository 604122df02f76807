/** What Redis, the gateways and the operating system say of themselves, and the difference between two looks. */
import type { Redis } from 'ioredis';
import { cpuNanos, residentBytes } from './gateway/processes.ts';

/** A Redis server, or one node of a Cluster. */
export interface RedisNode {
  readonly client: Redis;
  readonly pid: number;
}

/** Counters since the start; only differences mean anything. */
export interface RedisCounters {
  readonly cpuMicros: number;
  /** On its clients' sockets. */
  readonly inBytes: number;
  readonly outBytes: number;
  /** What was appended to the file of all changes, where there is one. */
  readonly appendedBytes: number;
  /** By name, in lower case; those that scripts call are among them. */
  readonly calls: ReadonlyMap<string, number>;
}

/** Of several nodes, the sums. */
export async function readCounters(nodes: readonly RedisNode[]): Promise<RedisCounters> {
  const all = await Promise.all(nodes.map(countersOf));
  const total = (of: (one: RedisCounters) => number): number => all.map(of).reduce((sum, value) => sum + value, 0);
  const names = new Set(all.flatMap(({ calls }) => [...calls.keys()]));
  return {
    cpuMicros: total(({ cpuMicros }) => cpuMicros),
    inBytes: total(({ inBytes }) => inBytes),
    outBytes: total(({ outBytes }) => outBytes),
    appendedBytes: total(({ appendedBytes }) => appendedBytes),
    calls: new Map([...names].map((name) => [name, total(({ calls }) => calls.get(name) ?? 0)])),
  };
}

async function countersOf({ client, pid }: RedisNode): Promise<RedisCounters> {
  const info = await client.info('everything');
  return {
    cpuMicros: cpuNanos(pid) / 1000,
    inBytes: infoNumber(info, 'total_net_input_bytes'),
    outBytes: infoNumber(info, 'total_net_output_bytes'),
    appendedBytes: infoNumber(info, 'aof_current_size'),
    calls: new Map(
      [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name = '', calls]) => [name, Number(calls)]),
    ),
  };
}

/** 0 where it isn't told. */
export function infoNumber(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
}

export async function usedBytes(nodes: readonly RedisNode[]): Promise<number> {
  const all = await Promise.all(
    nodes.map(async ({ client }) => infoNumber(await client.info('memory'), 'used_memory')),
  );
  return all.reduce((sum, bytes) => sum + bytes, 0);
}

export interface GatewayCounters {
  readonly cpuMicros: number;
  readonly residentBytes: number;
  readonly requests: number;
  /** Reads that were answered from Redis. */
  readonly redisHits: number;
  readonly memoryHits: number;
  readonly reads: number;
  /** Sent to the Redis of that role. */
  readonly stateCommands: number;
  readonly cacheCommands: number;
}

export async function readGateway(gateway: {
  readonly adminUrl: string;
  readonly pid: number;
}): Promise<GatewayCounters> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const commands = 'evalgate_redis_command_duration_seconds_count';
  return {
    cpuMicros: cpuNanos(gateway.pid) / 1000,
    residentBytes: residentBytes(gateway.pid),
    requests: metricSum(text, 'evalgate_http_requests_total'),
    redisHits: metricSum(text, 'evalgate_cache_reads_total', 'tier="redis"'),
    memoryHits: metricSum(text, 'evalgate_cache_reads_total', 'tier="memory"'),
    reads: metricSum(text, 'evalgate_cache_reads_total'),
    stateCommands: metricSum(text, commands, 'role="state"'),
    cacheCommands: metricSum(text, commands, 'role="cache"'),
  };
}

/** The sum of all samples of a metric whose labels hold that text. */
export function metricSum(text: string, name: string, labels = ''): number {
  return text
    .split('\n')
    .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(labels))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

/** Lines that are samples, as a scrape takes them. */
export function sampleCount(text: string): number {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
}
