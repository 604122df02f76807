/**
 * Keeps what a call has brought, in this process, and reports to the others what has ended (C4: nothing outlives what the store
 * says).
 */
import { attempt, endOthers, type ReadThroughParts } from './copies.ts';
import { type Backfill, backfillsOf, classOf, isNewer, type StoredEntry } from './entry.ts';
import { isPurged, mayBeKept } from './purge-log.ts';
import type { CompletionStatus, KeptFor } from './shared-cache.ts';
import type { FetchTask } from './store-call.ts';
import { isCacheable } from './ttl-policy.ts';

/**
 * Keeps the answer in memory, unless a purge has come since the call began, or one that was fetched later is there:
 * 1. This call begins.
 * 2. A call for another set begins, and ends first. Without Redis nothing else orders the two.
 * 3. This one ends with the older answer.
 */
export function keep<T>(
  task: FetchTask<T>,
  stored: StoredEntry<T>,
  status: CompletionStatus,
  parts: ReadThroughParts,
): boolean {
  const { memory, purges, ttl, clock } = parts;
  const { request, set, reader } = task;
  const { kind, key } = request;
  endOthers(task, stored, memory);
  if (isRefused(status) || !mayBeKept(purges, stored)) return false;
  const isFound = stored.entry.answer.kind === 'found';
  const present = isFound ? memory.peek({ key, owner: stored.owner }) : undefined;
  const isPresentNewer = present !== undefined && isNewer(present, stored, clock.nowMs()) && !isPurged(purges, present);
  const isInMemory = !isPresentNewer && memory.set(key, stored, { set, keyId: reader.keyId });
  return (isInMemory || status === 'stored') && isCacheable(ttl.of(classOf(kind, stored.entry)));
}

/** Keeps the single records of a list, before the list itself: a change that it shows has ended the older ones. */
export function backfill<T>(
  { request, set, reader }: FetchTask<T>,
  stored: StoredEntry<T>,
  parts: ReadThroughParts,
): void {
  const { memory, purges, events } = parts;
  if (!mayBeKept(purges, stored)) return;
  const entries = backfillsOf(request, stored, set, {
    present: (address) => memory.peek(address) ?? null,
    isAnnouncedSince: (copy) => purges.isAnnouncedSince(copy),
  });
  const keptFor = { set, keyId: reader.keyId };
  const news = memory.backfill(entries, keptFor);
  for (const { refresh } of entries) if (refresh !== null) events.onRefresh?.(refresh);
  if (news.length > 0) void attempt(events, 'backfill', () => shareBackfills(news, keptFor, parts));
}

/** An answer that the shared cache refuses, because it knows something newer, does not stay in memory either. */
async function shareBackfills(entries: readonly Backfill[], keptFor: KeptFor, parts: ReadThroughParts): Promise<void> {
  const { memory, sharedCache } = parts;
  const results = await sharedCache.backfill(entries, keptFor);
  for (const [i, { isTooLate, ended }] of results.entries()) {
    const entry = entries[i];
    if (entry === undefined) continue;
    if (isTooLate) memory.delete(entry.key, entry.stored);
    await endMoved({ key: entry.key, workspaces: ended, stored: entry.stored }, parts);
  }
}

/** Whether the shared cache knows something newer, so that the answer may not stay in memory either. */
function isRefused(status: CompletionStatus): boolean {
  return status === 'lost' || status === 'overtaken';
}

/** Redis has answered too late for the reader: what it refuses leaves memory then. Never rejects. */
export async function dropIfRefused(
  { request }: FetchTask,
  stored: StoredEntry,
  completing: Promise<CompletionStatus>,
  { memory }: Pick<ReadThroughParts, 'memory'>,
): Promise<void> {
  const status = await completing.catch(() => undefined);
  if (status !== undefined && isRefused(status)) memory.delete(request.key, stored);
}

interface Ended {
  readonly key: string;
  /** Whose copies. */
  readonly workspaces: readonly string[];
  /** The answer that has ended them. */
  readonly stored: StoredEntry;
}

/** Ends the copies in every process, by the journal. Never rejects. */
export async function endMoved(
  { key, workspaces, stored }: Ended,
  { endEverywhere, events }: Pick<ReadThroughParts, 'endEverywhere' | 'events'>,
): Promise<void> {
  if (workspaces.length === 0) return;
  await attempt(events, 'moved', () => endEverywhere({ key, workspaces, requestedAtMs: stored.entry.requestedAtMs }));
}
