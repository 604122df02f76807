/** Explains to operators which copies answer a request, and what its next read would do. It only looks. */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import type { Clock } from '../time/clock.ts';
import type { Maintenance } from '../journal/journal.ts';
import type { MaintenanceWatch } from '../upstream/maintenance.ts';
import { workspaceSetOf, type WorkspaceSet } from './address.ts';
import { assess } from './copies.ts';
import type { ChangeOrigin } from './change-table.ts';
import { classOf, isFor, isNewer, isOfKind, type StoredEntry } from './entry.ts';
import type { MissReason, ReadReport } from './events.ts';
import type { MemoryTier } from './memory-tier.ts';
import {
  type CachedCopy,
  flightSet,
  freshnessOf,
  type FreshnessPolicy,
  isAtOnce,
  jitteredFreshMs,
  jitterOf,
  missReasonOf,
  newerCopy,
  type Plan,
  plan,
} from './plan.ts';
import type { PurgeLog } from './purge-log.ts';
import type { FlightView } from './reader.ts';
import { type CacheRequest, hash32 } from './request.ts';
import type { FlightInspection, Inspected, Inspection, KeptCopy, SharedCacheAdmin } from './shared-cache.ts';

/**
 * How the path of a public request is read:
 * - `request`: what the cache is asked for. `workspaceIds` is null if it depends on the reader and none was named.
 * - `refused`: the request gets no further than the gateway itself; `message` says why
 * - `reader-needed`: what is asked depends on the reader
 */
export type Resolution =
  | {
      readonly kind: 'request';
      readonly route: string;
      readonly request: CacheRequest<unknown>;
      readonly workspaceIds: readonly string[] | null;
    }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'reader-needed' };

export interface ExplainParts extends FreshnessPolicy {
  readonly purges: Pick<PurgeLog, 'since' | 'changeOf' | 'isAnnouncedSince'>;
  readonly memory: Pick<MemoryTier, 'inspect' | 'droppedFor'>;
  /** Null for a gateway that is alone. */
  readonly shared: Pick<SharedCacheAdmin, 'inspect' | 'inspectFlight'> | null;
  /** `set`: null for any. */
  readonly flightOf: (key: string, set: WorkspaceSet | null) => FlightView;
  readonly lastMissOf: (key: string) => LastMiss | null;
  readonly maintenance: MaintenanceWatch;
  readonly clock: Clock;
}

/**
 * The facts in the form in which operators are shown them: durations in milliseconds, times in ISO 8601, no record.
 * `workspaceIds`: those that are asked for, in lower case; null if it is not known who asks. Never rejects.
 */
export async function explain(
  request: CacheRequest<unknown>,
  workspaceIds: readonly string[] | null,
  parts: ExplainParts,
) {
  const { key, kind } = request;
  const { ttl, clock, memory, flightOf, lastMissOf } = parts;
  const reader = { request, set: workspaceIds === null ? null : workspaceSetOf({ workspaceIds }) };
  const shared = await inspectShared(key, reader.set, parts.shared);
  const look = () => {
    const local = memory.inspect(key, reader.set);
    const inMemory = assess(reader, newestOf(local, reader, clock.nowMs())?.stored ?? null, 'memory', parts);
    // Freshness is that of this moment.
    const inRedis = assess(reader, newestOf(shared, reader, clock.nowMs())?.stored ?? null, 'redis', parts);
    const maintenance = parts.maintenance.current();
    return { local, inRedis, maintenance, next: planOf(inMemory, inRedis, maintenance) };
  };
  const sharedFlight = await inspectFlight(key, flightSetOf(look().next, reader), parts.shared);
  // Memory is looked at last, in one go: none of it changes meanwhile.
  const { local, inRedis, maintenance, next } = look();
  const set = flightSetOf(next, reader);
  const flight = flightOf(key, workspaceIds === null ? null : set);
  const dropped = memory.droppedFor(key);
  const lastMiss = lastMissOf(key);
  const previous = 'copy' in next ? next.copy : next.previous;
  const own = shown(newestOf(local, reader, clock.nowMs()), reader, parts);
  const redis = shown(newestOf(shared, reader, clock.nowMs()), reader, parts);
  const justFailed = flight.hasJustFailed || sharedFlight.hasJustFailed;
  const store = storeState(next, maintenance, {
    'under-way': flight.sinceMs !== null,
    'just-failed': justFailed,
    leased: sharedFlight.leaseLeftMs !== null,
    refreshed: inRedis?.state === 'fresh',
  });
  const miss = missReasonOf(previous, ttl.of(previous === null ? kind : classOf(kind, previous.stored.entry)), dropped);
  const isUnreadable = shared.state === 'asked' && redis === null && shared.isBroken;
  return {
    at: iso(clock.nowMs()),
    key,
    /** Under whom there are copies: their workspaces, or the set of workspaces of a list. */
    owners: [...new Set([...local.copies, ...shared.copies].map(({ stored }) => stored.owner))],
    /** The class whose TTLs rule the answer: of the copy that was found, else of the request. */
    class: own?.class ?? redis?.class ?? kind,
    next: nextRead(next, { store, miss }),
    memory: own?.view ?? null,
    redis: {
      state: isUnreadable ? 'unreadable' : shared.state,
      entry: redis === null ? null : { ...redis.view, keptForMs: redis.keptForMs },
    },
    flight: {
      since: flight.sinceMs === null ? null : iso(flight.sinceMs),
      leaseLeftMs: sharedFlight.leaseLeftMs,
      justFailed,
    },
    lastMiss: lastMiss === null ? null : { reason: lastMiss.reason, at: iso(lastMiss.atMs) },
    evicted: dropped === 'evicted',
    maintenance: maintenance === null ? null : { until: iso(maintenance.untilMs), by: maintenance.by },
  };
}

