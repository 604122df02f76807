/** Explains to operators which copies answer a request, and what its next read would do. It only looks. */
import type { Clock } from '../clock.ts';
import type { MissReason } from '../telemetry/events.ts';
import { assess, authorize, type FoundCopies, newerOf } from './copies.ts';
import { classOf, type StoredEntry } from './entry.ts';
import type { LastMiss } from './last-misses.ts';
import type { Maintenance, MaintenanceWatch } from './maintenance.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { Tag } from './purge-log.ts';
import {
  type CachedCopy,
  type Freshness,
  freshnessOf,
  type FreshnessPolicy,
  type VisibleCopies,
  isAtOnce,
  jitteredFreshMs,
  jitterOf,
  missReasonOf,
  type Plan,
  plan,
} from './plan.ts';
import type { FlightView, Reader, Tier } from './reader.ts';
import type { CacheRequest } from './request.ts';
import type { Inspection, SharedCacheAdmin } from './shared-cache.ts';
import type { CacheClass, CacheTtl } from './ttl-policy.ts';
import { isOfKind, isVisible, workspaceSetOf } from './visibility.ts';

export interface ExplainParts extends FreshnessPolicy {
  readonly memory: Pick<MemoryTier, 'peek' | 'peekNegative' | 'wasEvicted'>;
  /** Null for a gateway that is alone. */
  readonly shared: Pick<SharedCacheAdmin, 'inspect'> | null;
  readonly flightOf: (key: string, reader: Pick<Reader, 'workspaceIds'> | null) => FlightView;
  readonly lastMissOf: (key: string) => LastMiss | null;
  readonly maintenance: MaintenanceWatch;
  readonly clock: Clock;
}

/** A copy in one tier. */
export interface Copy extends Freshness {
  readonly isFound: boolean;
  readonly class: CacheClass;
  /** Whether it may be served to the reader for whom this is explained; null if there is none. */
  readonly isVisible: boolean | null;
  readonly requestedAtMs: number;
  readonly receivedAtMs: number;
  readonly tags: readonly Tag[];
  /** Its size in the tier, with everything derived from it. */
  readonly bytes: number;
  /** A soft purge has ended its freshness. */
  readonly isOutdated: boolean;
  /** By how much this entry's freshness is shorter than its class's. */
  readonly jitterMs: number;
  readonly freshUntilMs: number;
  readonly staleUntilMs: number;
  readonly errorUntilMs: number;
}

/** `alone`: nothing is shared; `unreachable`: the shared cache can't be asked now. */
export type SharedView =
  | { readonly state: 'alone' | 'unreachable' }
  | {
      readonly state: 'asked';
      readonly copy: (Copy & { readonly keptForMs: number | null }) | null;
      readonly isBroken: boolean;
      readonly leaseLeftMs: number | null;
      readonly hasJustFailed: boolean;
    };

export interface Explanation {
  readonly atMs: number;
  readonly key: string;
  /** The class whose TTLs rule the answer: of the copy that was found, else of the request. */
  readonly class: CacheClass;
  readonly ttl: CacheTtl;
  readonly memory: Copy | null;
  /** It is known that the record is of another workspace than those asked for: to this reader, there is none. */
  readonly isKnownForeign: boolean;
  readonly shared: SharedView;
  readonly flight: FlightView;
  readonly lastMiss: LastMiss | null;
  readonly wasEvicted: boolean;
  readonly maintenance: Maintenance | null;
  readonly next: NextRead;
}

