/** An entry as a tier keeps it, and what it is good for at this moment. */
import type { ResourceKind } from '../upstream/resources.ts';
import { classify, jitterOf, type Classification } from './classify.ts';
import type { Entry } from './entry.ts';
import type { PurgeLog, PurgeEpoch } from './purge-log.ts';
import type { Question } from './question.ts';
import type { Tag } from './tags.ts';
import type { CacheClass, TtlPolicy } from './ttl-policy.ts';

/** `kind` decides the type of the record: whoever makes one, from the store or from bytes, has checked it to be so. */
export interface StoredEntry<T = unknown> {
  readonly kind: ResourceKind;
  readonly entry: Entry<T>;
  readonly tags: readonly Tag[];
  /** Where the purge log stood before the fetch began. */
  readonly position: PurgeEpoch;
  /** When the answer had arrived, Unix milliseconds; the fetch began at `entry.filledAtMs`. */
  readonly fetchedAtMs: number;
}

/** Whether what is kept under the question's key is an answer to it. */
export function answers<T>(question: Question<T>, stored: StoredEntry): stored is StoredEntry<T> {
  return stored.kind === question.kind;
}

export function classOf(kind: ResourceKind, entry: Entry<unknown>): CacheClass {
  return entry.answer.kind === 'absent' ? 'notFound' : kind;
}

/** All tags of an answer: those of its record, of its kind, and of its class. */
export function tagsOf<T>(question: Question<T>, entry: Entry<T>): readonly Tag[] {
  const { answer } = entry;
  const own = question.tags(answer.kind === 'found' ? answer.record : null);
  const cacheClass = classOf(question.kind, entry);
  const classes: readonly Tag[] =
    cacheClass === question.kind ? [`class:${cacheClass}`] : [`class:${question.kind}`, `class:${cacheClass}`];
  return ['all', ...classes, ...own];
}

/** What an entry is worth to a reader: `purged` ones are never served, the rest by their age. */
export interface Judgement extends Omit<Classification, 'usability'> {
  readonly usability: Classification['usability'] | 'purged';
  readonly ageMs: number;
}

export interface Law {
  readonly times: Pick<TtlPolicy, 'of'>;
  readonly purges: PurgeLog;
}

/** `keyHash` is `hash32` of the key that it is stored under. */
export function judge(keyHash: number, stored: StoredEntry, nowMs: number, law: Law): Judgement {
  const { entry } = stored;
  // A clock that was set back must not make an answer younger than new.
  const ageMs = Math.max(0, nowMs - entry.filledAtMs);
  const purge = law.purges.since(stored.position, stored.tags);
  const times = law.times.of(classOf(stored.kind, entry));
  const jitter = jitterOf(keyHash, entry.filledAtMs);
  const { usability, ttlMs } = classify(ageMs, times, { jitter, isOutdated: purge === 'soft' });
  return { usability: purge === 'hard' ? 'purged' : usability, ttlMs, ageMs };
}