function iso(atMs: number): string {
  return new Date(atMs).toISOString();
}

/** For whom a request is explained; without a set, as an owner of a copy would be served. */
interface ExplainedTo {
  readonly request: CacheRequest<unknown>;
  readonly set: WorkspaceSet | null;
}

const NOT_ASKED: Inspection = { copies: [], negative: null, isBroken: false };

/** `alone`: nothing is shared; `unreachable`: the shared cache can't be asked now. */
async function inspectShared(
  key: string,
  set: WorkspaceSet | null,
  shared: ExplainParts['shared'],
): Promise<Inspection & { readonly state: 'alone' | 'unreachable' | 'asked' }> {
  if (shared === null) return { ...NOT_ASKED, state: 'alone' };
  return await shared.inspect(key, set).then(
    (inspection) => ({ ...inspection, state: 'asked' }),
    () => ({ ...NOT_ASKED, state: 'unreachable' }),
  );
}

/** `set`: null if it is not known for whom a call would be made. */
async function inspectFlight(
  key: string,
  set: WorkspaceSet | null,
  shared: ExplainParts['shared'],
): Promise<FlightInspection> {
  const none = { leaseLeftMs: null, hasJustFailed: false };
  if (shared === null || set === null) return none;
  return await shared.inspectFlight(key, set).catch(() => none);
}

/** The set of the call that the next read makes; null if it is not known who asks. */
function flightSetOf(next: Plan, { set }: ExplainedTo): WorkspaceSet | null {
  const copy = copyOf(next);
  if (set !== null) return flightSet(set, copy);
  return copy === null ? null : { ids: [copy.stored.owner], name: copy.stored.owner };
}

/** The last answer that a tier has for the reader. */
function newestOf({ copies, negative }: Inspected, { request, set }: ExplainedTo, nowMs: number): KeptCopy | null {
  const own = set === null ? copies : copies.filter(({ stored }) => isFor(stored, set));
  return [...own, ...(negative === null ? [] : [negative])]
    .filter(({ stored }) => isOfKind(request, stored))
    .reduce<KeptCopy | null>(
      (newest, one) => (isNewer(one.stored, newest?.stored ?? null, nowMs) ? one : newest),
      null,
    );
}

/** The plan of the next read. The shared cache is asked if memory has nothing to be served at once. */
function planOf(local: CachedCopy | null, shared: CachedCopy | null, maintenance: Maintenance | null): Plan {
  const first = plan(local, maintenance);
  return isAtOnce(first) ? first : plan(newerCopy(local, shared), maintenance);
}

/** Null for nothing. */
function shown(copy: KeptCopy | null, { request, set }: ExplainedTo, parts: ExplainParts) {
  if (copy === null) return null;
  const { stored, bytes, keptForMs } = copy;
  const { entry, kind, owner, tags, receivedAtMs, position } = stored;
  const { requestedAtMs } = entry;
  const cacheClass = classOf(kind, entry);
  const ttl = parts.ttl.of(cacheClass);
  const freshMs = jitteredFreshMs(ttl, jitterOf(request.keyHash, requestedAtMs));
  const { state, ageMs, ttlMs } = freshnessOf({ request, set }, stored, parts, parts.clock.nowMs());
  const softPurged = parts.purges.since(position, tags) === 'soft';
  const until = (moreMs: number): string | null => (state === 'purged' ? null : iso(requestedAtMs + freshMs + moreMs));
  const view = {
    // The public word for a copy that is not served any more.
    state: state === 'unusable' ? 'expired' : state,
    answer: entry.answer.kind,
    /** Under whom it is filed: the workspace of a record; the set of a list, or of the readers of a negative entry. */
    owner,
    ageMs,
    ttlMs,
    filledAt: iso(requestedAtMs),
    fetchedAt: iso(receivedAtMs),
    // The first read after that starts a refresh. After a soft purge the next read does.
    freshUntil: softPurged || state === 'changed' ? null : until(0),
    staleUntil: state === 'changed' ? null : until(ttl.staleMs),
    errorUntil: until(Math.max(ttl.staleMs, ttl.errorMs)),
    jitterMs: ttl.freshMs - freshMs,
    softPurged,
    changed: state === 'changed' ? originIn(stored, parts) : null,
    tags,
    bytes,
  };
  return { class: cacheClass, keptForMs, view };
}

/** Who has said that the record has changed since the copy. */
function originIn(stored: StoredEntry, { purges }: ExplainParts): ChangeOrigin {
  return purges.isAnnouncedSince(stored) ? 'announced' : 'shown';
}

