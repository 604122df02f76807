/** What a Redis that keeps keys and quotas must not be set to. */
import type { RedisLink } from './redis.ts';

/** `CONFIG` is refused by most managed Redis, `INFO` is not; both are asked, and what can't be told is passed over. */
export interface RedisSettings {
  /** Such as `noeviction`; null where it can't be told. */
  readonly evictionPolicy: string | null;
  readonly maxMemoryBytes: number | null;
  /** Whether keys survive a restart, by either file; null where it can't be told. */
  readonly isPersistent: boolean | null;
  readonly version: string | null;
}

/** Rejects where Redis doesn't answer. */
export async function readRedisSettings({ client }: Pick<RedisLink, 'client'>): Promise<RedisSettings> {
  const info = fieldsOf(await client.info());
  const aof = info.get('aof_enabled');
  const save = await client.config('GET', 'save').then(valueOf, () => null);
  const maxMemory = info.get('maxmemory');
  return {
    evictionPolicy: info.get('maxmemory_policy') ?? null,
    maxMemoryBytes: maxMemory === undefined ? null : Number(maxMemory),
    isPersistent: aof === '1' ? true : save === null ? null : save !== '',
    version: info.get('redis_version') ?? null,
  };
}

/** Warnings in whole sentences, with what to set; none where all is well. */
export function faultsOfStateRedis({ evictionPolicy, isPersistent }: RedisSettings): readonly string[] {
  const faults: string[] = [];
  if (evictionPolicy?.startsWith('allkeys-') === true) {
    faults.push(
      `The Redis of REDIS_URL may evict API keys and quotas (maxmemory-policy is ${evictionPolicy}). Set maxmemory-policy to noeviction there, and give the response cache a Redis of its own with REDIS_CACHE_URL.`,
    );
  }
  if (isPersistent === false) {
    faults.push(
      'The Redis of REDIS_URL loses all API keys when it restarts (neither RDB snapshots nor the AOF are on). Set appendonly to yes there.',
    );
  }
  return faults;
}

/** Looks once, as soon as Redis answers. Never throws. */
export function warnOfRedisSettings(link: RedisLink, warn: (warning: string) => void): void {
  const look = async (): Promise<void> => {
    for (const fault of faultsOfStateRedis(await readRedisSettings(link))) warn(fault);
  };
  const end = link.onUp(() => {
    end();
    // What can't be asked now is nothing to stop for.
    look().catch(() => undefined);
  });
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.split('\r\n').filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

/** Of `CONFIG GET name`: the name and its value in turn. */
function valueOf(reply: unknown): string | null {
  const value: unknown = Array.isArray(reply) ? reply[1] : null;
  return typeof value === 'string' ? value : null;
}