/** `workspaceIds`: those that are asked for, in lower case; null if it is not known who asks. Never rejects. */
export async function explain(
  request: CacheRequest<unknown>,
  workspaceIds: readonly string[] | null,
  parts: ExplainParts,
): Promise<Explanation> {
  const { key, kind } = request;
  const { ttl, clock } = parts;
  const viewer = { request, workspaceIds };
  const inspected = await inspectShared(viewer, parts.shared);
  const isAsked = typeof inspected !== 'string';
  // Memory is looked at last, in one go: none of it changes meanwhile.
  const inMemory = inspectMemory(viewer, parts.memory);
  const maintenance = parts.maintenance.current();
  const flight = parts.flightOf(key, workspaceIds === null ? null : { workspaceIds });
  const wasEvicted = parts.memory.wasEvicted(key);
  const found = foundIn(inMemory, 'memory', viewer, parts);
  const inRedis = isAsked ? foundIn(inspected, 'redis', viewer, parts) : NONE;
  const next = planOf([found, inRedis], viewer, maintenance);
  const previous = 'copy' in next ? next.copy : next.previous;
  const memory = shownOf(inMemory, viewer, parts);
  const shared = sharedView(inspected, viewer, parts);
  const cacheClass = (memory ?? copyIn(shared))?.class ?? kind;
  const isKnownForeign = found.negative?.state === 'fresh' && found.newest?.stored.entry.answer.kind !== 'absent';
  return {
    atMs: clock.nowMs(),
    key,
    class: cacheClass,
    ttl: ttl.of(cacheClass),
    memory,
    isKnownForeign,
    shared,
    flight,
    lastMiss: parts.lastMissOf(key),
    wasEvicted,
    maintenance,
    next: nextRead(next, {
      miss: missReasonOf(previous, ttl.of(previous === null ? kind : classOf(kind, previous.stored.entry)), wasEvicted),
      maintenance,
      isKnownForeign,
      isUnderWay: flight.sinceMs !== null,
      isLeased: isAsked && inspected.leaseLeftMs !== null,
      hasJustFailed: flight.hasJustFailed || (isAsked && inspected.hasJustFailed),
      isFreshInRedis: authorized(inRedis, viewer).copy?.state === 'fresh',
    }),
  };
}

/** The copy in the shared cache, if there is one. */
export function copyIn(shared: SharedView): Copy | null {
  return shared.state === 'asked' ? shared.copy : null;
}

interface Viewer {
  readonly request: CacheRequest<unknown>;
  readonly workspaceIds: readonly string[] | null;
}

type InTier = Pick<Inspection, 'entry' | 'negative'>;

const NONE: FoundCopies<unknown> = { newest: null, foreign: null, negative: null };

async function inspectShared(
  { request, workspaceIds }: Viewer,
  shared: ExplainParts['shared'],
): Promise<Inspection | 'alone' | 'unreachable'> {
  if (shared === null) return 'alone';
  const workspaceSet = workspaceIds === null ? null : workspaceSetOf({ workspaceIds });
  return await shared.inspect(request.key, workspaceSet).catch(() => 'unreachable' as const);
}

function inspectMemory({ request: { key }, workspaceIds }: Viewer, memory: ExplainParts['memory']): InTier {
  const entry = memory.peek(key);
  const negative = workspaceIds === null ? undefined : memory.peekNegative(key, workspaceSetOf({ workspaceIds }));
  return {
    entry: entry === undefined ? null : { ...entry, keptForMs: null },
    negative: negative === undefined ? null : { ...negative, keptForMs: null },
  };
}

function foundIn(
  { entry, negative }: InTier,
  tier: Tier,
  { request }: Viewer,
  parts: ExplainParts,
): FoundCopies<unknown> {
  const assessed = (copy: Holding | null): CachedCopy | null => assess(request, copy?.stored ?? null, tier, parts);
  return { newest: assessed(entry), foreign: null, negative: assessed(negative) };
}

/** The plan of the next read. The shared cache is asked if memory has nothing to be served at once. */
function planOf(
  [local, shared]: readonly [FoundCopies<unknown>, FoundCopies<unknown>],
  viewer: Viewer,
  maintenance: Maintenance | null,
): Plan {
  const first = plan(authorized(local, viewer), maintenance);
  return isAtOnce(first) ? first : plan(authorized(newerOf(local, shared), viewer), maintenance);
}