/**
 * How the next read finds the store, and what it does then: about a refresh behind the copy that it is served at once, and
 * if there is none: it waits, or has to do without for that reason.
 */
const STORE_STATES = {
  maintenance: {
    behind: 'starts no refresh during the maintenance',
    not: 'the store is asked nothing during the maintenance',
  },
  'under-way': {
    behind: 'leaves the refresh to the one that is under way',
    wait: 'waits for the call to the store that is under way here',
  },
  'just-failed': {
    behind: 'starts no refresh, because the last one has just failed',
    not: 'the last call to the store has just failed and is not repeated yet',
  },
  leased: {
    behind: 'waits behind for the refresh that another process has under way',
    wait: 'waits for the call to the store that another process has under way',
  },
  refreshed: {
    behind: 'takes over the fresh copy that another process has stored in Redis',
    wait: 'waits for the fresh copy that another process has stored in Redis',
  },
  idle: { behind: 'starts one refresh behind', wait: 'asks the store and waits for its answer' },
} as const satisfies Record<
  string,
  { readonly behind: string } & ({ readonly wait: string } | { readonly not: string })
>;
type StoreState = keyof typeof STORE_STATES;

/** The first that holds, in this order. */
const IN_FLIGHT = ['under-way', 'just-failed', 'leased', 'refreshed'] as const;

function storeState(
  { action }: Plan,
  maintenance: Maintenance | null,
  facts: Readonly<Record<(typeof IN_FLIGHT)[number], boolean>>,
): StoreState {
  if (action === 'fetch' || action === 'serve-and-refresh') return IN_FLIGHT.find((each) => facts[each]) ?? 'idle';
  return maintenance === null ? 'idle' : 'maintenance';
}

const TIERS = { memory: 'memory', redis: 'Redis' } as const;
const REASONS: Readonly<Record<MissReason, string>> = {
  'never-seen': 'no copy is held',
  expired: 'the last copy has expired',
  evicted: 'the last copy had to make room',
  purged: 'the last copy was purged',
  changed: 'the record has changed since the last copy',
  'not-cacheable': 'the times of the class keep nothing',
};

/**
 * A Plan in one plain sentence. `from`: where the answer comes from first; null if it fails. `store`: whether the store is
 * asked, behind the reader's back or while it waits. `miss`: why it misses; null if it is answered at once.
 */
function nextRead(
  next: Plan,
  facts: { readonly store: StoreState; readonly miss: MissReason },
): { from: string | null; store: string; miss: MissReason | null; text: string } {
  const { miss } = facts;
  const state = STORE_STATES[facts.store];
  const copy = copyOf(next);
  const isFound = copy?.stored.entry.answer.kind === 'found';
  if (copy !== null && isAtOnce(next)) {
    const served = `The next read ${isFound ? 'is served' : 'is answered 404'} from ${TIERS[copy.tier]}`;
    const store = next.action === 'serve-and-refresh' && facts.store === 'idle' ? 'behind' : 'not-asked';
    const text = copy.state === 'fresh' ? `${served}.` : `${served} and ${state.behind}.`;
    return { from: copy.tier, store, miss: null, text };
  }
  if ('wait' in state) {
    const late = copy?.state === 'changed' ? 'if that fails' : 'if that fails or takes over 1 s';
    const or = copy === null ? '' : `, and is served the copy in ${TIERS[copy.tier]} ${late}`;
    const text = `The next read ${state.wait}${or}, because ${REASONS[miss]}.`;
    return { from: 'store', store: 'waited-for', miss, text };
  }
  if (copy === null) {
    const text = `The next read fails with 500 and Retry-After, because ${REASONS[miss]} and ${state.not}.`;
    return { from: null, store: 'not-asked', miss, text };
  }
  const verb = isFound ? 'is served the' : 'is answered 404 by the';
  const old = copy.state === 'changed' ? 'outdated' : 'expired';
  const text = `The next read ${verb} ${old} copy in ${TIERS[copy.tier]}, because ${state.not}.`;
  return { from: copy.tier, store: 'not-asked', miss, text };
}

/** The copy that is served, at once or if the store can't be had. */
function copyOf(next: Plan): CachedCopy | null {
  if (next.action === 'refuse') return null;
  return next.action === 'fetch' ? next.fallback : next.copy;
}

export interface LastMiss {
  readonly reason: MissReason;
  /** Unix milliseconds. */
  readonly atMs: number;
}

/** Why and when the last read of a key missed in this process, for the keys that missed lately. */
export class LastMisses {
  /** By hash: a collision only makes a report less exact. */
  readonly #misses = new LRUCache<number, LastMiss>(atMost(16_384));

  /** Takes every read and ignores those that were answered at once. `atMs`: Unix milliseconds. */
  note({ keyHash, missReason }: Pick<ReadReport, 'keyHash' | 'missReason'>, atMs: number): void {
    if (missReason !== null) this.#misses.set(keyHash, { reason: missReason, atMs });
  }

  of(key: string): LastMiss | null {
    return this.#misses.get(hash32(key)) ?? null;
  }
}
