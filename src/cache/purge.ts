/**
 * Purging by tag, for operators (C6: in force within 1 s, whatever Redis holds): first the purge, which is one entry in the
 * log, then a count of what it took.
 */
import type { Measured } from './entry.ts';
import type { PurgeMode } from '../journal/journal.ts';
import { replyText } from '../redis/errors.ts';
import type { Timers } from '../time/timers.ts';
import type { MemoryTier } from './memory-tier.ts';
import { type HardPurgeListener, isPurged, type PurgeLog, type Tag, type Tagged } from './purge-log.ts';
import type { SharedCacheAdmin } from './shared-cache.ts';
import { isBefore, keyOf, type MarkOf, originOf } from './change-table.ts';
import { keysOfEvaluation } from './request.ts';

export interface PurgeRequest {
  readonly tags: readonly Tag[];
  readonly mode: PurgeMode;
  readonly isExact: boolean;
  /** Only counts what would be purged. */
  readonly isDryRun: boolean;
}

/** `entries` and `bytes` are those of the shared cache, or of this process's memory if that can't be asked. */
export interface PurgeResult extends Measured {
  /** The tags asked for, and those that they take along. */
  readonly tags: readonly Tag[];
  /** The lists that purged evaluations take along; null if they take none. Counted in `entries` too. */
  readonly lists: WidenedLists | null;
  /** Whether the bytes are deleted already: what is left of them is deleted in the background. Null if none is. */
  readonly isDeleted: boolean | null;
  /** The refusal of Redis, so that nothing was counted or deleted there; null if nothing. */
  readonly problem: string | null;
}

export interface WidenedLists {
  readonly entries: number;
  /** The number of workspaces that the lists are of. */
  readonly workspaces: number;
  /** False if no copy shows the workspace of an evaluation: then the lists are those of all workspaces. */
  readonly ownerKnown: boolean;
}

export interface PurgeDependencies {
  readonly memory: MemoryTier;
  /** Null for a gateway without Redis. */
  readonly shared: Pick<SharedCacheAdmin, 'ownersOf' | 'measure' | 'isUp'> | null;
  readonly purges: PurgeLog;
}

/** How long the purge may wait for the workspaces of evaluations, and its answer for the count. */
const LOOK_UP_WITHIN_MS = 500;
const COUNT_WITHIN_MS = 2000;
/** Evaluations looked up at a time. */
const BATCH = 25;

const WORKSPACE = 'workspace:';
const EVALUATION = 'evaluation:';
const LISTS_OF = 'lists-of:';

/** In force here once it resolves, in every process within a second. Rejects as `PurgeLog.purge` does. */
export async function purge(
  request: PurgeRequest,
  dependencies: PurgeDependencies,
  countWithinMs = COUNT_WITHIN_MS,
): Promise<PurgeResult> {
  const { memory, shared, purges } = dependencies;
  const alongside = request.isExact ? [] : await widen(request.tags, dependencies);
  const tags = [...new Set([...request.tags, ...alongside])];
  const [asked, all] = [new Set(request.tags), new Set(tags)];
  const before = purges.snapshot();
  /** Whether it is among what the purge ends: not what was gone before. */
  const isMeant = ({ tags: own, position }: Tagged): boolean =>
    own.some((tag) => all.has(tag)) && before.since(position, own) !== 'hard';
  /** Whether a purge that was made has ended it: not what was stored since. */
  const isEnded = (stored: Tagged): boolean => isMeant(stored) && purges.since(stored.position, stored.tags) !== null;
  const isAsked = ({ tags: own }: Tagged): boolean => own.some((tag) => asked.has(tag));
  const { isDryRun, mode } = request;
  // If the shared cache can't be asked, memory is counted, and first: a hard purge leaves nothing to count there.
  const inMemory = shared?.isUp() === true ? null : await count(isMeant, isAsked, (matches) => memory.measure(matches));
  if (!isDryRun) await purges.purge(tags, mode);
  const isDeleting = !isDryRun && mode === 'hard';
  const first = tags.flatMap((tag) => keysOf(tag) ?? []);
  const inRedis =
    inMemory !== null || shared === null
      ? null
      : await count(isDryRun ? isMeant : isEnded, isAsked, (matches) =>
          shared.measure(matches, { isDeleting, first, deadline: AbortSignal.timeout(countWithinMs) }),
        ).catch((error: unknown) => ({ ...NOT_COUNTED, problem: refusedText(error) }));
  const { lists, ...counted } = inMemory ?? inRedis ?? NOT_COUNTED;
  const isComplete = counted.isComplete && (shared === null || inRedis !== null);
  const isDeleted = isDeleting ? isComplete : null;
  return { problem: null, ...counted, isComplete, tags, lists: widenedLists(alongside, lists), isDeleted };
}

/** The copies that were counted, and the lists among them that the purge takes along. */
interface Counted extends Measured {
  readonly lists: { readonly entries: number; readonly workspaces: ReadonlySet<Tag> };
}

const NOT_COUNTED: Counted = {
  entries: 0,
  bytes: 0,
  isComplete: false,
  lists: { entries: 0, workspaces: new Set() },
};

