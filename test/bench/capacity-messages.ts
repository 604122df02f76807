/**
 * What processes cost that tell each other things, at sizes that a fleet on one machine doesn't have: messages by how many
 * hear them, heartbeats by how many there are, and what a Cluster makes of a message. By the gateway's own code.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { readFlightMessage, writeFlightMessage } from '../../src/cache/redis-flight-messages.ts';
import { memberBeatsKey, membersKey } from '../../src/redis/keys.ts';
import { openRedis } from '../../src/redis/link.ts';
import type { AboutMember } from '../../src/redis/member.ts';
import { createMembers } from '../../src/redis/members.ts';
import { busy, type CallCost, CONNECTIONS, nodeOf } from './capacity-busy.ts';
import { readCounters } from './capacity-readings.ts';
import type { RedisInUse } from './capacity-world.ts';

/** What the end of a flight takes, by how many hear it; this process is all of them. */
export async function messages(
  redis: RedisInUse,
  listeners: readonly number[],
  seconds: number,
): Promise<readonly (CallCost & { readonly listeners: number })[]> {
  const grown: (CallCost & { readonly listeners: number })[] = [];
  const ears: Redis[] = [];
  for (const count of listeners) {
    while (ears.length < count) {
      const ear = nodeOf(redis).client.duplicate();
      ear.on('message', (_channel: string, text: string) => readFlightMessage(text));
      await ear.subscribe(CHANNEL);
      ears.push(ear);
    }
    const cost = await busy(redis, seconds, (client) => client.publish(CHANNEL, MESSAGE));
    grown.push({ listeners: count, ...cost });
  }
  for (const ear of ears) ear.disconnect();
  return grown;
}

const CHANNEL = 'evalgate:channel:measured';
const MESSAGE = writeFlightMessage({
  end: 'stored',
  sender: '2c2ae0a4-5f5c-4c53-9a2b-0d1f6b1b7c11',
  key: 'list:2393e09e-a0b1-4849-8887-0fb942eae255:COMPLETED:0:50',
  filledAtMs: 1_772_600_767_089,
});

export interface BeatCost {
  readonly members: number;
  /** CPU of Redis a heartbeat. */
  readonly redisMicros: number;
  /** CPU of the process that beats, to take in what the others tell. */
  readonly processMicros: number;
  readonly answerBytes: number;
}

const BEAT_EVERY_MS = 20;

/** A heartbeat in a fleet of that size, of which all but one are made up. */
export async function heartbeat(redis: RedisInUse, members: number, seconds: number): Promise<BeatCost> {
  const node = nodeOf(redis);
  await node.client.del(memberBeatsKey(), membersKey());
  const about: AboutMember = {
    host: 'gateway-7f9c6d5b8-x2x4q',
    pid: 1,
    version: '0.1.0',
    startedAtMs: Date.now(),
    status: 'ready',
    store: 'measured',
  };
  const ids = Array.from({ length: members - 1 }, () => crypto.randomUUID());
  // Far in the future, so that none of them counts as gone.
  for (const id of ids) await node.client.zadd(memberBeatsKey(), 4_000_000_000_000, id);
  for (const id of ids) await node.client.hset(membersKey(), id, JSON.stringify(about));
  const link = openRedis({ url: redis.url, role: 'state' });
  const one = createMembers({ link, about, atLeast: 1, beatEveryMs: BEAT_EVERY_MS });
  await sleep(500);
  if (one.count() !== members) throw new Error(`${one.count()} members are counted, not ${members}`);
  const redisBefore = await readCounters(redis.nodes);
  const processBefore = process.cpuUsage();
  await sleep(seconds * 1000);
  const cpu = process.cpuUsage(processBefore);
  const redisAfter = await readCounters(redis.nodes);
  await one.close();
  await link.close();
  const beats = (redisAfter.calls.get('evalsha') ?? 0) - (redisBefore.calls.get('evalsha') ?? 0);
  return {
    members,
    redisMicros: (redisAfter.cpuMicros - redisBefore.cpuMicros) / beats,
    processMicros: (cpu.user + cpu.system) / beats,
    answerBytes: (redisAfter.outBytes - redisBefore.outBytes) / beats,
  };
}

export interface ClusterMessage {
  readonly nodes: number;
  /** CPU of the node that it was sent to, and of each of the others. */
  readonly originMicros: number;
  readonly otherMicros: number;
  /** On the wire to each of the others, as the system counts what all programs send to this machine itself. */
  readonly otherBytes: number;
}

/** A message to a Cluster, which tells all of its nodes whether anybody listens there or not. */
export async function clusterMessage({ nodes }: RedisInUse, seconds: number): Promise<ClusterMessage> {
  const [, ...others] = nodes;
  const origin = nodeOf({ nodes });
  const before = await Promise.all(nodes.map((node) => readCounters([node])));
  const bytesBefore = loopbackBytes();
  const untilMs = performance.now() + seconds * 1000;
  let calls = 0;
  for (; performance.now() < untilMs; calls += CONNECTIONS) {
    await Promise.all(Array.from({ length: CONNECTIONS }, () => origin.client.publish(CHANNEL, MESSAGE)));
  }
  const ownBytes = calls * CLIENT_BYTES_A_MESSAGE;
  const bytes = loopbackBytes() - bytesBefore - ownBytes;
  const after = await Promise.all(nodes.map((node) => readCounters([node])));
  const micros = after.map(({ cpuMicros }, index) => (cpuMicros - (before[index]?.cpuMicros ?? 0)) / calls);
  const [originMicros = 0, ...otherMicros] = micros;
  return {
    nodes: nodes.length,
    originMicros,
    otherMicros: otherMicros.reduce((sum, value) => sum + value, 0) / others.length,
    otherBytes: bytes / calls / others.length,
  };
}

/** Between the one that publishes and Redis: the command, its answer, and their shares of packets. */
const CLIENT_BYTES_A_MESSAGE = MESSAGE.length + 100;

function loopbackBytes(): number {
  const line =
    readFileSync('/proc/net/dev', 'utf8')
      .split('\n')
      .find((text) => text.trim().startsWith('lo:')) ?? '';
  return Number(
    line
      .replace(/^.*lo:/, '')
      .trim()
      .split(/\s+/)[0] ?? 0,
  );
}