/** Without a reader, a record is explained as its owner would be served it. */
function authorized(found: FoundCopies<unknown>, { request, workspaceIds }: Viewer): VisibleCopies {
  if (workspaceIds !== null) return authorize(found, request, { workspaceIds });
  return { copy: found.newest?.stored.entry.answer.kind === 'found' ? found.newest : null, negative: null };
}

interface Holding {
  readonly stored: StoredEntry;
  readonly bytes: number;
}

/** The copy that answers the reader: its own, or that there is none for it; else the one that it may not see. */
function shownOf({ entry, negative }: InTier, viewer: Viewer, parts: ExplainParts) {
  const own = entry === null ? null : copyOf(entry, viewer, parts);
  const absent = negative === null ? null : copyOf(negative, viewer, parts);
  const isAnswer = own !== null && own.isFound && own.isVisible !== false;
  return isAnswer ? own : (absent ?? own);
}

function sharedView(inspected: Inspection | 'alone' | 'unreachable', viewer: Viewer, parts: ExplainParts): SharedView {
  if (typeof inspected === 'string') return { state: inspected };
  const { isBroken, leaseLeftMs, hasJustFailed } = inspected;
  return { state: 'asked', copy: shownOf(inspected, viewer, parts), isBroken, leaseLeftMs, hasJustFailed };
}

/** Null for what is no answer to the request. */
function copyOf(
  { stored, bytes, keptForMs }: NonNullable<Inspection['entry']>,
  { request, workspaceIds }: Viewer,
  parts: ExplainParts,
): (Copy & { readonly keptForMs: number | null }) | null {
  if (!isOfKind(request, stored)) return null;
  const { entry, kind, tags, receivedAtMs, epoch } = stored;
  const { requestedAtMs } = entry;
  const isFound = entry.answer.kind === 'found';
  const cacheClass = classOf(kind, entry);
  const ttl = parts.ttl.of(cacheClass);
  const freshMs = jitteredFreshMs(ttl, jitterOf(request.keyHash, requestedAtMs));
  const freshUntilMs = requestedAtMs + freshMs;
  return {
    ...freshnessOf(request.keyHash, stored, parts, parts.clock.nowMs()),
    isFound,
    class: cacheClass,
    isVisible: workspaceIds === null ? null : !isFound || isVisible(request, stored, { workspaceIds }),
    requestedAtMs,
    receivedAtMs,
    tags,
    bytes,
    keptForMs,
    isOutdated: parts.purges.since(epoch, tags) === 'soft',
    jitterMs: ttl.freshMs - freshMs,
    freshUntilMs,
    staleUntilMs: freshUntilMs + ttl.staleMs,
    errorUntilMs: freshUntilMs + Math.max(ttl.staleMs, ttl.errorMs),
  };
}

export interface NextRead {
  /** Where its answer comes from first; null if it fails. */
  readonly from: Tier | 'store' | null;
  /** Whether it asks the store: not at all, behind the reader's back, or waiting for the answer. */
  readonly store: 'not-asked' | 'behind' | 'waited-for';
  /** Why it misses; null if it is answered at once. */
  readonly miss: MissReason | null;
  readonly text: string;
}

interface Facts {
  readonly miss: MissReason;
  readonly maintenance: Maintenance | null;
  /** The record is known to be of another workspace. */
  readonly isKnownForeign: boolean;
  /** This process is asking the store. */
  readonly isUnderWay: boolean;
  /** Another process is. */
  readonly isLeased: boolean;
  readonly hasJustFailed: boolean;
  /** The shared cache has a fresh copy for this reader. */
  readonly isFreshInRedis: boolean;
}

const TIERS = { memory: 'memory', redis: 'Redis' } as const;

