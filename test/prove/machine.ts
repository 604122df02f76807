/** What a table of measured values was measured on. */
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { withClient } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

/** One line: cores, CPU, memory, Node, Redis, and how busy the machine was with anything else before. */
export async function describeMachine(): Promise<string> {
  const cores = availableParallelism();
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return [
    `${cores} ${cores === 1 ? 'core' : 'cores'} (${cpus()[0]?.model.trim() ?? 'unknown CPU'})`,
    `${gigabytes} GB of memory`,
    `Node.js ${process.versions.node}`,
    await redisVersion(),
    `load ${loadavg()[0]?.toFixed(1)} at the start`,
  ].join(', ');
}

async function redisVersion(): Promise<string> {
  const redis = await startRedis();
  try {
    const info = await withClient(redis.url, (client) => client.info('server'));
    const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
    return valkey === undefined ? `Redis ${/^redis_version:(\S+)/m.exec(info)?.[1] ?? 'unknown'}` : `Valkey ${valkey}`;
  } finally {
    await redis.close();
  }
}
