/** Opens the cache: its tiers, what changes them, and the reads through them. */
import type { Config } from '../config/config.ts';
import type { Journal, Moved } from '../journal/journal.ts';
import type { Instances } from '../redis/instances.ts';
import type { Links } from '../redis/links.ts';
import { renewalRateKey } from '../redis/names.ts';
import { Questions } from '../redis/questions.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import type { MaintenanceWatch } from '../upstream/maintenance.ts';
import { createCallRate } from '../upstream/call-rate.ts';
import type { Fetch } from '../upstream/store.ts';
import type { Address } from './address.ts';
import { ChangedRenewal, LastReads } from './changed-renewal.ts';
import { Changes, type ChangesOptions } from './changes.ts';
import { type Erasure, erasureSchema, type Fleet, type Holding, holdingOf, holdingSchema } from './erase.ts';
import type { MarkOf } from './change-table.ts';
import { broadcast, type CacheListener } from './events.ts';
import { defaultMemoryBytes, MemoryTier } from './memory-tier.ts';
import { memoryDropper, memoryMarker } from './purge.ts';
import { PurgeLog } from './purge-log.ts';
import { ReadThrough } from './read-through.ts';
import { openSharedTier, type SharedTier, type SharedTierHooks } from './redis/open.ts';
import { MemorySeenCalls, noteForgotten, type SeenCalls } from './seen-calls.ts';
import { type SharedCacheAdmin, UNSHARED } from './shared-cache.ts';
import { TtlControl } from './ttl-control.ts';
import { CACHE_CLASSES, TtlPolicy, type TtlEnd } from './ttl-policy.ts';
import { WhatIf } from './what-if/what-if.ts';

export interface CacheHooks extends SharedTierHooks {
  /** Called in one process of all for each class whose TTLs have ended by themselves. */
  readonly onTtlEnd: (end: TtlEnd) => void;
  /** Another process sent what cannot be read: it is left out. */
  readonly onBrokenMessage: (what: string) => void;
}

/** The store as the cache knows it. */
export interface CachedStore {
  /** Names it among others, in letters and digits. */
  readonly identity: string;
  readonly fetch: Fetch;
  /** Whether it may be called at once, and nobody waits for it. */
  readonly hasRoom: () => boolean;
}

export interface CacheContext {
  readonly config: Pick<Config, 'cache' | 'upstream'>;
  readonly store: CachedStore;
  readonly journal: Journal;
  /** Null for a gateway without Redis. */
  readonly links: Links | null;
  readonly instances: Instances;
  readonly maintenance: MaintenanceWatch;
  readonly listeners: readonly CacheListener[];
  readonly hooks: CacheHooks;
  readonly clock: Clock;
  readonly timers: Timers;
}

export interface CacheRoom {
  readonly reads: ReadThrough;
  /** Changes of records in the store. */
  readonly changes: Changes;
  readonly memory: MemoryTier;
  /** Null for a gateway without Redis. */
  readonly shared: SharedCacheAdmin | null;
  readonly purges: PurgeLog;
  readonly ttl: TtlPolicy;
  readonly ttlControl: TtlControl;
  readonly whatIf: WhatIf;
  /** The processes that serve together, to be asked what they hold. */
  readonly fleet: Fleet;
  /** Goes over to another configuration. */
  configure(cache: Config['cache']): void;
  /** Hands over to other processes what was seen for what-if. The journal and the links go on. */
  close(): Promise<void>;
}

/** How much longer than a call to the store (`upstream.timeout`) a wait for its end may take, here or elsewhere. */
const FLIGHT_MARGIN_MS = 5000;

/** To be called in the turn of the event loop in which the journal was opened. */
export function openCache(context: CacheContext): CacheRoom {
  const { config, store, journal, links, instances, maintenance, listeners, hooks, clock, timers } = context;
  const memory = new MemoryTier({ maxBytes: config.cache.memoryBytes ?? defaultMemoryBytes(), clock });
  const ttl = new TtlPolicy(clock, config.cache.classes);
  const seenHere = new MemorySeenCalls();
  const purges = openPurges(context, memory, seenHere);
  const stopMoves = journal.on('moved', (moved) => memory.end(moved.key, moved.workspaces, moved.requestedAtMs));
  const settings = { ...config.cache, maxAnswerBytes: config.upstream.maxResponseBytes };
  const ofStore = { store: store.identity, instances, clock, timers };
  const tier = links && openSharedTier({ ...ofStore, links, journal, settings, memory, ttl, purges, hooks });
  const ttlControl = new TtlControl({
    journal,
    policy: ttl,
    clock,
    timers,
    onEnd: hooks.onTtlEnd,
    onChanged: async (cacheClass) => tier?.keepLonger([cacheClass]),
  });
  const whatIf = openWhatIf(context, ttl);
  const lastReads = config.cache.refreshRate === 0 ? null : new LastReads(clock);
  const events = broadcast([...listeners, whatIf.hooks, ...(lastReads === null ? [] : [lastReads.listener])]);
  const changes = openChanges({ journal, purges, memory, seenHere, tier, events, clock });
  const reads = new ReadThrough({
    store: { ...store, maintenance, maxWaitMs: config.upstream.timeoutMs + FLIGHT_MARGIN_MS },
    memory,
    sharedCache: tier?.reads ?? UNSHARED,
    endEverywhere: (moved) => endEverywhere(moved, journal, tier),
    ttl,
    purges,
    changes,
    clock,
    timers,
    events,
  });
  const stopRenewal = lastReads && renewChanged(context, { lastReads, reads, memory, purges, ttl });
  return {
    reads,
    changes,
    memory,
    shared: tier?.copies ?? null,
    purges,
    ttl,
    ttlControl,
    whatIf,
    fleet: openFleet(context, (question) => holdingOf(question, { memory, purges, cache: reads })),
    configure: (cache) => {
      tier?.encryptWith(cache.encryptionKeys);
      // Stored copies may have to be kept for longer.
      if (ttl.configure(cache.classes)) void tier?.keepLonger(CACHE_CLASSES);
    },
    close: async () => {
      for (const stop of [stopRenewal, stopMoves]) stop?.();
      tier?.close();
      ttlControl.close();
      await whatIf.close();
    },
  };
}

