/** What commands are sent on, wherever they go. */
import { Cluster, type Command, Redis, type RedisCommander } from 'ioredis';

/** One Redis, or a Cluster as if it were one: each command goes to the node that has its keys. */
export type RedisClient = RedisCommander<{ type: 'default'; mapping: 'resp2' }> & {
  /** What it returns is the command's promise. */
  sendCommand(command: Command): unknown;
};

/** Whether keys lie on several servers: then only those with one hash tag can be in one script. */
export function isCluster(client: RedisClient): boolean {
  return client instanceof Cluster;
}

/** The number of the database that its keys are in. A Cluster has no other than 0. */
export function databaseOf(client: RedisClient): number {
  return client instanceof Redis ? (client.options.db ?? 0) : 0;
}
