/**
 * How a Redis is set, compared with what evalgate keeps there: state (keys, quotas, epochs) must neither be dropped nor
 * lost, cached answers may. The doctor reports it; a gateway warns of it at its start.
 */
import { type RedisLink, type RedisServer, replyCode } from './connection.ts';

/**
 * The oldest version with all that is asked of it: RESP3, user names and `SCAN ... TYPE` came with it. Scripts that ask
 * for the time and then write need 5.0.
 */
const OLDEST_VERSION = { major: 6, minor: 0 } as const;
/** Above this share a memory that evicts nothing is about to refuse writes. */
const NEARLY_FULL = 0.8;

export interface RedisSettings {
  /** Null, as all else here, where it is not told. */
  readonly version: string | null;
  /** `standalone`, `cluster` or `sentinel`. */
  readonly mode: string | null;
  readonly isReplica: boolean | null;
  /** Of a primary, how many replicas follow it now. */
  readonly replicas: number | null;
  /** Of the running server: two addresses with the same one lead to the same memory. */
  readonly runId: string | null;
  /** Such as `noeviction`. */
  readonly evictionPolicy: string | null;
  /** 0 for no limit. */
  readonly maxMemoryBytes: number | null;
  readonly usedMemoryBytes: number | null;
  readonly appendsToFile: boolean | null;
  readonly savesSnapshots: boolean | null;
  /** Whether what was to be written to disk last could not be. */
  readonly failedToWrite: boolean;
}

/** What is kept there: `both` where the response cache has no Redis of its own. */
export type RedisUse = 'state' | 'cache' | 'both';

/** What the address says that it is. */
export type RedisKind = 'single' | 'cluster' | 'sentinel';

export interface RedisFault {
  readonly about: 'version' | 'mode' | 'replicas' | 'memory' | 'persistence';
  /** `fail`: evalgate does not work there, or loses what it must keep. `warn`: it can be lived with. */
  readonly severity: 'fail' | 'warn';
  /** What is said of it, after a name: `may drop API keys ...`. */
  readonly finding: string;
  /** What to set, in whole sentences. */
  readonly remedy: string;
}

/** What is wrong with it for that use; nothing where all is well or not told. */
export function redisFaults(settings: RedisSettings, use: RedisUse, kind: RedisKind = 'single'): readonly RedisFault[] {
  const memory = use === 'cache' ? cacheMemoryFault(settings) : stateMemoryFault(settings, use);
  const persistence = use === 'cache' ? null : persistenceFault(settings);
  const replicas = use === 'cache' ? null : replicasFault(settings, kind);
  const faults = [versionFault(settings), modeFault(settings, kind), replicas, memory, persistence];
  return faults.filter((fault) => fault !== null);
}

function versionFault({ version }: RedisSettings): RedisFault | null {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version ?? '') ?? [];
  if (version === null || major === undefined || minor === undefined) return null;
  const { major: oldestMajor, minor: oldestMinor } = OLDEST_VERSION;
  if (Number(major) > oldestMajor || (Number(major) === oldestMajor && Number(minor) >= oldestMinor)) return null;
  return {
    about: 'version',
    severity: 'fail',
    finding: `is of version ${version}, too old for what evalgate asks of it`,
    remedy: `Use Redis ${oldestMajor}.${oldestMinor} or newer, or Valkey.`,
  };
}

function modeFault({ mode, isReplica }: RedisSettings, kind: RedisKind): RedisFault | null {
  if ((mode === 'cluster' && kind !== 'cluster') || mode === 'sentinel') {
    return {
      about: 'mode',
      severity: 'fail',
      finding: mode === 'cluster' ? 'is a node of a Cluster, and holds only some of the keys' : 'is a Sentinel',
      remedy:
        mode === 'cluster'
          ? 'Begin its address with redis+cluster:// (rediss+cluster:// for TLS).'
          : 'Give redis+sentinel://host:port,host:port/primary, with the name by which it knows the primary.',
    };
  }
  if (isReplica !== true) return null;
  return {
    about: 'mode',
    severity: 'fail',
    finding: 'is a replica, and replicas refuse changes',
    remedy: 'Give the address of its primary.',
  };
}

/** A single Redis need not have any; who runs a Cluster or Sentinels counts on them. */
function replicasFault({ replicas, isReplica }: RedisSettings, kind: RedisKind): RedisFault | null {
  if (kind === 'single' || isReplica === true || replicas === null || replicas > 0) return null;
  return {
    about: 'replicas',
    severity: 'warn',
    finding: 'has no replica that could take over: when it is gone, what it holds is out of reach until it is back',
    remedy: 'Add a replica, or bring back the one that it had.',
  };
}

