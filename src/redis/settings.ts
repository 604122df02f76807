/**
 * How a Redis is set, compared with what evalgate keeps there: state (keys, quotas, the journal) must neither be dropped nor
 * lost, cached answers may. The doctor reports it; a gateway warns of it at its start.
 */
import type { RedisAddress } from './address.ts';
import type { RedisRole } from './connection.ts';
import type { RedisServer } from './open-connection.ts';

/**
 * The oldest major version with all that is asked of it: RESP3, user names and `SCAN ... TYPE` came with it. Scripts that
 * ask for the time and then write need 5.
 */
const OLDEST_VERSION = 6;
/** Above this share a memory that evicts nothing is about to refuse writes. */
const NEARLY_FULL = 0.8;

/** Each is null if it is not known. */
export type RedisSettings = ReturnType<typeof settingsOf>;

/** The kind that its address names. */
type RedisKind = RedisAddress['kind'];

export interface RedisFault {
  readonly about: 'version' | 'mode' | 'replicas' | 'eviction' | 'memory' | 'persistence';
  /** `fail`: evalgate does not work there, or loses what it must keep. `warn`: it can be lived with. */
  readonly severity: 'fail' | 'warn';
  /** Follows a name: `may drop API keys ...`. */
  readonly finding: string;
  /** How to mend it, in whole sentences. */
  readonly remedy: string;
}

export interface RedisPurpose {
  /** `both` if the response cache has no Redis of its own. */
  readonly use: RedisRole | 'both';
  /** `single` unless given. */
  readonly kind?: RedisKind;
  /** Whether the response cache has a budget of its own there (`cache.redis`). */
  readonly hasCacheBudget?: boolean;
}

/** Its faults for that purpose; none if all is well or not known. */
export function redisFaults(settings: RedisSettings, purpose: RedisPurpose): readonly RedisFault[] {
  const { use, kind = 'single' } = purpose;
  const ofState = use === 'cache' ? [] : [replicasFault(settings, kind), persistenceFault(settings)];
  const memory = use === 'cache' ? cacheMemoryFault(settings) : stateMemoryFault(settings, { ...purpose, use });
  return [versionFault(settings), modeFault(settings, kind), memory, ...ofState].filter((fault) => fault !== null);
}

function failure(about: RedisFault['about'], finding: string, remedy: string): RedisFault {
  return { about, severity: 'fail', finding, remedy };
}

function warning(about: RedisFault['about'], finding: string, remedy: string): RedisFault {
  return { about, severity: 'warn', finding, remedy };
}

function toSet(line: string): string {
  return `Set ${line} there: \`redis-cli CONFIG SET ${line}\`, and the same line in redis.conf.`;
}

function versionFault({ version }: RedisSettings): RedisFault | null {
  const major = /^\d+/.exec(version ?? '')?.[0];
  if (major === undefined || Number(major) >= OLDEST_VERSION) return null;
  const finding = `is of version ${version}, too old for what evalgate asks of it`;
  return failure('version', finding, `Use Redis ${OLDEST_VERSION}.0 or newer, or Valkey.`);
}

function modeFault({ mode, isReplica }: RedisSettings, kind: RedisKind): RedisFault | null {
  if (mode === 'cluster' && kind !== 'cluster') {
    const remedy = 'Begin its address with redis+cluster:// (rediss+cluster:// for TLS).';
    return failure('mode', 'is a node of a Cluster, and holds only some of the keys', remedy);
  }
  if (mode === 'sentinel') {
    const remedy = 'Give redis+sentinel://host:port,host:port/primary, with the name by which it knows the primary.';
    return failure('mode', 'is a Sentinel', remedy);
  }
  if (isReplica !== true) return null;
  return failure('mode', 'is a replica, and replicas refuse changes', 'Give the address of its primary.');
}

/** A single Redis need not have any; a Cluster and Sentinels rely on them. */
function replicasFault({ replicas, isReplica }: RedisSettings, kind: RedisKind): RedisFault | null {
  if (kind === 'single' || isReplica === true || replicas === null || replicas > 0) return null;
  const finding =
    'has no replica that could take over: when it is gone, what it holds is out of reach until it is back';
  return warning('replicas', finding, 'Add a replica, or bring back the one that it had.');
}

const OWN_CACHE = 'give the response cache a Redis of its own with REDIS_CACHE_URL, which may evict';

/** The fault of a state Redis that evicts; null if it does not, or its policy is not known. */
export function evictionFault(policy: string | null, use: 'state' | 'both'): RedisFault | null {
  const noeviction = toSet('maxmemory-policy noeviction');
  const remedy = use === 'both' ? `${noeviction} And ${OWN_CACHE}.` : noeviction;
  const whenFull = `when its memory is full (maxmemory-policy ${policy})`;
  if (policy?.startsWith('allkeys-') === true) return failure('eviction', `may drop API keys ${whenFull}`, remedy);
  if (policy?.startsWith('volatile-') === true)
    return warning('eviction', `may forget the use of rate limits ${whenFull}`, remedy);
  return null;
}

