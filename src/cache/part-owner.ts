/**
 * Decides whether a record that does not name its workspace is the readers': a part (transcript, scorecard, insights) is if its
 * evaluation is.
 */
import { StoreError } from '../upstream/store-error.ts';
import { copyInMemory, type ReadThroughParts } from './copies.ts';
import type { StoredEntry } from './entry.ts';
import type { CachedCopy } from './plan.ts';
import { evaluationOf } from './request.ts';
import type { FetchTask } from './store-call.ts';

/**
 * Whether a record that cannot be read, and so does not say whose it is, is these readers' to learn of (S2: a record's
 * trouble is a failure, never an absence, which consumers take for a deletion). A list, an evaluation and a rubric are,
 * whoever asks: somebody who knows an id learns that the store cannot deliver it, as of any other failure of the store for
 * one id.
 *
 * A *part* is whose its evaluation is (K7a: a foreign part looks like none). A copy may show that; else the evaluation is
 * asked (`ask`), by a flight of the same set. Rejects with the failure of that call: if the evaluation cannot be read either, that
 * is 500 for both.
 *
 * The residue: the first, cold read of a part that cannot be read takes longer for a foreign one than for none, by the
 * time of its transfer and of the call for its evaluation, which is then known to be none of the readers'.
 */
export async function isOfSet<T>(
  { request, set, reader, previous, isBackground }: FetchTask<T>,
  ask: (task: FetchTask) => Promise<StoredEntry>,
  parts: ReadThroughParts,
): Promise<boolean> {
  const evaluation = evaluationOf(request);
  if (evaluation === null || previous?.stored.entry.answer.kind === 'found') return true;
  const task = { request: evaluation, set, reader, previous: null, seenAtMs: null, isBackground };
  const copy = copyInMemory(task, parts);
  if (copy !== null && isTelling(copy)) return copy.stored.entry.answer.kind === 'found';
  try {
    return (await ask(task)).entry.answer.kind === 'found';
  } catch (error) {
    // It is at fault too, but has named a workspace of the set: of another one there would be none.
    if (error instanceof StoreError && error.kind === 'malformed' && error.workspaceId !== null) return true;
    throw error;
  }
}

/** Whether a copy tells whose the record is: one of any age, or that there is none, as long as that holds. */
export function isTelling({ state, stored }: CachedCopy): boolean {
  return state === 'fresh' || (state !== 'purged' && stored.entry.answer.kind === 'found');
}

/**
 * Reports a part of another workspace than its evaluation, if a copy shows that this is the readers': the store is wrong
 * then. An ordinary foreign part is not reported, and nothing else is done for either (K7a).
 */
export function reportMisplacedPart<T>({ request, set, reader }: FetchTask<T>, parts: ReadThroughParts): void {
  const evaluation = evaluationOf(request);
  if (evaluation === null) return;
  const copy = copyInMemory({ request: evaluation, set, reader }, parts);
  if (copy?.stored.entry.answer.kind !== 'found') return;
  const message = `the store's ${request.kind} is of another workspace than its evaluation (at workspaceId)`;
  const error = new StoreError('malformed', message);
  parts.events.onPartMisplaced?.({ class: request.kind, requestId: reader.requestId, error });
}