/** `isAsked`: whether the copy was named, and is not only taken along. Rejects as `measure` does. */
async function count(
  matches: (stored: Tagged) => boolean,
  isAsked: (stored: Tagged) => boolean,
  measure: (matches: (stored: Tagged) => boolean) => Measured | Promise<Measured>,
): Promise<Counted> {
  const takenAlong: (readonly Tag[])[] = [];
  const measured = await measure((stored) => {
    const isMatch = matches(stored);
    if (isMatch && stored.tags.includes('class:list') && !isAsked(stored)) takenAlong.push(stored.tags);
    return isMatch;
  });
  const workspaces = new Set(takenAlong.flat().filter((tag) => tag.startsWith(LISTS_OF)));
  return { ...measured, lists: { entries: takenAlong.length, workspaces } };
}

/** The refusal of Redis, word for word; null if it gave no answer. */
export function refusedText(error: unknown): string | null {
  const reply = replyText(error);
  return reply === null ? null : `Redis refuses: ${reply}`;
}

/** The keys of all copies with that tag; null if that is not known. */
export function keysOf(tag: Tag): readonly string[] | null {
  return tag.startsWith(EVALUATION) ? keysOfEvaluation(tag.slice(EVALUATION.length)) : null;
}

/** While purges of more than single evaluations come fast, memory is looked through once in so long. */
const DROP_EVERY_MS = 1000;

/** Drops from this process's memory what hard purges have ended: evaluations at once, by their keys; the rest in one pass. */
export function memoryDropper(memory: MemoryTier, timers: Timers): HardPurgeListener {
  let isRecent = false;
  let isDue = false;
  const dropAll = (purges: Pick<PurgeLog, 'since'>): void => {
    isDue = isRecent;
    if (isRecent) return;
    isRecent = true;
    memory.purge((stored) => isPurged(purges, stored));
    timers.after(DROP_EVERY_MS, () => {
      isRecent = false;
      if (isDue) dropAll(purges);
    });
  };
  return (purges, tags) => {
    const keys = tags.map(keysOf);
    // Also of purges that were missed: nothing may be trusted until it is done.
    if (tags.includes('all')) memory.purge((stored) => isPurged(purges, stored));
    else if (keys.includes(null)) dropAll(purges);
    memory.purge(
      (stored) => isPurged(purges, stored),
      keys.flatMap((each) => each ?? []),
    );
  };
}

/** Marks the copies in this process's memory that are from before changes which are forgotten; drops them if those were hard. */
export function memoryMarker(memory: MemoryTier): (marks: readonly MarkOf[]) => void {
  return (marks) => {
    for (const one of marks) {
      const key = keyOf(one);
      if (key === null) continue;
      const stored = memory.peek({ key, owner: one.workspace });
      if (stored === undefined) continue;
      const { position, entry } = stored;
      const mode = isBefore(one, { position, requestedAtMs: entry.requestedAtMs });
      if (mode === 'hard') memory.delete(key, stored);
      if (mode === 'soft') stored.changed = originOf(one.mark);
    }
  };
}

/**
 * A purged evaluation takes along the lists that may hold it: its workspace's, or all if no copy shows which that is. A
 * purged workspace takes along negative entries, because nobody knows the workspace of those.
 */
async function widen(tags: readonly Tag[], dependencies: PurgeDependencies): Promise<readonly Tag[]> {
  const alongside = new Set<Tag>();
  if (tags.some((tag) => tag.startsWith(WORKSPACE))) alongside.add('class:notFound');
  const ids = tags.filter((tag) => tag.startsWith(EVALUATION)).map((tag) => tag.slice(EVALUATION.length));
  const deadline = AbortSignal.timeout(LOOK_UP_WITHIN_MS);
  for (let i = 0; i < ids.length; i += BATCH) {
    if (deadline.aborted) {
      alongside.add('class:list');
      break;
    }
    const found = await Promise.all(ids.slice(i, i + BATCH).map((id) => workspacesOf(id, dependencies)));
    for (const workspaceIds of found) {
      if (workspaceIds.length === 0) alongside.add('class:list');
      for (const id of workspaceIds) alongside.add(`${LISTS_OF}${id}`);
    }
  }
  return [...alongside];
}

/**
 * The workspaces that copies of the evaluation show, or showed before its last purge: several if it has moved, none if there
 * is no copy.
 */
async function workspacesOf(
  evaluationId: string,
  { memory, shared, purges }: PurgeDependencies,
): Promise<readonly string[]> {
  const ownersOf = async (key: string): Promise<readonly string[]> => {
    const own = memory.inspect(key, null).copies.map(({ stored }) => stored.owner);
    try {
      return [...own, ...((await shared?.ownersOf(key)) ?? [])];
    } catch {
      // A shared cache that can't be asked must not stop a purge: the log is elsewhere.
      return own;
    }
  };
  const owners = (await Promise.all(keysOfEvaluation(evaluationId).map(ownersOf))).flat();
  const before = purges.alongside(`${EVALUATION}${evaluationId}`).filter((tag) => tag.startsWith(LISTS_OF));
  return [...new Set([...owners, ...before.map((tag) => tag.slice(LISTS_OF.length))])];
}

function widenedLists(alongside: readonly Tag[], counted: Counted['lists']): WidenedLists | null {
  const ownerKnown = !alongside.includes('class:list');
  const known = alongside.filter((tag) => tag.startsWith(LISTS_OF)).length;
  if (ownerKnown && known === 0) return null;
  return { entries: counted.entries, workspaces: ownerKnown ? known : counted.workspaces.size, ownerKnown };
}
