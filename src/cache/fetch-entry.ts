/** One call to the store, made into an entry. */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../clock.ts';
import { type Fetch, type FetchOptions, type StoreAnswer, StoreError } from '../upstream/store.ts';
import { Entry } from './entry.ts';
import type { Keyed } from './ports.ts';
import type { PurgeLog } from './purge-log.ts';
import { evaluationQuestion, type Question } from './question.ts';
import type { ReadContext } from './reader.ts';
import { type StoredEntry, tagsOf } from './stored.ts';

export interface FetchDependencies {
  readonly fetch: Fetch;
  readonly purges: PurgeLog;
  readonly clock: Clock;
}

/** What is to be fetched, and what is held of it: the copy whose validator makes the call conditional. */
export interface FetchTask<T> {
  readonly question: Question<T>;
  readonly held: StoredEntry<T> | null;
  readonly context: ReadContext;
  /** Whether anyone still waits for the answer. */
  readonly isWanted: () => boolean;
  /** Nobody has ever waited for it: a copy was served meanwhile. */
  readonly isBackground: boolean;
}

export interface Fetched<T> {
  readonly stored: StoredEntry<T>;
  /** Whether the answer differs from what was held; null where nothing was. */
  readonly isChanged: boolean | null;
}

/** Rejects with a StoreError and nothing else. */
export async function fetchEntry<T>(
  task: FetchTask<T>,
  { fetch, purges, clock }: FetchDependencies,
): Promise<Fetched<T>> {
  const { question, context, isWanted, isBackground } = task;
  // A copy that was purged while this call waited for its turn is no base to renew anything on.
  const held = isPurged(task.held, purges) ? null : task.held;
  // Both before the call: a purge or a change that comes while it is under way is later than the answer.
  const position = purges.position();
  const filledAtMs = clock.nowMs();
  const answer = await question.ask(fetch, { ...fetchOptions(held, context), isWanted, isBackground });
  const { entry, isChanged } = entryOf({ question, held }, answer, filledAtMs);
  const tags = tagsOf(question, entry);
  return { stored: { kind: question.kind, entry, tags, position, fetchedAtMs: clock.nowMs() }, isChanged };
}

function isPurged(held: StoredEntry | null, purges: PurgeLog): boolean {
  return held !== null && purges.since(held.position, held.tags) === 'hard';
}

function fetchOptions(held: StoredEntry | null, context: ReadContext): FetchOptions {
  const etag = held?.entry.answer.kind === 'found' ? held.entry.answer.etag : null;
  return {
    requestId: context.requestId,
    ...(context.traceparent === undefined ? {} : { traceparent: context.traceparent }),
    ...(context.keyId === undefined ? {} : { keyId: context.keyId }),
    ...(etag === null ? {} : { ifNoneMatch: etag }),
  };
}

interface EntryAndChange<T> {
  readonly entry: Entry<T>;
  readonly isChanged: boolean | null;
}

/** An answer that is the held one again renews the entry, which keeps its record and all that was derived from it. */
function entryOf<T>(
  { question, held }: Pick<FetchTask<T>, 'question' | 'held'>,
  answer: StoreAnswer<T>,
  filledAtMs: number,
): EntryAndChange<T> {
  if (answer.kind === 'not-modified') {
    if (held === null)
      throw new StoreError('invalidResponse', `not-modified was answered to an unconditional call (${question.kind})`);
    return { entry: held.entry.renewedAt(filledAtMs), isChanged: false };
  }
  if (answer.kind === 'absent') {
    const isChanged = held === null ? null : held.entry.answer.kind === 'found';
    return { entry: new Entry<T>(answer, filledAtMs), isChanged };
  }
  const record = question.check(answer.record);
  if (record === null) throw new StoreError('malformed', `the answer is not the ${question.kind} that was asked for`);
  const heldAnswer = held?.entry.answer;
  if (held === null || heldAnswer?.kind !== 'found') {
    return { entry: new Entry<T>({ ...answer, record }, filledAtMs), isChanged: held === null ? null : true };
  }
  const isEqual = isDeepStrictEqual(record, heldAnswer.record);
  const isRenewal = isEqual && answer.etag === heldAnswer.etag;
  const entry = isRenewal ? held.entry.renewedAt(filledAtMs) : new Entry<T>({ ...answer, record }, filledAtMs);
  return { entry, isChanged: !isEqual };
}

/**
 * The single evaluations that an answer holds, as entries of their own. One that is held already, as `present` tells,
 * and that is the same is renewed: it keeps its validator and what was derived from it.
 */
export function seedsOf<T>(
  question: Question<T>,
  { entry, position, fetchedAtMs }: StoredEntry<T>,
  present: (key: string) => StoredEntry | undefined,
): readonly Keyed[] {
  if (entry.answer.kind === 'absent') return [];
  const records = question.seeds(entry.answer.record);
  const bytes = Math.ceil(entry.answer.bytes / Math.max(1, records.length));
  return records.map((record) => {
    const single = evaluationQuestion(record['_id']);
    const held = present(single.key)?.entry;
    const isSame = held?.answer.kind === 'found' && isDeepStrictEqual(held.answer.record, record);
    const seed = isSame
      ? held.renewedAt(entry.filledAtMs)
      : new Entry({ kind: 'found', record, etag: null, bytes }, entry.filledAtMs);
    const tags = tagsOf(single, new Entry({ kind: 'found', record, etag: null, bytes }, entry.filledAtMs));
    return { key: single.key, stored: { kind: 'evaluation', entry: seed, tags, position, fetchedAtMs } };
  });
}
