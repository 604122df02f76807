/** What of a Redis's own settings doesn't suit the state that is kept there: keys, quotas and epochs. */
import type { Redis } from 'ioredis';

export interface RedisWarning {
  /** What can happen. */
  readonly message: string;
  /** What to set at that Redis. */
  readonly remedy: string;
}

interface Settings {
  /** Null where this Redis doesn't tell. */
  readonly evictionPolicy: string | null;
  readonly savesSnapshots: boolean | null;
  readonly appendsToFile: boolean | null;
}

function infoField(info: string, name: string): string | null {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? null;
}

/** `CONFIG GET save`: null where hosted Redis forbids it. */
async function savePoints(client: Redis): Promise<string | null> {
  try {
    const reply: unknown = await client.config('GET', 'save');
    const value: unknown = Array.isArray(reply) ? reply[1] : null;
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}

async function settingsOf(client: Redis): Promise<Settings> {
  const [memory, persistence, saves] = await Promise.all([
    client.info('memory'),
    client.info('persistence'),
    savePoints(client),
  ]);
  const appends = infoField(persistence, 'aof_enabled');
  return {
    evictionPolicy: infoField(memory, 'maxmemory_policy'),
    savesSnapshots: saves === null ? null : saves !== '',
    appendsToFile: appends === null ? null : appends === '1',
  };
}

function evictionWarning(policy: string | null): RedisWarning | null {
  const remedy =
    'Set maxmemory-policy noeviction, and give the response cache a Redis of its own with REDIS_CACHE_URL that may evict.';
  if (policy?.startsWith('allkeys-') === true) {
    return { message: `It may drop API keys when its memory is full (maxmemory-policy ${policy}).`, remedy };
  }
  if (policy?.startsWith('volatile-') === true) {
    return {
      message: `It may forget the use of rate limits when its memory is full (maxmemory-policy ${policy}).`,
      remedy,
    };
  }
  return null;
}

function persistenceWarning({ savesSnapshots, appendsToFile }: Settings): RedisWarning | null {
  if (savesSnapshots !== false || appendsToFile !== false) return null;
  return {
    message: 'It loses everything, API keys included, when it is started again: it saves nothing.',
    remedy: 'Set appendonly yes.',
  };
}

/**
 * Looks at the Redis that keeps the state. What it does not tell is not warned of. Rejects where it does not answer.
 */
export async function stateRedisWarnings(client: Redis): Promise<readonly RedisWarning[]> {
  const settings = await settingsOf(client);
  return [evictionWarning(settings.evictionPolicy), persistenceWarning(settings)].filter((warning) => warning !== null);
}