/** A Plan in one plain sentence, with what is under way. */
function nextRead(next: Plan, facts: Facts): NextRead {
  if (next.action === 'fetch') return fetched(next.fallback, facts);
  if (next.action === 'refuse') return withoutStore(null, facts.miss, paused(next.maintenance));
  const { copy } = next;
  if (!isAtOnce(next)) return withoutStore(copy, facts.miss, unasked(facts));
  const served = `The next read ${verbOf(copy)} from ${TIERS[copy.tier]}`;
  const from = copy.tier;
  if (next.action === 'serve-and-refresh') {
    const { isBegun, text } = refresh(facts);
    return { from, store: isBegun ? 'behind' : 'not-asked', miss: null, text: `${served} and ${text}.` };
  }
  return { from, store: 'not-asked', miss: null, text: `${served}${restOf(copy, facts)}.` };
}

function verbOf({ stored }: CachedCopy): string {
  return stored.entry.answer.kind === 'found' ? 'is served' : 'is answered 404';
}

function restOf(copy: CachedCopy, facts: Facts): string {
  if (copy.state !== 'fresh') return ` and starts no refresh, because ${unasked(facts)}`;
  const isForeign = facts.isKnownForeign && copy.stored.entry.answer.kind === 'absent';
  return isForeign ? ': the record is of a workspace that is not asked for' : '';
}

function refresh({ isUnderWay, hasJustFailed, isLeased, isFreshInRedis }: Facts): {
  readonly isBegun: boolean;
  readonly text: string;
} {
  if (isUnderWay) return { isBegun: false, text: 'leaves the refresh to the one that is under way' };
  if (hasJustFailed) return { isBegun: false, text: 'starts no refresh, because the last one has just failed' };
  if (isLeased) return { isBegun: false, text: 'waits behind for the refresh that another process has under way' };
  if (isFreshInRedis) {
    return { isBegun: false, text: 'takes over the fresh copy that another process has stored in Redis' };
  }
  return { isBegun: true, text: 'starts one refresh behind' };
}

/** Nothing is served at once: the reader waits for the store, or gets what is left if the store can't be had. */
function fetched(fallback: CachedCopy | null, { miss, isUnderWay, isLeased, hasJustFailed }: Facts): NextRead {
  if (!isUnderWay && hasJustFailed) {
    return withoutStore(fallback, miss, 'the last call to the store has just failed and is not repeated yet');
  }
  let wait = 'asks the store and waits for its answer';
  if (isUnderWay) wait = 'waits for the call to the store that is under way here';
  else if (isLeased) wait = 'waits for the call to the store that another process has under way';
  const or =
    fallback === null ? '' : `, and is served the copy in ${TIERS[fallback.tier]} if that fails or takes over 1 s`;
  return { from: 'store', store: 'waited-for', miss, text: `The next read ${wait}${or}, because ${REASONS[miss]}.` };
}

function withoutStore(copy: CachedCopy | null, miss: MissReason, why: string): NextRead {
  const store = 'not-asked' as const;
  if (copy === null) {
    const text = `The next read fails with 500 and Retry-After, because ${REASONS[miss]} and ${why}.`;
    return { from: null, store, miss, text };
  }
  const verb = copy.stored.entry.answer.kind === 'found' ? 'is served the' : 'is answered 404 by the';
  const text = `The next read ${verb} expired copy in ${TIERS[copy.tier]}, because ${why}.`;
  return { from: copy.tier, store, miss, text };
}

const REASONS: Readonly<Record<MissReason, string>> = {
  'never-seen': 'no copy is held',
  expired: 'the copy that is held has expired',
  evicted: 'the copy that was held had to make room',
  purged: 'the copy that is held was purged',
  'not-cacheable': 'the times of the class keep nothing',
};

/** Why a copy that is not fresh is served without asking the store. */
function unasked({ maintenance }: Facts): string {
  if (maintenance !== null) return paused(maintenance);
  return 'the store has just said that the record is of another workspace';
}

function paused({ untilMs }: Maintenance): string {
  return `the store is asked nothing until ${new Date(untilMs).toISOString()}`;
}
