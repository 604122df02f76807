/** Explains to operators which copies answer a request, and what its next read would do. It only looks. */
import type { Clock } from '../clock.ts';
import { authorize, type FoundCopies, newerOf } from './copies.ts';
import { classOf, type StoredEntry } from './entry.ts';
import { type NextRead, nextRead } from './explain-next.ts';
import type { LastMiss } from './last-misses.ts';
import type { Maintenance, MaintenanceWatch } from './maintenance.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { Tag } from './purge-log.ts';
import {
  type CachedCopy,
  type Freshness,
  freshnessOf,
  type FreshnessPolicy,
  type Held,
  isAtOnce,
  jitteredFreshMs,
  jitterOf,
  missReasonOf,
  type Plan,
  plan,
} from './plan.ts';
import { type FlightView, isOfKind, isVisible, type Reader, type Tier, workspaceSetOf } from './reader.ts';
import type { CacheRequest } from './request.ts';
import type { Inspection, SharedCacheAdmin } from './shared-cache.ts';
import type { CacheClass, CacheTtl } from './ttl-policy.ts';

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
  readonly filledAtMs: number;
  readonly fetchedAtMs: number;
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
  /** The class whose times rule the answer: of the copy that is held, else of the request. */
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
  const held = 'copy' in next ? next.copy : next.held;
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
      miss: missReasonOf(held, ttl.of(held === null ? kind : classOf(kind, held.stored.entry)), wasEvicted),
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
  const assess = (held: Holding | null): CachedCopy | null => {
    if (held === null || !isOfKind(request, held.stored)) return null;
    const { stored } = held;
    return { stored, tier, ...freshnessOf(request.keyHash, stored, parts, parts.clock.nowMs()) };
  };
  return { newest: assess(entry), foreign: null, negative: assess(negative) };
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
function authorized(found: FoundCopies<unknown>, { request, workspaceIds }: Viewer): Held {
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
  const { entry, kind, tags, fetchedAtMs, epoch } = stored;
  const { filledAtMs } = entry;
  const isFound = entry.answer.kind === 'found';
  const cacheClass = classOf(kind, entry);
  const ttl = parts.ttl.of(cacheClass);
  const freshMs = jitteredFreshMs(ttl, jitterOf(request.keyHash, filledAtMs));
  const freshUntilMs = filledAtMs + freshMs;
  return {
    ...freshnessOf(request.keyHash, stored, parts, parts.clock.nowMs()),
    isFound,
    class: cacheClass,
    isVisible: workspaceIds === null ? null : !isFound || isVisible(request, stored, { workspaceIds }),
    filledAtMs,
    fetchedAtMs,
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
