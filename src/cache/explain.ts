/** Explains to operators which copies answer a request, and what its next read would do. It only looks. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../time/clock.ts';
import type { MissReason, ReadReport } from './events.ts';
import { assess, visibleCopies, type FoundCopies, newerOf } from './copies.ts';
import { classOf } from './entry.ts';
import { type CacheRequest, hash32 } from './request.ts';
import type { Maintenance, MaintenanceWatch } from '../upstream/maintenance.ts';
import type { MemoryTier } from './memory-tier.ts';
import {
  audienceOf,
  type CachedCopy,
  freshnessOf,
  type FreshnessPolicy,
  isAtOnce,
  jitteredFreshMs,
  jitterOf,
  missReasonOf,
  type Plan,
  plan,
} from './plan.ts';
import { type FlightView, isOfKind, isVisible, type Tier, workspaceSetOf } from './reader.ts';
import type { FlightInspection, Inspection, KeptCopy, SharedCacheAdmin } from './shared-cache.ts';

/**
 * How the path of a public request is read:
 * - `request`: what the cache is asked for. `workspaceIds` is null if it depends on the reader and none was named.
 * - `refused`: the request gets no further than the gateway itself; `message` says why
 * - `viewer-needed`: what is asked depends on the reader
 */
export type Resolution =
  | {
      readonly kind: 'request';
      readonly route: string;
      readonly request: CacheRequest<unknown>;
      readonly workspaceIds: readonly string[] | null;
    }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'viewer-needed' };

