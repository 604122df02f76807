/** One call to the store for one set of workspaces: conditional on the copy that is held, stamped, and judged for the set. */
import { StoreError, type StoreErrorKind } from '../upstream/store-error.ts';
import type { WorkspaceSet } from './address.ts';
import type { ReadThroughParts } from './copies.ts';
import {
  type Answered,
  classOf,
  copyHashOf,
  entryOfAnswer,
  type FetchStamp,
  isFor,
  negativeEntry,
  newItemsOf,
  type StoredEntry,
} from './entry.ts';
import type { CachedCopy } from './plan.ts';
import { isPurged } from './purge-log.ts';
import type { Reader } from './reader.ts';
import type { CacheRequest } from './request.ts';

export interface FetchTask<T = unknown> {
  readonly request: CacheRequest<T>;
  /** For whom it is made (`flightSet`). The answer is judged for them, whoever caused it. */
  readonly set: WorkspaceSet;
  /** The reader that caused it. */
  readonly reader: Reader;
  /** The copy that is not good enough: its validator makes the call conditional. */
  readonly previous: CachedCopy<T> | null;
  /** When the newest answer was requested that the reader has seen in the shared cache, Unix milliseconds; null for none. */
  readonly seenAtMs: number | null;
  /** A background refresh of a copy that was served: no reader waits for it. */
  readonly isBackground: boolean;
  /** The copy is still fresh, and would do: see `EarlyRenewal`. */
  readonly isEarly?: boolean;
  /** How many readers gain by it; without it, those who wait. */
  readonly readers?: () => number;
  /** Called with what gives back the memory that was reserved for the answer. */
  readonly onReserved?: (release: () => void) => void;
}

/** Names the flight of a key for a set. */
export function nameOf({
  request,
  set,
}: {
  readonly request: { readonly key: string };
  readonly set: WorkspaceSet;
}): string {
  return `${request.key} ${set.name}`;
}

/**
 * When the newest answer was requested that the reader has seen, of these and in the shared cache, Unix milliseconds; null for
 * none. After a purge a copy of the same millisecond may have taken the place of the one that was purged.
 */
export function seenBy({ seenAtMs }: FetchTask, ...copies: readonly (CachedCopy | null)[]): number | null {
  const times = copies.flatMap((copy) =>
    copy === null || copy.state === 'purged' ? [] : [copy.stored.entry.requestedAtMs],
  );
  if (seenAtMs !== null) times.push(seenAtMs);
  return times.length === 0 ? null : Math.max(...times);
}

/**
 * The same answer of Redis; rejects once the reader has waited long enough (R6: 250 ms for Redis in all). No reader waits
 * for a background refresh. `isBeside`: the reader waits for another process's call meanwhile.
 */
export function withinWait<R>(
  { reader: { redisWait }, isBackground }: FetchTask,
  answer: Promise<R>,
  isBeside = false,
): Promise<R> {
  if (isBackground || redisWait === undefined) return answer;
  return isBeside ? redisWait.beside(answer) : redisWait.within(answer);
}

/** The store's answer as it is for the set: its own record, or a negative entry. */
export interface Answer<T = unknown> {
  readonly stored: StoredEntry<T>;
  /** The store has a record of another workspace: to this set there is none. */
  readonly isForeign: boolean;
}

/** The call was never sent. */
const NOT_SENT: ReadonlySet<StoreErrorKind> = new Set(['overloaded', 'suspended', 'paused'] as const);

/** Whether a failed call says anything of the store: it was sent, somebody waited for it, and the gateway did not fail. */
export function isOfStore({ kind }: StoreError): boolean {
  return kind !== 'aborted' && kind !== 'internal' && !NOT_SENT.has(kind);
}

/** Where the journal and the clock stand before a call: a purge that comes while it is under way is later than the answer. */
export function beginStamp({ purges, clock }: ReadThroughParts): Omit<FetchStamp, 'receivedAtMs'> {
  return { position: purges.position, requestedAtMs: clock.nowMs() };
}

