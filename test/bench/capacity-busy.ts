/** Redis as busy as it can be with one thing, and what that costs. */
import type { Redis } from 'ioredis';
import { readCounters, type RedisNode } from './capacity-readings.ts';
import type { RedisInUse } from './capacity-world.ts';

/** CPU of one call, in microseconds. */
export interface CallCost {
  readonly redisMicros: number;
  /** Of this process. */
  readonly processMicros: number;
}

export const CONNECTIONS = 8;

/** As many calls as Redis can bear, over some connections. */
export async function busy(
  redis: RedisInUse,
  seconds: number,
  call: (client: Redis) => Promise<unknown>,
): Promise<CallCost> {
  const clients = Array.from({ length: CONNECTIONS }, () => nodeOf(redis).client.duplicate());
  let calls = 0;
  const before = await readCounters(redis.nodes);
  const processBefore = process.cpuUsage();
  const untilMs = performance.now() + seconds * 1000;
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < untilMs) {
        await call(client);
        calls += 1;
      }
    }),
  );
  const { user, system } = process.cpuUsage(processBefore);
  const after = await readCounters(redis.nodes);
  for (const client of clients) client.disconnect();
  return { redisMicros: (after.cpuMicros - before.cpuMicros) / calls, processMicros: (user + system) / calls };
}

export function nodeOf({ nodes }: Pick<RedisInUse, 'nodes'>): RedisNode {
  const [node] = nodes;
  if (node === undefined) throw new Error('there is no node to ask');
  return node;
}
