/** What a Redis is and how it is set, as far as it tells; at start a gateway warns of what does not suit it. */
import { databaseOf, type RedisClient } from './client.ts';
import { redisFaults, type RedisSettings, type RedisUse } from './faults.ts';
import type { RedisLink, RedisServer } from './link.ts';

export interface ServerSettings {
  readonly server: RedisServer;
  readonly settings: RedisSettings;
}

/** Asks each server. `CONFIG` is refused by most hosted Redis: what only that tells is null there. Rejects where `INFO` fails. */
export function readAllSettings(link: Pick<RedisLink, 'servers'>): Promise<readonly ServerSettings[]> {
  return Promise.all(link.servers().map(async (server) => ({ server, settings: await readRedisSettings(server) })));
}

/** Asks one server, as `readAllSettings` does. */
export async function readRedisSettings({ client }: { readonly client: RedisClient }): Promise<RedisSettings> {
  const savePoints = await client.config('GET', 'save').then(valueOf, () => null);
  return settingsOf(await client.info(), savePoints);
}

/** The settings that the answer to `INFO` holds. `savePoints`: the value of `save`; null where it is not known. */
export function settingsOf(info: string, savePoints: string | null): RedisSettings {
  const fields = fieldsOf(info);
  const text = (name: string): string | null => fields.get(name) ?? null;
  const appends = text('aof_enabled');
  const role = text('role');
  const fails = (name: string): boolean => text(name) === 'err';
  return {
    version: text('redis_version'),
    mode: text('redis_mode'),
    isReplica: role === null ? null : role === 'slave',
    replicas: numberOf(text('connected_slaves')),
    runId: text('run_id'),
    evictionPolicy: text('maxmemory_policy'),
    maxMemoryBytes: numberOf(text('maxmemory')),
    usedMemoryBytes: numberOf(text('used_memory')),
    appendsToFile: appends === null ? null : appends === '1',
    savesSnapshots: savePoints === null ? null : savePoints !== '',
    failedToWrite:
      fails('rdb_last_bgsave_status') || fails('aof_last_write_status') || fails('aof_last_bgrewrite_status'),
  };
}

/**
 * Looks once, as soon as it answers, and warns in whole sentences; where it can't be asked then, when it comes back.
 * Never throws. `use`: `both` where the response cache is in the same Redis.
 */
export function warnOfRedisSettings(
  link: RedisLink,
  warn: (warning: string) => void,
  use: Exclude<RedisUse, 'cache'> = 'state',
): void {
  let hasLooked = false;
  const look = async (): Promise<void> => {
    const found = await readAllSettings(link);
    if (hasLooked) return;
    hasLooked = true;
    end();
    for (const { server, settings } of found) {
      const where = link.kind === 'cluster' ? `The node ${server.name} of REDIS_URL` : 'The Redis of REDIS_URL';
      for (const { finding, remedy } of redisFaults(settings, use, link.kind)) warn(`${where} ${finding}. ${remedy}`);
    }
  };
  const end = link.onUp(() => void look().catch(() => undefined));
  if (link.isUp()) look().catch(() => undefined);
}

/**
 * Warns once where the database of the address is not there: Redis then goes on with the first one, among the keys of
 * somebody else perhaps. Never throws.
 */
export function warnOfMissingDatabase(link: RedisLink, warn: (warning: string) => void): void {
  const { client, role } = link;
  const db = databaseOf(client);
  if (db === 0) return;
  let hasWarned = false;
  const look = async (): Promise<void> => {
    try {
      await client.select(db);
    } catch (error) {
      if (hasWarned || !(error instanceof Error) || !error.message.includes('DB index')) return;
      hasWarned = true;
      const setting = role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL';
      warn(
        `The Redis of ${setting} has no database ${db}, and what belongs there goes into database 0. Give another number in ${setting}, or raise "databases" in redis.conf.`,
      );
    }
  };
  link.onUp(() => void look());
  if (link.isUp()) void look();
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.split(/\r?\n/).filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

/** Of `CONFIG GET name`: the name and its value in turn. */
function valueOf(reply: unknown): string | null {
  const value: unknown = Array.isArray(reply) ? reply[1] : null;
  return typeof value === 'string' ? value : null;
}
