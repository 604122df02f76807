/** Makes entries of the store's answers. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { type StoreAnswer, StoreError } from '../upstream/store.ts';
import type { Learned } from './access.ts';
import { Entry, type Keyed, type StoredEntry, tagsOf } from './entry.ts';
import { type CacheRequest, RECORD_REQUESTS } from './request.ts';

export interface Answered<T> {
  readonly stored: StoredEntry<T>;
  /** Whether the answer differs from the copy that was held; null if there was none. */
  readonly isChanged: boolean | null;
}

/**
 * The entry of an answer; `held` is the copy whose validator made the call conditional. Throws a StoreError if it is no
 * answer to the request.
 */
export function answered<T>(
  request: CacheRequest<T>,
  held: StoredEntry<T> | null,
  answer: StoreAnswer<T>,
  { filledAtMs, position, fetchedAtMs }: Learned,
): Answered<T> {
  const { entry, isChanged } = entryOf(request, held?.entry ?? null, answer, filledAtMs);
  return { stored: { kind: request.kind, entry, tags: tagsOf(request, entry), position, fetchedAtMs }, isChanged };
}

/** An answer that is the held one again renews the entry, which keeps its record and everything derived from it. */
function entryOf<T>(
  request: CacheRequest<T>,
  held: Entry<T> | null,
  answer: StoreAnswer<T>,
  filledAtMs: number,
): { readonly entry: Entry<T>; readonly isChanged: boolean | null } {
  const { kind } = request;
  if (answer.kind === 'not-modified') {
    if (held !== null) return { entry: held.renewedAt(filledAtMs), isChanged: false };
    throw new StoreError('invalidResponse', `not-modified was answered to an unconditional call (${kind})`);
  }
  if (answer.kind === 'absent') {
    const isChanged = held === null ? null : held.answer.kind === 'found';
    return { entry: new Entry<T>(answer, filledAtMs), isChanged };
  }
  const { record, etag } = answer;
  if (!request.isAnsweredBy(record)) {
    throw new StoreError('malformed', `the answer is not the ${kind} that was asked for`);
  }
  if (held?.answer.kind !== 'found') {
    return { entry: new Entry<T>(answer, filledAtMs), isChanged: held === null ? null : true };
  }
  const isEqual = isDeepStrictEqual(record, held.answer.record);
  const isRenewal = isEqual && etag === held.answer.etag;
  return { entry: isRenewal ? held.renewedAt(filledAtMs) : new Entry<T>(answer, filledAtMs), isChanged: !isEqual };
}

/**
 * The single evaluations that an answer holds, as entries of their own. If `present` returns an equal one, that is
 * renewed: it keeps its validator and everything derived from it.
 */
export function backfillsOf<T>(
  request: CacheRequest<T>,
  { entry, position, fetchedAtMs }: StoredEntry<T>,
  present: (key: string) => StoredEntry | null,
): readonly Keyed[] {
  if (entry.answer.kind === 'absent') return [];
  const records = request.backfills(entry.answer.record);
  const bytes = Math.ceil(entry.answer.bytes / Math.max(1, records.length));
  return records.map((record) => {
    const single = RECORD_REQUESTS.evaluation(record['_id']);
    const fresh = new Entry({ kind: 'found', record, etag: null, bytes }, entry.filledAtMs);
    const held = present(single.key)?.entry;
    const isSame = held?.answer.kind === 'found' && isDeepStrictEqual(held.answer.record, record);
    const stored: StoredEntry = {
      kind: 'evaluation',
      entry: isSame ? held.renewedAt(entry.filledAtMs) : fresh,
      tags: tagsOf(single, fresh),
      position,
      fetchedAtMs,
    };
    return { key: single.key, stored };
  });
}
