/** The backend of processes over one Redis, or over two: one for state, one for the response cache. */
import { Audit } from '../operations/audit.ts';
import { ttlEndEntry } from '../admin/cache-control.ts';
import { Stats } from '../operations/stats/stats.ts';
import { CacheBackend } from '../cache/redis/cache-backend.ts';
import { RecordCipher } from '../cache/redis/encryption.ts';
import { PurgeSweep } from '../cache/redis/purge-sweep.ts';
import { Changes } from '../cache/changes.ts';
import { type Erasure, erasureSchema, type Fleet, type Holding, holdingSchema } from '../cache/erase.ts';
import { type ChangesRoom, openChanges } from '../changes/open-changes.ts';
import { RedisFeed } from '../changes/redis-feed.ts';
import { redisReach, type RedisReachOptions } from '../changes/redis-reach.ts';
import { memoryDropper } from '../cache/purge.ts';
import { CACHE_CLASSES } from '../cache/ttl-policy.ts';
import { WhatIf } from '../cache/what-if/what-if.ts';
import type { Config } from '../config/config.ts';
import { keptOr, type LoadedConfig } from '../config/load.ts';
import { isCacheExposed } from '../config/cross-checks.ts';
import { MemoryRegistry, overlayLookup } from '../keys/memory-registry.ts';
import { Bridge03 } from '../journal/bridge-0.3.ts';
import { RedisJournal } from '../journal/redis-journal.ts';
import { RedisRegistry, type RedisRegistryOptions } from '../keys/redis-registry.ts';
import { createRequestLimiter } from '../keys/request-limiter.ts';
import type { Logger } from '../log/logger.ts';
import { FailoverLimiter } from '../quota/failover.ts';
import { RedisAddressError } from '../redis/address.ts';
import { RedisLink, type RedisRole } from '../redis/connection.ts';
import { Instances } from '../redis/instances.ts';
import { Questions, type QuestionsOptions } from '../redis/questions.ts';
import { StartError } from '../server/server.ts';
import { redisCommandHook } from '../telemetry/hooks.ts';
import { Eviction } from '../telemetry/eviction.ts';
import { RedisHealth, type TrackedRedis } from '../telemetry/redis-health.ts';
import { warnOfOtherStores, warnOfRedis } from '../telemetry/redis-warnings.ts';
import { createRedisCallRate } from '../upstream/call-rate.ts';
import { MaintenanceControl } from '../upstream/maintenance.ts';
import { auditLog, type Backend, type BackendOptions, instanceInfo } from './backend.ts';

/**
 * `url`: the state Redis. A Redis that does not answer keeps no gateway from starting: it is joined when it comes back.
 * Throws a StartError for an address that is none.
 */
export async function openRedisBackend(options: BackendOptions, url: string): Promise<Backend> {
  const { config, store, clock, timers, logger } = options;
  const { cacheUrl } = config.redis;
  const isOne = cacheUrl === null || cacheUrl === url;
  const redis = new RedisHealth({ ...options, isOne, siblings: options.workers });
  const [state, cacheLink] = openLinks(options, { url, cacheUrl: isOne ? null : cacheUrl });
  const audit = new Audit({ link: state, clock, sink: auditLog(logger) });
  const cipher = new RecordCipher(config.cache.encryptionKeys);
  const instances = new Instances({ link: state, about: instanceInfo(options), atLeast: config.server.workers });
  const self = instances.id;
  const { journal, bridge, maintenance } = openJournal(options, state, instances);
  const processes = (): number => instances.count();
  const links = { state, cache: cacheLink, isOne };
  const cache = await openCache(options, { ...links, journal, bridge, self, redis, audit, cipher, processes });
  const registry = openRegistry(options, { link: state, journal, witness: isOne ? null : cacheLink });
  const transientKeys = new MemoryRegistry(clock);
  warnOfOtherStores({ instances, store: store.identity, logger, timers });
  const ofStore = { link: state, store: store.identity, timers };
  const { maxRequestsPerSecond: perSecond } = config.upstream;
  if (perSecond !== null) store.guard.limitBy(createRedisCallRate({ ...ofStore, perSecond, processes, clock }));
  const quota = new FailoverLimiter({ link: state, self, clock, processes, hooks: redis.quotaHooks });
  const ofProcess = { ...ofStore, self };
  const onBroken = warnOnce(logger, 'a message of the fleet cannot be read, and is left out');
  const whatIf = new WhatIf(options, { ...ofProcess, peers: () => instances.peers(), onBroken });
  const { workers } = options;
  const stats = new Stats(clock, { ...ofProcess, siblings: workers === null ? null : () => workers.counts() });
  const changes = new Changes({ journal, clock });
  const sweep = sweepPurges(options, cache, instances);
  const secrets = followSecrets(options, { state, cache: cacheLink, cipher });
  const eviction = watchEviction(options, state, isOne);
  redis.track({ ...tracked(config, instances), links: [state, cacheLink], registry, eviction, ...secrets });
  const parts = [eviction, sweep, bridge, cache, registry, quota, whatIf, stats, instances, journal, state, cacheLink];
  return {
    keys: overlayLookup(transientKeys, registry),
    registry,
    transientKeys,
    quota,
    limiter: (limit) => createRequestLimiter({ ...limit, redis: state }),
    sharedCache: cache.sharedCache,
    journal,
    purges: cache.purges,
    changes,
    ...openChangesRoom(options, { link: state, journal, instances, changes }),
    ttlControl: cache.ttlControl,
    onTtlsConfigured: () => void cache.keepLonger(CACHE_CLASSES),
    useSecrets: secrets.useSecrets,
    maintenance,
    audit,
    whatIf,
    stats,
    instances,
    fleet: (reply) => openFleet({ link: state, instances, timers, reply }),
    redis,
    close: () => closeAll(parts),
  };
}