function stateMemoryFault(
  { evictionPolicy, maxMemoryBytes, usedMemoryBytes }: RedisSettings,
  { use, hasCacheBudget = false }: Omit<RedisPurpose, 'use'> & { readonly use: 'state' | 'both' },
): RedisFault | null {
  const eviction = evictionFault(evictionPolicy, use);
  if (eviction !== null) return eviction;
  if (use === 'both' && maxMemoryBytes === 0 && !hasCacheBudget) {
    const finding = 'has no memory limit (maxmemory 0), and cached answers may take what keys and limits need';
    const limits = `Set maxmemory there, a tenth of which the cache leaves free; or cache.redis to what the cache may use; or ${OWN_CACHE}.`;
    return warning('memory', finding, limits);
  }
  const share = maxMemoryBytes && usedMemoryBytes !== null ? usedMemoryBytes / maxMemoryBytes : 0;
  if (share <= NEARLY_FULL) return null;
  const finding = `has ${Math.round(share * 100)} % of its maxmemory in use, and refuses all changes once it is full`;
  return warning(
    'memory',
    finding,
    use === 'both' ? `Raise maxmemory there, or ${OWN_CACHE}.` : 'Raise maxmemory there.',
  );
}

function cacheMemoryFault({ evictionPolicy, maxMemoryBytes }: RedisSettings): RedisFault | null {
  if (maxMemoryBytes === 0) {
    const finding = 'has no memory limit (maxmemory 0), and the response cache fills all there is';
    const remedy = 'Set maxmemory there to what the cache may use, and maxmemory-policy allkeys-lru.';
    return warning('memory', finding, remedy);
  }
  if (evictionPolicy !== 'noeviction') return null;
  const finding = 'caches nothing more when its memory is full (maxmemory-policy noeviction)';
  return warning('memory', finding, toSet('maxmemory-policy allkeys-lru'));
}

function persistenceFault({ appendsToFile, savesSnapshots, failedToWrite }: RedisSettings): RedisFault | null {
  if (failedToWrite) {
    const finding = 'could not write to its disk lately, so that changes are lost when it restarts';
    const remedy = 'Its log says why: often the disk is full, or its folder belongs to another user.';
    return failure('persistence', finding, remedy);
  }
  if (appendsToFile !== false || savesSnapshots === null) return null;
  const remedy = toSet('appendonly yes');
  if (!savesSnapshots) return failure('persistence', 'loses all API keys when it restarts: it saves nothing', remedy);
  const finding = 'saves snapshots only: when it crashes, the last minutes are lost, and keys revoked then work again';
  return warning('persistence', finding, remedy);
}

/** Asks one server. Most hosted Redis refuse `CONFIG`: what only that says is null there. Rejects if `INFO` fails. */
export async function readRedisSettings({ client }: Pick<RedisServer, 'client'>): Promise<RedisSettings> {
  const savePoints = await client.config('GET', 'save').then(valueOf, () => null);
  return settingsOf(await client.info(), savePoints);
}

/** The settings that the answer to `INFO` holds. `savePoints`: the value of `save`; null if it is not known. */
export function settingsOf(info: string, savePoints: string | null) {
  const fields = new Map(Array.from(info.matchAll(/^(\w+):(.*?)\r?$/gm), ([, name, value]) => [name, value] as const));
  const text = (name: string): string | null => fields.get(name) ?? null;
  const number = (name: string): number | null => (/^\d+$/.test(text(name) ?? '') ? Number(text(name)) : null);
  const flag = (name: string, yes: string): boolean | null => (text(name) === null ? null : text(name) === yes);
  return {
    version: text('redis_version'),
    /** `standalone`, `cluster` or `sentinel`. */
    mode: text('redis_mode'),
    isReplica: flag('role', 'slave'),
    /** How many follow it now, if it is a primary. */
    replicas: number('connected_slaves'),
    /** The id of the running server: two addresses with the same one lead to the same memory. */
    runId: text('run_id'),
    /** Such as `noeviction`. */
    evictionPolicy: text('maxmemory_policy'),
    /** 0 for no limit. */
    maxMemoryBytes: number('maxmemory'),
    usedMemoryBytes: number('used_memory'),
    appendsToFile: flag('aof_enabled', '1'),
    savesSnapshots: savePoints === null ? null : savePoints !== '',
    /** Whether what was to be written to disk last could not be. */
    failedToWrite: ['rdb_last_bgsave_status', 'aof_last_write_status', 'aof_last_bgrewrite_status'].some(
      (name) => text(name) === 'err',
    ),
  };
}

/** From the reply to `CONFIG GET name`: the name and its value in turn. */
function valueOf(reply: unknown): string | null {
  const value: unknown = Array.isArray(reply) ? reply[1] : null;
  return typeof value === 'string' ? value : null;
}