/** Rejects as the store's `Fetch` does. `signal`: nobody waits any more. */
export async function callStore<T>(
  task: FetchTask<T>,
  stamp: Omit<FetchStamp, 'receivedAtMs'>,
  signal: AbortSignal,
  parts: ReadThroughParts,
): Promise<Answer<T>> {
  const { request, set, reader, isBackground, isEarly = false, readers = () => 1, onReserved = () => undefined } = task;
  const { store, purges, clock, events } = parts;
  // A copy that was purged while this flight waited for its turn is no base to renew anything on.
  const previous = task.previous !== null && isPurged(purges, task.previous.stored) ? null : task.previous;
  const known = previous?.stored ?? null;
  const beganMicros = clock.nowMicros();
  const reportCall = (cacheClass: ReturnType<typeof classOf>): void => {
    const durationMs = (clock.nowMicros() - beganMicros) / 1000;
    const [workspaceId = null, ...others] = set.ids;
    events.onStoreCall?.({
      class: cacheClass,
      key: request.key,
      route: reader.route ?? null,
      keyId: reader.keyId ?? null,
      workspaceId: others.length === 0 ? workspaceId : null,
      durationMs,
      isEarly,
    });
  };
  try {
    // C11: a copy from before a change does not do instead, as long as the store is well.
    const isUrgent = !isBackground && task.previous?.state === 'changed';
    const how = { signal, isBackground, isEarly, isUrgent, readers, onReserved };
    const answer = await request.send(store.fetch, { ...fetchOptions(known, reader), ...how });
    const about = { set, stamp: { ...stamp, receivedAtMs: clock.nowMs() } };
    const { stored, isChanged } = entryOfAnswer(request, known, answer, about);
    reportCall(classOf(request.kind, stored.entry));
    const isForeign = !isFor(stored, set);
    if (known !== null && isChanged !== null) reportRefresh(task, known, { stored, isChanged, isForeign }, parts);
    const isFound = stored.entry.answer.kind === 'found' && !isForeign;
    return isFound ? { stored, isForeign } : { ...foreignAnswer(task, about.stamp), isForeign };
  } catch (error) {
    if (!(error instanceof StoreError && NOT_SENT.has(error.kind))) reportCall(request.kind);
    throw error;
  }
}

/** To these readers a foreign record is as absent as before (K7a: a foreign record looks like none). */
function reportRefresh<T>(
  { request }: FetchTask<T>,
  previous: StoredEntry<T>,
  { stored: { entry, kind }, isChanged, isForeign }: Answered<T> & Answer<T>,
  { events, purges }: Pick<ReadThroughParts, 'events' | 'purges'>,
): void {
  if (isForeign && previous.entry.answer.kind === 'found') {
    const message = `the answer (${kind}) is of another workspace than the one that was asked for`;
    events.onRefreshFailed?.({ class: kind, key: request.key, error: new StoreError('malformed', message) });
    return;
  }
  const { answer, requestedAtMs } = entry;
  events.onRefresh?.({
    class: classOf(kind, previous.entry),
    copyHash: copyHashOf(request, previous),
    changed: newItemsOf(request, previous.entry, entry) ?? (isChanged === true && !isForeign ? 1 : 0),
    sinceMs: requestedAtMs - previous.entry.requestedAtMs,
    createdAtMs: answer.kind === 'found' && !isForeign ? request.createdAtMs(answer.record) : null,
    isAnnounced: purges.isAnnouncedSince(previous),
  });
}

/** The answer to a set that may not learn more of it: what an id leaves that the store does not have. */
export function foreignAnswer<T>({ request, set }: FetchTask<T>, stamp: FetchStamp): Answer<T> {
  return { stored: negativeEntry(request, stamp, set), isForeign: true };
}

function fetchOptions(previous: StoredEntry | null, { requestId, traceparent, keyId }: Reader) {
  const etag = previous?.entry.answer.kind === 'found' ? previous.entry.answer.etag : null;
  return {
    requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(keyId === undefined ? {} : { keyId }),
    ...(etag === null ? {} : { ifNoneMatch: etag }),
  };
}
