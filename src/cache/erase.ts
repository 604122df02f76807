/**
 * Erasing an evaluation or a workspace, and proving it: a hard purge, the deletion of the copies, and then each process of the
 * fleet says what it still holds, and the shared cache is looked through once more.
 *
 * A process counts as reached only if it answered after the purge, and after every call to the store had ended that was under
 * way then: such a call may have brought the record. One that has vanished without a goodbye may be stopped or cut off and
 * hold copies still, so it counts as not reached until it is back, or an operator says that it is gone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { StoredEntry } from './entry.ts';
import type { MemoryTier } from './memory-tier.ts';
import { afterChange } from '../redis/errors.ts';
import { keysOf, purge, refusedText, type PurgeDependencies, type PurgeResult } from './purge.ts';
import { isPurged, type PurgeLog, type Tag, type Tagged, tagSchema } from './purge-log.ts';
import type { ReadThrough } from './read-through.ts';
import type { SharedCacheAdmin } from './shared-cache.ts';

/** The question to a process. `after`: the place of the purge in the log, once it is made; null before. */
export const erasureSchema = z.object({ tag: tagSchema, after: z.int().nullable() });
export type Erasure = z.output<typeof erasureSchema>;

/** The copies of it that a process holds. */
export const holdingSchema = z.object({
  /** Copies in memory, with all that was rendered and compressed of them. */
  copies: z.int(),
  /** Calls to the store that were under way when it was purged, and have not ended. */
  flights: z.int(),
  /** Whether it was fetched again since. */
  refetched: z.boolean(),
});
export type Holding = z.output<typeof holdingSchema>;

/** The processes of the fleet, this one among them. */
export interface Fleet {
  /** Asks all; resolves with the answers by process, when all `expected` have answered or time is over. Never rejects. */
  ask(question: Erasure, expected: readonly string[], withinMs: number): Promise<ReadonlyMap<string, Holding>>;
  /** The processes that run, and those that vanished without a goodbye. `gone`: these are known to have ended. */
  known(gone: readonly string[]): Promise<readonly string[]>;
}

/** Without content: it goes into the audit. */
export interface Receipt {
  readonly erased: boolean;
  readonly refetched: boolean;
  /** Those named as gone that no process is known by. */
  readonly unknownGone: readonly string[];
  readonly redis: { readonly deleted: number; readonly complete: boolean; readonly problem: string | null };
  readonly processes: readonly { readonly id: string; readonly reached: boolean; readonly dropped: number | null }[];
  readonly lists: number;
}

/** A flight takes 305 s at most, and 15 s unless it is configured otherwise. */
const FLIGHTS_WITHIN_MS = 20_000;
/** For the first answer. A process that gives none is not waited for again. */
const COUNT_WITHIN_MS = 3000;
/** How long a process may take to answer, beyond the time of its flights. */
const ANSWER_WITHIN_MS = 3000;
/** For a purge that is in the journal already. */
const BEHIND_FOR_MS = 2000;
const DELETE_WITHIN_MS = 600_000;
/** A record that the store still has is back with its next reader: for so long one may come before the processes are asked. */
const READERS_MS = 500;

export interface OwnParts {
  readonly memory: MemoryTier;
  readonly purges: PurgeLog;
  readonly cache: Pick<ReadThrough, 'settled'>;
}

/** This process's answer. Rejects if it does not hear of the purge in time. */
export async function holdingOf({ tag, after }: Erasure, { memory, purges, cache }: OwnParts): Promise<Holding> {
  const copies = (matches: (stored: Tagged) => boolean): number => memory.measure(matches).entries;
  if (after === null) return { copies: copies(({ tags }) => tags.includes(tag)), flights: 0, refetched: false };
  const flightsEnd = cache.settled(FLIGHTS_WITHIN_MS);
  for (let waitedMs = 0; purges.position.sequence < after; waitedMs += 50) {
    if (waitedMs > BEHIND_FOR_MS) throw new Error('the purge has not arrived');
    await sleep(50);
  }
  const flights = await flightsEnd;
  memory.purge((stored) => isPurged(purges, stored));
  return {
    copies: copies((stored) => stored.tags.includes(tag) && isPurged(purges, stored)),
    flights,
    refetched: memory.holds((stored) => holdsRecord(stored, tag)),
  };
}

