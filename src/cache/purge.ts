/**
 * Purging by tag, for operators (C6: in force within 1 s, whatever Redis holds): first the purge, which is one entry in the
 * log, then a count of what it took.
 */
import type { Measured, StoredEntry } from './entry.ts';
import type { Tagged } from './purge-log.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { SharedCacheAdmin } from './shared-cache.ts';
import type { PurgeLog, PurgeMode, Tag } from './purge-log.ts';
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
  readonly shared: Pick<SharedCacheAdmin, 'get' | 'measure'> | null;
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
export async function purge(request: PurgeRequest, dependencies: PurgeDependencies): Promise<PurgeResult> {
  const { purges } = dependencies;
  const alongside = request.isExact ? [] : await widen(request.tags, dependencies);
  const tags = [...new Set([...request.tags, ...alongside])];
  const before = purges.snapshot();
  if (!request.isDryRun) await purges.purge(tags, request.mode);

  const [asked, all] = [new Set(request.tags), new Set(tags)];
  const lists = { entries: 0, workspaces: new Set<Tag>() };
  const isAffected = ({ tags: own, epoch }: Tagged): boolean => {
    if (!own.some((tag) => all.has(tag)) || before.since(epoch, own) === 'hard') return false;
    // Copies stored since the purge are not part of it.
    if (!request.isDryRun && purges.since(epoch, own) === null) return false;
    if (own.includes('class:list') && !own.some((tag) => asked.has(tag))) {
      lists.entries += 1;
      for (const tag of own) if (tag.startsWith(LISTS_OF)) lists.workspaces.add(tag);
    }
    return true;
  };
  const counted = await count(isAffected, dependencies, () => {
    lists.entries = 0;
    lists.workspaces.clear();
  });
  return { ...counted, tags, lists: widenedLists(alongside, lists) };
}

/** Counts in the shared cache, or again in memory if that can't be asked. Bounded in time. */
async function count(
  isAffected: (stored: Tagged) => boolean,
  { memory, shared }: PurgeDependencies,
  onRestart: () => void,
): Promise<Measured> {
  if (shared === null) return memory.measure(isAffected);
  try {
    return await shared.measure(isAffected, AbortSignal.timeout(COUNT_WITHIN_MS));
  } catch {
    onRestart();
    return { ...memory.measure(isAffected), isComplete: false };
  }
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

/** The workspaces that copies of the evaluation tell: several if it has moved, none if there is no copy. */
async function workspacesOf(evaluationId: string, { memory, shared }: PurgeDependencies): Promise<readonly string[]> {
  const copiesOf = async (key: string): Promise<readonly (StoredEntry | null | undefined)[]> => {
    const own = memory.peek(key);
    try {
      return [own, await shared?.get(key)];
    } catch {
      // A shared cache that can't be asked must not stop a purge: the log is elsewhere.
      return [own];
    }
  };
  const copies = (await Promise.all(keysOfEvaluation(evaluationId).map(copiesOf))).flat();
  const tags = copies.flatMap((copy) => copy?.tags ?? []).filter((tag) => tag.startsWith(WORKSPACE));
  return [...new Set(tags.map((tag) => tag.slice(WORKSPACE.length)))];
}

function widenedLists(
  alongside: readonly Tag[],
  counted: { readonly entries: number; readonly workspaces: ReadonlySet<Tag> },
): WidenedLists | null {
  const ownerKnown = !alongside.includes('class:list');
  const known = alongside.filter((tag) => tag.startsWith(LISTS_OF)).length;
  if (ownerKnown && known === 0) return null;
  return { entries: counted.entries, workspaces: ownerKnown ? known : counted.workspaces.size, ownerKnown };
}
