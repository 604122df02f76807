/** How much memory Redis uses, of how much: for the metrics. */
import type { RedisLink, RedisRole } from '../redis/connection.ts';
import { settingsOf } from '../redis/settings.ts';

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

/** Asks each, within the time of a command; nothing of one that is down or does not answer. Never rejects. */
export async function readMemory(links: readonly RedisLink[]): Promise<readonly RedisMemory[]> {
  const found = await Promise.all(links.filter((link) => link.isUp()).map((link) => memoryOf(link).catch(() => null)));
  return found.filter((memory) => memory !== null);
}

/** For a Cluster, the sums of its primaries; without a limit if one of them has none. */
async function memoryOf(link: RedisLink): Promise<RedisMemory | null> {
  const read = await Promise.all(
    link.servers().map(async ({ client }) => {
      const [info, keys] = await Promise.all([client.info(), client.dbsize()]);
      return { ...settingsOf(info, null), keys };
    }),
  );
  const usedBytes = sumOf(read.map(({ usedMemoryBytes }) => usedMemoryBytes));
  const limits = read.map(({ maxMemoryBytes }) => maxMemoryBytes);
  const maxBytes = limits.includes(0) ? 0 : sumOf(limits);
  const keys = read.reduce((sum, server) => sum + server.keys, 0);
  return usedBytes === null
    ? null
    : { role: link.role, usedBytes, maxBytes, keys, runIds: read.map(({ runId }) => runId) };
}

/** Null if one of them is not known, or there is none. */
function sumOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length < values.length || known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}