/** In this order. */
async function closeAll(parts: readonly { readonly close: () => Promise<void> | void }[]): Promise<void> {
  for (const part of parts) await part.close();
}

function watchEviction({ health, timers }: BackendOptions, link: RedisLink, isOne: boolean): Eviction {
  return new Eviction({ link, use: isOne ? 'both' : 'state', timers, onChange: () => health.update() });
}

function openChangesRoom(
  { config, clock, timers }: BackendOptions,
  parts: Omit<RedisReachOptions, 'timers'> & { readonly journal: RedisJournal; readonly changes: Changes },
): ChangesRoom {
  return openChanges({
    ...parts,
    feed: new RedisFeed({ ...parts, keepMs: config.changes.keepMs }),
    reach: redisReach({ ...parts, timers }),
    isAnnounced: config.changes.announced,
    unannouncedShare: () => null,
    clock,
    timers,
  });
}

function openFleet({
  instances,
  ...parts
}: Pick<QuestionsOptions<Erasure, Holding>, 'link' | 'timers' | 'reply'> & { readonly instances: Instances }): Fleet {
  const schemas = { question: erasureSchema, answer: holdingSchema };
  const questions = new Questions({ ...parts, ...schemas, name: 'erase', self: instances.id });
  return {
    known: (gone) => instances.known(gone),
    ask: (...question) => questions.ask(...question),
  };
}

function openJournal({ maintenance, clock, timers, logger }: BackendOptions, link: RedisLink, instances: Instances) {
  const journal = new RedisJournal({ link, clock, timers, onLost: () => logger.error(STATE_LOST) });
  const isOldThere = (): boolean => instances.list().some(({ usesJournal }) => !usesJournal);
  const bridge = new Bridge03({ journal, link, isOldThere, clock, timers });
  return { journal, bridge, maintenance: new MaintenanceControl(journal, maintenance, clock) };
}

/** `witness`: the cache Redis, if it is another one. */
function openRegistry(
  { config, health, clock, timers, logger }: BackendOptions,
  parts: Pick<RedisRegistryOptions, 'link' | 'journal' | 'witness'>,
): RedisRegistry {
  return new RedisRegistry({
    ...parts,
    clock,
    timers,
    graceMs: config.keys.graceMs,
    onLoss: () => health.update('keys'),
    onBrokenRecord: (error) => logger.error({ err: error }, 'a key in Redis is broken'),
    onIdsRestored: (ids) => logger.error({ ids }, 'Redis had lost ids of keys: they are written anew from the keys'),
  });
}

/** The links to the state Redis and to the cache Redis. `cacheUrl`: null if one Redis has both roles. */
function openLinks(
  { config, readFile, metrics, logger }: BackendOptions,
  { url, cacheUrl }: { readonly url: string; readonly cacheUrl: string | null },
): readonly [state: RedisLink, cache: RedisLink] {
  const { timeoutMs } = config.redis;
  const onCommand = redisCommandHook(metrics);
  const settings = { state: 'REDIS_URL', cache: cacheUrl === null ? 'REDIS_URL' : 'REDIS_CACHE_URL' } as const;
  const connect = (role: RedisRole, address: string): RedisLink => {
    try {
      return new RedisLink({ url: address, readFile, timeoutMs, onCommand, role, setting: settings[role] });
    } catch (error) {
      if (!(error instanceof RedisAddressError)) throw error;
      throw new StartError(`${settings[role]}: ${error.message}.`);
    }
  };
  const state = connect('state', url);
  const cache = connect('cache', cacheUrl ?? url);
  // R6: a request that waited for one of them does not wait for the other too.
  state.onTimeout(() => void cache.doubt());
  const hasCacheBudget = config.cache.redisBytes !== null;
  warnOfRedis({ state, cache: cacheUrl === null ? null : cache, hasCacheBudget, logger });
  return [state, cache];
}