/** Counted first where the copies were ended: so they cannot come back unnoticed (redis/rollback-guard.ts). */
async function endEverywhere(moved: Moved, journal: Journal, tier: SharedTier | null): Promise<unknown> {
  const endings = await tier?.copies.addEnding().catch(() => []);
  return await journal.append({ kind: 'moved', ...moved, endings });
}

/** `seenHere`: what was seen of calls, for a gateway without Redis. */
function openPurges(
  { journal, links, clock, timers }: CacheContext,
  memory: MemoryTier,
  seenHere: SeenCalls,
): PurgeLog {
  const mark = memoryMarker(memory);
  const onForgetting = (marks: readonly MarkOf[]): void => {
    mark(marks);
    for (const one of marks) void noteForgotten(one, seenHere);
  };
  const onHard = memoryDropper(memory, timers);
  return new PurgeLog({ journal, clock, onHard, onForgetting, isAlone: links === null });
}

type ChangesContext = Pick<ChangesOptions, 'journal' | 'purges' | 'memory' | 'clock'> & {
  readonly seenHere: SeenCalls;
  readonly tier: SharedTier | null;
  readonly events: Required<CacheListener>;
};

function openChanges({ seenHere, tier, events, ...parts }: ChangesContext): Changes {
  return new Changes({
    ...parts,
    seenCalls: tier?.seenCalls ?? seenHere,
    onFailed: (operation, error) => events.onSharedCacheFailed({ operation, error }),
  });
}

/** Renews what the store announces to have changed, from now on. Returns what stops that. */
function renewChanged(
  { config, store, journal, links, instances, maintenance, clock, timers }: CacheContext,
  {
    memory,
    purges,
    ...parts
  }: Pick<CacheRoom, 'memory' | 'purges' | 'reads' | 'ttl'> & { readonly lastReads: LastReads },
): () => void {
  const processes = (): number => instances.count();
  const shared = links && { link: links.state, key: renewalRateKey(store.identity), processes };
  const rate = createCallRate({ perSecond: config.cache.refreshRate, shared, clock, timers });
  const againInMs = (address: Address): number | null => {
    const copy = memory.peek(address);
    return copy === undefined ? null : purges.changeTable.lagOf(copy, clock.nowMs());
  };
  const renewal = new ChangedRenewal({ ...parts, againInMs, rate, hasRoom: store.hasRoom, maintenance, clock, timers });
  // After the purge log, so that the changes are in force.
  const stop = journal.on('changes', (event) => renewal.onChanges(event));
  return () => {
    stop();
    renewal.close();
  };
}

function openWhatIf({ store, links, instances, hooks, clock, timers }: CacheContext, ttl: TtlPolicy): WhatIf {
  if (links === null) return new WhatIf({ clock, ttl });
  const { id: self } = instances;
  const peers = (): readonly string[] => instances.peers();
  const ofProcess = { link: links.state, store: store.identity, self, peers, timers };
  return new WhatIf({ clock, ttl }, { ...ofProcess, onBroken: hooks.onBrokenMessage });
}

/** `reply`: what this process holds. */
function openFleet({ links, instances, timers }: CacheContext, reply: (asked: Erasure) => Promise<Holding>): Fleet {
  const known = (gone: readonly string[]): Promise<readonly string[]> => instances.known(gone);
  const { id: self } = instances;
  if (links === null) return { known, ask: async (question) => new Map([[self, await reply(question)]]) };
  const schemas = { question: erasureSchema, answer: holdingSchema };
  const questions = new Questions({ link: links.state, self, timers, name: 'erase', ...schemas, reply });
  return { known, ask: (question, expected, withinMs) => questions.ask(question, expected, withinMs) };
}