export interface ExplainParts extends FreshnessPolicy {
  readonly memory: Pick<MemoryTier, 'inspect' | 'droppedFor'>;
  /** Null for a gateway that is alone. */
  readonly shared: Pick<SharedCacheAdmin, 'inspect' | 'inspectFlight'> | null;
  /** `audience`: null for any. */
  readonly flightOf: (key: string, audience: string | null) => FlightView;
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
  const viewer = { request, workspaceIds };
  const workspaceSet = workspaceIds === null ? null : workspaceSetOf({ workspaceIds });
  const shared = await inspectShared(key, workspaceSet, parts.shared);
  const inRedis = foundIn(shared, 'redis', viewer, parts);
  const look = () => {
    const local = memory.inspect(key, workspaceSet);
    const inMemory = foundIn(local, 'memory', viewer, parts);
    const maintenance = parts.maintenance.current();
    return { local, inMemory, maintenance, next: planOf([inMemory, inRedis], viewer, maintenance) };
  };
  const sharedFlight = await inspectFlight(key, audienceIn(look().next, viewer), parts.shared);
  // Memory is looked at last, in one go: none of it changes meanwhile.
  const { local, inMemory, maintenance, next } = look();
  const flight = flightOf(key, workspaceIds === null ? null : audienceIn(next, viewer));
  const dropped = memory.droppedFor(key);
  const lastMiss = lastMissOf(key);
  const previous = 'copy' in next ? next.copy : next.previous;
  const [own, redis] = [shownOf(local, viewer, parts), shownOf(shared, viewer, parts)];
  const isKnownForeign = inMemory.negative?.state === 'fresh' && inMemory.newest?.stored.entry.answer.kind !== 'absent';
  const justFailed = flight.hasJustFailed || sharedFlight.hasJustFailed;
  const store = storeState(next, maintenance, {
    'under-way': flight.sinceMs !== null,
    'just-failed': justFailed,
    leased: sharedFlight.leaseLeftMs !== null,
    refreshed: visibleTo(inRedis, viewer).copy?.state === 'fresh',
  });
  const miss = missReasonOf(previous, ttl.of(previous === null ? kind : classOf(kind, previous.stored.entry)), dropped);
  const isUnreadable = shared.state === 'asked' && redis === null && shared.isBroken;
  return {
    at: iso(clock.nowMs()),
    key,
    /** The class whose TTLs rule the answer: of the copy that was found, else of the request. */
    class: own?.class ?? redis?.class ?? kind,
    next: nextRead(next, { store, miss, isKnownForeign }),
    memory: own?.view ?? null,
    redis: {
      state: isUnreadable ? 'unreadable' : shared.state,
      entry: redis === null ? null : { ...redis.view, keptForMs: redis.keptForMs },
    },
    /** It is known that the record is of another workspace than those asked for: to this reader, there is none. */
    knownForeign: isKnownForeign,
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

interface Viewer {
  readonly request: CacheRequest<unknown>;
  readonly workspaceIds: readonly string[] | null;
}

type InTier = Pick<Inspection, 'entry' | 'negative'>;

const NOT_ASKED: Inspection = { entry: null, negative: null, isBroken: false };

/** `alone`: nothing is shared; `unreachable`: the shared cache can't be asked now. */
async function inspectShared(
  key: string,
  workspaceSet: string | null,
  shared: ExplainParts['shared'],
): Promise<Inspection & { readonly state: 'alone' | 'unreachable' | 'asked' }> {
  if (shared === null) return { ...NOT_ASKED, state: 'alone' };
  return await shared.inspect(key, workspaceSet).then(
    (inspection) => ({ ...inspection, state: 'asked' }),
    () => ({ ...NOT_ASKED, state: 'unreachable' }),
  );
}

/** `audience`: null if it is not known who asks. */
async function inspectFlight(
  key: string,
  audience: string | null,
  shared: ExplainParts['shared'],
): Promise<FlightInspection> {
  const none = { leaseLeftMs: null, hasJustFailed: false };
  if (shared === null || audience === null) return none;
  return await shared.inspectFlight(key, audience).catch(() => none);
}

/** The audience of the call that the next read makes; null if it is not known who asks. */
function audienceIn(next: Plan, { request, workspaceIds }: Viewer): string | null {
  const copy = copyOf(next);
  const isRenewal = copy?.stored.entry.answer.kind === 'found' && request.kind !== 'list';
  if (workspaceIds === null && !isRenewal) return null;
  return audienceOf(request, { workspaceIds: workspaceIds ?? [] }, copy);
}

function foundIn(
  { entry, negative }: InTier,
  tier: Tier,
  { request }: Viewer,
  parts: ExplainParts,
): FoundCopies<unknown> {
  return {
    newest: assess(request, entry?.stored ?? null, tier, parts),
    replacedAtMs: null,
    negative: assess(request, negative?.stored ?? null, tier, parts),
  };
}

/** The plan of the next read. The shared cache is asked if memory has nothing to be served at once. */
function planOf(
  [local, shared]: readonly [FoundCopies<unknown>, FoundCopies<unknown>],
  viewer: Viewer,
  maintenance: Maintenance | null,
): Plan {
  const first = plan(visibleTo(local, viewer), maintenance);
  return isAtOnce(first) ? first : plan(visibleTo(newerOf(local, shared), viewer), maintenance);
}

/** Without a reader, a record is explained as its owner would be served it. */
function visibleTo(found: FoundCopies<unknown>, { request, workspaceIds }: Viewer) {
  if (workspaceIds !== null) return visibleCopies(found, request, { workspaceIds });
  return { copy: found.newest?.stored.entry.answer.kind === 'found' ? found.newest : null, negative: null };
}

/** The copy that answers the reader: its own, or that there is none for it; else the one that it may not see. */
function shownOf({ entry, negative }: InTier, viewer: Viewer, parts: ExplainParts) {
  const own = entry === null ? null : shown(entry, viewer, parts);
  const absent = negative === null ? null : shown(negative, viewer, parts);
  const isAnswer = own?.view.answer === 'found' && own.view.visible !== false;
  return isAnswer ? own : (absent ?? own);
}

/** Null for what is no answer to the request. */
function shown({ stored, bytes, keptForMs }: KeptCopy, { request, workspaceIds }: Viewer, parts: ExplainParts) {
  if (!isOfKind(request, stored)) return null;
  const { entry, kind, tags, receivedAtMs, epoch } = stored;
  const { requestedAtMs } = entry;
  const isFound = entry.answer.kind === 'found';
  const cacheClass = classOf(kind, entry);
  const ttl = parts.ttl.of(cacheClass);
  const freshMs = jitteredFreshMs(ttl, jitterOf(request.keyHash, requestedAtMs));
  const { state, ageMs, ttlMs } = freshnessOf(request.keyHash, stored, parts, parts.clock.nowMs());
  const softPurged = parts.purges.since(epoch, tags) === 'soft';
  const until = (moreMs: number): string | null => (state === 'purged' ? null : iso(requestedAtMs + freshMs + moreMs));
  const view = {
    // The public word for a copy that is not served any more.
    state: state === 'unusable' ? 'expired' : state,
    answer: entry.answer.kind,
    /** Null if nobody is named to whom it might be served. */
    visible: workspaceIds === null ? null : !isFound || isVisible(request, stored, { workspaceIds }),
    /** Whose negative entry it is: of the readers of just these workspaces. Null for a record, which all readers share. */
    audience: isFound ? null : workspaceIds,
    ageMs,
    ttlMs,
    filledAt: iso(requestedAtMs),
    fetchedAt: iso(receivedAtMs),
    // The first read after that starts a refresh. After a soft purge the next read does.
    freshUntil: softPurged ? null : until(0),
    staleUntil: until(ttl.staleMs),
    errorUntil: until(Math.max(ttl.staleMs, ttl.errorMs)),
    jitterMs: ttl.freshMs - freshMs,
    softPurged,
    tags,
    bytes,
  };
  return { class: cacheClass, keptForMs, view };
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
  foreign: {
    behind: 'starts no refresh, because the store has just said that the record is of another workspace',
    not: 'the store has just said that the record is of another workspace',
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
  return maintenance === null ? 'foreign' : 'maintenance';
}

const TIERS = { memory: 'memory', redis: 'Redis' } as const;
const REASONS: Readonly<Record<MissReason, string>> = {
  'never-seen': 'no copy is held',
  expired: 'the last copy has expired',
  evicted: 'the last copy had to make room',
  purged: 'the last copy was purged',
  'not-cacheable': 'the times of the class keep nothing',
};

/**
 * A Plan in one plain sentence. `from`: where the answer comes from first; null if it fails. `store`: whether the store is
 * asked, behind the reader's back or while it waits. `miss`: why it misses; null if it is answered at once.
 */
function nextRead(
  next: Plan,
  facts: { readonly store: StoreState; readonly miss: MissReason; readonly isKnownForeign: boolean },
): { from: string | null; store: string; miss: MissReason | null; text: string } {
  const { miss } = facts;
  const state = STORE_STATES[facts.store];
  const copy = copyOf(next);
  const isFound = copy?.stored.entry.answer.kind === 'found';
  if (copy !== null && isAtOnce(next)) {
    const served = `The next read ${isFound ? 'is served' : 'is answered 404'} from ${TIERS[copy.tier]}`;
    const foreign = facts.isKnownForeign && !isFound ? ': the record is of a workspace that is not asked for' : '';
    const store = next.action === 'serve-and-refresh' && facts.store === 'idle' ? 'behind' : 'not-asked';
    const text = copy.state === 'fresh' ? `${served}${foreign}.` : `${served} and ${state.behind}.`;
    return { from: copy.tier, store, miss: null, text };
  }
  if ('wait' in state) {
    const or = copy === null ? '' : `, and is served the copy in ${TIERS[copy.tier]} if that fails or takes over 1 s`;
    const text = `The next read ${state.wait}${or}, because ${REASONS[miss]}.`;
    return { from: 'store', store: 'waited-for', miss, text };
  }
  if (copy === null) {
    const text = `The next read fails with 500 and Retry-After, because ${REASONS[miss]} and ${state.not}.`;
    return { from: null, store: 'not-asked', miss, text };
  }
  const verb = isFound ? 'is served the' : 'is answered 404 by the';
  const text = `The next read ${verb} expired copy in ${TIERS[copy.tier]}, because ${state.not}.`;
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
  readonly #misses = new LRUCache<number, LastMiss>({ max: 16_384 });

  /** Takes every read and ignores those that were answered at once. `atMs`: Unix milliseconds. */
  note({ keyHash, missReason }: Pick<ReadReport, 'keyHash' | 'missReason'>, atMs: number): void {
    if (missReason !== null) this.#misses.set(keyHash, { reason: missReason, atMs });
  }

  of(key: string): LastMiss | null {
    return this.#misses.get(hash32(key)) ?? null;
  }
}