/** What `/readyz` goes by, besides the links. */
function tracked(
  config: Config,
  instances: Instances,
): Pick<TrackedRedis, 'processes' | 'clockAheadMs' | 'graceMs' | 'hasDemoKeys'> {
  return {
    processes: () => instances.count(),
    clockAheadMs: () => instances.clockAheadMs,
    graceMs: config.keys.graceMs,
    hasDemoKeys: config.upstream.url === null,
  };
}

/** Goes over to the secrets of each new configuration. */
function followSecrets(
  { config: started, logger }: BackendOptions,
  { state, cache, cipher }: Pick<CacheParts, 'state' | 'cache' | 'cipher'>,
) {
  let config = started;
  return {
    useSecrets: (loaded: LoadedConfig): void => {
      ({ config } = loaded);
      cipher.use(config.cache.encryptionKeys);
      const { url, cacheUrl } = config.redis;
      const readFile = keptOr(loaded.files);
      if (url === null) return;
      try {
        state.reconnect({ url, readFile });
        cache.reconnect({ url: cacheUrl ?? url, readFile });
      } catch (error) {
        // The address is in the configuration file, and nobody has read the files that it names before.
        if (!(error instanceof RedisAddressError)) throw error;
        logger.error(
          { reason: error.message },
          'the new address of Redis cannot be used; its connections stay as they are',
        );
      }
    },
    protection: (): string => {
      if (config.cache.encryptionKeys.length > 0) return 'cached records are encrypted';
      const exposure = isCacheExposed(config) ? ', and cross the network in the clear (no TLS)' : '';
      return `cached records are not encrypted${exposure}`;
    },
  };
}

const CACHE_FAILURES = {
  decode: 'the cache Redis holds what cannot be read',
  keep: 'stored copies could not be kept for a longer TTL: set it again once Redis answers',
} as const;

const STATE_LOST =
  'Redis has lost what the gateways keep there: it was emptied, or an old copy was restored. Keys, limits and TTLs are what it holds now; every cached answer counts as purged. Restore its data, or bring the keys back with `evalgate state import`.';

interface CacheParts {
  readonly journal: RedisJournal;
  readonly bridge: Bridge03;
  readonly state: RedisLink;
  readonly cache: RedisLink;
  /** The id of this process. */
  readonly self: string;
  readonly isOne: boolean;
  readonly redis: RedisHealth;
  readonly audit: Audit;
  readonly cipher: RecordCipher;
  readonly processes: () => number;
}

function openCache(options: BackendOptions, { redis, audit, ...parts }: CacheParts): Promise<CacheBackend> {
  const { config, store, memory, timers, metrics, logger } = options;
  const warnOfUndecryptable = warnOnce(logger, 'a cached copy cannot be decrypted: it and its like count as none');
  return CacheBackend.open({
    ...options,
    ...parts,
    maxBytes: config.cache.redisBytes,
    maxAnswerBytes: config.upstream.maxResponseBytes,
    store: store.identity,
    onFailed: (operation, error) => logger.warn({ operation, err: error }, CACHE_FAILURES[operation]),
    onUndecryptable: ({ reason, message }) => {
      metrics.undecryptable.inc({ reason });
      warnOfUndecryptable(message);
    },
    onConnectivity: redis.onConnectivity,
    onHardPurge: memoryDropper(memory, timers),
    onTtlEnd: (end) => void audit.record(ttlEndEntry(end)),
    onBudget: redis.onBudget,
  });
}

function sweepPurges(
  { store, clock, timers, logger }: BackendOptions,
  { purges, sharedCache }: CacheBackend,
  instances: Instances,
): PurgeSweep {
  return new PurgeSweep({
    purges,
    sharedCache,
    // The journal is that of all processes, so all of them must be in front of one store.
    isElected: () => {
      const all = instances.list().filter(({ usesJournal }) => usesJournal);
      return all[0]?.id === instances.id && all.every((one) => one.store === store.identity);
    },
    clock,
    timers,
    onFailed: (error) =>
      logger.warn({ err: error }, 'what was purged could not be deleted from Redis; it is tried again'),
  });
}

/** Warns once about each of them: it keeps coming. */
function warnOnce(logger: Logger, message: string): (what: string) => void {
  const known = new Set<string>();
  return (what) => {
    if (known.has(what)) return;
    known.add(what);
    logger.warn({ what }, message);
  };
}