/** Whether it is a copy of the record, of a part of it, or a list that has it; of a workspace, whether it is any of its records. */
function holdsRecord({ tags, kind, entry: { answer } }: StoredEntry, tag: Tag): boolean {
  if (answer.kind === 'absent') return false;
  if (tags.includes(tag)) return true;
  const [name, id = ''] = tag.split(':');
  if (name !== 'evaluation' || kind !== 'list') return false;
  return pageSchema.safeParse(answer.record).data?.items.some((item) => item['_id'] === id) === true;
}

const pageSchema = z.object({ items: z.array(z.object({ _id: z.string() })) });

export interface EraseDependencies extends PurgeDependencies {
  /** Null for a gateway without Redis. */
  readonly shared: Pick<SharedCacheAdmin, 'ownersOf' | 'measure' | 'deleteLeft' | 'isUp'> | null;
  readonly fleet: Fleet;
}

/** Erases it. Rejects as `purge` does if the purge is not made, with another error if the proof fails after it. */
export async function erase(tag: Tag, gone: readonly string[], dependencies: EraseDependencies): Promise<Receipt> {
  const { fleet } = dependencies;
  const named = gone.length === 0 ? [] : await fleet.known([]);
  const unknownGone = gone.filter((id) => !named.includes(id));
  const known = await fleet.known(gone);
  const before = await fleet.ask({ tag, after: null }, known, COUNT_WITHIN_MS);
  const request = { tags: [tag], mode: 'hard', isExact: false, isDryRun: false } as const;
  const made = await purge(request, dependencies, DELETE_WITHIN_MS);
  return afterChange(() => prove(tag, gone, { ...dependencies, made, known, before, unknownGone }));
}

interface Purged extends EraseDependencies {
  readonly made: PurgeResult;
  /** Before the purge: the processes, and what they held. */
  readonly known: readonly string[];
  readonly before: ReadonlyMap<string, Holding>;
  readonly unknownGone: readonly string[];
}

/** Proves that a purge that was made has left nothing. */
async function prove(
  tag: Tag,
  gone: readonly string[],
  { purges, shared, fleet, made, known, before, unknownGone }: Purged,
): Promise<Receipt> {
  await sleep(READERS_MS);
  const all = await fleet.known(gone);
  const expected = all.filter((id) => before.has(id) || !known.includes(id));
  const question = { tag, after: purges.position.sequence };
  const answers = await fleet.ask(question, expected, FLIGHTS_WITHIN_MS + ANSWER_WITHIN_MS);
  // Last: until then a process may have written what it had fetched before.
  let { problem } = made;
  let refetched = [...answers.values()].some((answer) => answer.refetched);
  const last = await shared
    ?.measure(
      (stored) => {
        if (!stored.tags.includes(tag)) return false;
        if (isPurged(purges, stored)) return true;
        if (!stored.tags.includes('class:notFound')) refetched = true;
        return false;
      },
      { isDeleting: true, first: keysOf(tag) ?? [] },
    )
    .then(async (found) => {
      await shared.deleteLeft();
      return found;
    })
    .catch((error: unknown) => {
      problem ??= refusedText(error);
      return null;
    });
  const processes = all.map((id) => {
    const answer = answers.get(id);
    const reached = answer !== undefined && answer.copies === 0 && answer.flights === 0;
    return { id, reached, dropped: before.get(id)?.copies ?? null };
  });
  const complete = shared === null || (made.isDeleted === true && last?.isComplete === true);
  const erased = complete && !refetched && processes.every(({ reached }) => reached);
  const deleted = shared === null ? 0 : made.entries + (last?.entries ?? 0);
  return {
    erased,
    refetched,
    unknownGone,
    redis: { deleted, complete, problem },
    processes,
    lists: made.lists?.entries ?? 0,
  };
}
