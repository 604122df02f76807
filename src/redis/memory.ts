/** How much a Redis holds, and how much it may. */
import type { RedisLink, RedisRole } from './connection.ts';
import { beforeDeadline } from './request-wait.ts';
import { settingsOf } from './settings.ts';

export interface RedisMemory {
  readonly role: RedisRole;
  readonly usedBytes: number;
  /** 0 for no limit; null if Redis does not report it. */
  readonly maxBytes: number | null;
  /** In the database that is used there. */
  readonly keys: number;
  /** Ids of the running servers: two roles with the same one are in one server. */
  readonly runIds: readonly (string | null)[];
}

/** For somebody who looks at it. */
const ANSWER_MS = 500;

/** Null if Redis does not say. For a Cluster, the sums of its primaries; without a limit if one of them has none. */
export async function readRedisMemory(link: Pick<RedisLink, 'role' | 'servers'>): Promise<RedisMemory | null> {
  const read = await Promise.all(
    link.servers().map(async ({ client }) => {
      const [info, keys] = await beforeDeadline(Promise.all([client.info(), client.dbsize()]), ANSWER_MS);
      return { ...settingsOf(info, null), keys };
    }),
  );
  const usedBytes = sumOf(read.map(({ usedMemoryBytes }) => usedMemoryBytes));
  if (usedBytes === null) return null;
  const limits = read.map(({ maxMemoryBytes }) => maxMemoryBytes);
  const maxBytes = limits.includes(0) ? 0 : sumOf(limits);
  const keys = read.reduce((sum, server) => sum + server.keys, 0);
  return { role: link.role, usedBytes, maxBytes, keys, runIds: read.map(({ runId }) => runId) };
}

/** Null if one of them is not known, or there is none. */
function sumOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length < values.length || known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}
