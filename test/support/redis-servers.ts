/** What tests do at each server of a Redis, be it one or a Cluster. */
import { withClient } from './redis-client.ts';
import type { TestRedis } from './redis.ts';

/** Cuts all connections for messages; resolves with how many there were. */
export async function cutSubscribers({ servers }: TestRedis): Promise<number> {
  const cuts = await Promise.all(
    servers.map((url) => withClient(url, (client) => client.call('CLIENT', 'KILL', 'TYPE', 'pubsub'))),
  );
  return cuts.reduce<number>((sum, cut) => sum + Number(cut), 0);
}

/** How many connections for messages there are. */
export async function countSubscribers({ servers }: TestRedis): Promise<number> {
  const lists = await Promise.all(
    servers.map((url) => withClient(url, (client) => client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))),
  );
  return lists.flatMap((list) => String(list).split('\n')).filter((line) => line !== '').length;
}
