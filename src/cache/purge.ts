/** Purging by tag, for operators. */
import { singleKey } from './cache-key.ts';
import type { Tagged, Usage } from './entry.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { PurgeLog, PurgeMode } from './purge-log.ts';
import type { SharedCacheAdmin } from './shared-cache.ts';
import type { Tag } from './tags.ts';

const WORKSPACE = 'workspace:';
const EVALUATION = 'evaluation:';

export interface PurgeRequest {
  readonly tags: readonly Tag[];
  readonly mode: PurgeMode;
  /** Only says what would be purged. */
  readonly isDryRun: boolean;
}

export interface PurgeResult extends Usage {
  /** What was purged in the end: the tags asked for, and those that they take along. */
  readonly tags: readonly Tag[];
}

export interface PurgeDependencies {
  readonly memory: MemoryTier;
  /** The fleet's tier; null for a gateway that is alone. */
  readonly shared: Pick<SharedCacheAdmin, 'get' | 'measure'> | null;
  readonly purges: PurgeLog;
}

/** `entries` and `bytes` are those of the fleet's tier where it can be reached, else of this process's memory. */
export async function purge(request: PurgeRequest, dependencies: PurgeDependencies): Promise<PurgeResult> {
  const { memory, shared, purges } = dependencies;
  const tags = await withCompanions(request.tags, dependencies);
  const wanted = new Set(tags);
  const isAffected = (stored: Tagged): boolean =>
    stored.tags.some((tag) => wanted.has(tag)) && purges.since(stored.position, stored.tags) !== 'hard';
  const inMemory = memory.measure(isAffected);
  const usage = shared === null ? inMemory : await orElse(inMemory, () => shared.measure(isAffected));
  if (!request.isDryRun) await purges.purge(tags, request.mode);
  return { ...usage, tags };
}

/**
 * A purged evaluation takes along the lists that may hold it: those over its workspace where a copy tells which that
 * is, else all. A purged workspace takes along what is known to be absent, because nobody knows the workspace of that.
 */
async function withCompanions(tags: readonly Tag[], dependencies: PurgeDependencies): Promise<readonly Tag[]> {
  const all = new Set<Tag>(tags);
  for (const tag of tags) {
    if (tag.startsWith(WORKSPACE)) all.add('class:notFound');
    if (!tag.startsWith(EVALUATION)) continue;
    const workspaceIds = await workspacesOf(tag.slice(EVALUATION.length), dependencies);
    for (const id of workspaceIds) all.add(`lists-of:${id}`);
    if (workspaceIds.length === 0) all.add('class:list');
  }
  return [...all];
}

/** More than one where the copies don't agree, because the evaluation has moved. */
async function workspacesOf(evaluationId: string, { memory, shared }: PurgeDependencies): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const kind of ['evaluation', 'transcript', 'scorecard', 'dealInsights'] as const) {
    const key = singleKey(kind, evaluationId);
    for (const copy of [memory.get(key), await orElse(null, async () => (await shared?.get(key)) ?? null)]) {
      for (const tag of copy?.tags ?? []) {
        if (tag.startsWith(WORKSPACE)) found.add(tag.slice(WORKSPACE.length));
      }
    }
  }
  return [...found];
}

/** A tier that is out of reach must not keep an operator from purging: the log is elsewhere. */
async function orElse<R>(fallback: R, run: () => Promise<R>): Promise<R> {
  try {
    return await run();
  } catch {
    return fallback;
  }
}