function stateMemoryFault(settings: RedisSettings, use: RedisUse): RedisFault | null {
  const { evictionPolicy, maxMemoryBytes, usedMemoryBytes } = settings;
  const about = 'memory';
  const own = 'give the response cache a Redis of its own with REDIS_CACHE_URL, which may evict';
  const set = toSet('maxmemory-policy noeviction');
  const remedy = use === 'both' ? `${set} And ${own}.` : set;
  if (evictionPolicy?.startsWith('allkeys-') === true) {
    const finding = `may drop API keys when its memory is full (maxmemory-policy ${evictionPolicy})`;
    return { about, severity: 'fail', finding, remedy };
  }
  if (evictionPolicy?.startsWith('volatile-') === true) {
    const finding = `may forget the use of rate limits when its memory is full (maxmemory-policy ${evictionPolicy})`;
    return { about, severity: 'warn', finding, remedy };
  }
  if (maxMemoryBytes === null || maxMemoryBytes === 0 || usedMemoryBytes === null) return null;
  if (usedMemoryBytes <= maxMemoryBytes * NEARLY_FULL) return null;
  const share = Math.round((usedMemoryBytes / maxMemoryBytes) * 100);
  return {
    about,
    severity: 'warn',
    finding: `has ${share} % of its maxmemory in use, and refuses all changes once it is full`,
    remedy: use === 'both' ? `Raise maxmemory there, or ${own}.` : 'Raise maxmemory there.',
  };
}

function cacheMemoryFault({ evictionPolicy, maxMemoryBytes }: RedisSettings): RedisFault | null {
  const isUnbounded = maxMemoryBytes === 0;
  if (!isUnbounded && evictionPolicy !== 'noeviction') return null;
  return {
    about: 'memory',
    severity: 'warn',
    finding: isUnbounded
      ? 'has no limit of memory (maxmemory 0), and the response cache fills all there is'
      : 'caches nothing more when its memory is full (maxmemory-policy noeviction)',
    remedy: isUnbounded
      ? 'Set maxmemory there to what the cache may use, and maxmemory-policy allkeys-lru.'
      : toSet('maxmemory-policy allkeys-lru'),
  };
}

function persistenceFault({ appendsToFile, savesSnapshots, failedToWrite }: RedisSettings): RedisFault | null {
  const about = 'persistence';
  const remedy = toSet('appendonly yes');
  if (failedToWrite) {
    return {
      about,
      severity: 'fail',
      finding: 'could not write to its disk lately, so that changes are lost when it restarts',
      remedy: 'Its log says why: often the disk is full, or its folder belongs to another user.',
    };
  }
  if (appendsToFile !== false) return null;
  if (savesSnapshots === false) {
    return { about, severity: 'fail', finding: 'loses all API keys when it restarts: it saves nothing', remedy };
  }
  if (savesSnapshots === null) return null;
  const finding = 'saves snapshots only: when it crashes, the last minutes are lost, and keys revoked then work again';
  return { about, severity: 'warn', finding, remedy };
}

function toSet(line: string): string {
  return `Set ${line} there: \`redis-cli CONFIG SET ${line}\`, and the same line in redis.conf.`;
}

/** Asks one server. Most hosted Redis refuse `CONFIG`: what only that says is null there. Rejects if `INFO` fails. */
export async function readRedisSettings({ client }: Pick<RedisServer, 'client'>): Promise<RedisSettings> {
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
 * Warns in whole sentences, once, as soon as Redis answers. Never throws. `use`: `both` if the response cache is in the
 * same Redis.
 */
export function warnOfRedisSettings(
  link: RedisLink,
  warn: (warning: string) => void,
  use: Exclude<RedisUse, 'cache'> = 'state',
): void {
  onceUp(link, async () => {
    for (const server of link.servers()) {
      const where = link.kind === 'cluster' ? `The node ${server.name} of REDIS_URL` : 'The Redis of REDIS_URL';
      const faults = redisFaults(await readRedisSettings(server), use, link.kind);
      for (const { finding, remedy } of faults) warn(`${where} ${finding}. ${remedy}`);
    }
  });
}

/**
 * Warns once if there is no database of the address's number: Redis then goes on with the first one, perhaps among the
 * keys of somebody else. Never throws.
 */
export function warnOfMissingDatabase(link: RedisLink, warn: (warning: string) => void): void {
  const { client, role, db } = link;
  if (db === 0) return;
  onceUp(link, async () => {
    const code = await client.select(db).then(() => null, replyCode);
    if (code !== 'ERR') return;
    const setting = role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL';
    warn(
      `The Redis of ${setting} has no database ${db}, and what belongs there goes into database 0. Give another number in ${setting}, or raise "databases" in redis.conf.`,
    );
  });
}

/** Looks as soon as Redis answers; if that fails, again when it comes back. */
function onceUp(link: RedisLink, look: () => Promise<void>): void {
  let isLooking = false;
  const tryOnce = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      await look();
      end();
    } catch {
      isLooking = false;
    }
  };
  const end = link.onUp(() => void tryOnce());
  if (link.isUp()) void tryOnce();
}

function fieldsOf(info: string): ReadonlyMap<string, string> {
  const lines = info.split(/\r?\n/).filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

function numberOf(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}

/** From the reply to `CONFIG GET name`: the name and its value in turn. */
function valueOf(reply: unknown): string | null {
  const value: unknown = Array.isArray(reply) ? reply[1] : null;
  return typeof value === 'string' ? value : null;
}
