/**
 * Whom an answer is for. A record of a workspace that a reader doesn't ask for is absent to it, and what it gets instead
 * is made here: an entry like that of an id that nothing has, with the same tags and the same times.
 */
import { StoreError } from '../upstream/store.ts';
import { Entry } from './entry.ts';
import type { Question } from './question.ts';
import { answers, type StoredEntry, tagsOf } from './stored.ts';

/** Whether it may be served to who asks the question for these workspaces, and stored for it. */
export function isVisible<T>(question: Question<T>, stored: StoredEntry, workspaceIds: readonly string[]): boolean {
  return answers(question, stored) && foreignWorkspaceOf(question, stored, workspaceIds) === null;
}

/** The workspace of the answer's record where it is none of these, else null. */
export function foreignWorkspaceOf<T>(
  question: Question<T>,
  { entry: { answer } }: StoredEntry<T>,
  workspaceIds: readonly string[],
): string | null {
  return outsideOf(workspaceIds, answer.kind === 'found' ? question.workspaceOf(answer.record) : null);
}

/** The workspace of the record that a failure is about where it is none of these, else null. */
export function foreignWorkspaceOfFailure(error: unknown, workspaceIds: readonly string[]): string | null {
  return outsideOf(workspaceIds, error instanceof StoreError ? error.workspaceId : null);
}

function outsideOf(workspaceIds: readonly string[], workspaceId: string | null): string | null {
  return workspaceId === null || workspaceIds.includes(workspaceId) ? null : workspaceId;
}

/** A record was answered that is of none of the workspaces of a reader who has a copy that was. */
export function foreignRecord(kind: string): StoreError {
  return new StoreError('malformed', `the answer (${kind}) is of another workspace than the one that was asked for`);
}

/** When the absence was learned, and how long the purge log was before. */
export interface Learned extends Pick<StoredEntry, 'position' | 'fetchedAtMs'> {
  readonly filledAtMs: number;
}

/** The knowledge that, for some readers, there is no such thing. */
export function absence<T>(question: Question<T>, { filledAtMs, position, fetchedAtMs }: Learned): StoredEntry<T> {
  const entry = new Entry<T>({ kind: 'absent', code: 'NOT_FOUND' }, filledAtMs);
  return { kind: question.kind, entry, tags: tagsOf(question, entry), position, fetchedAtMs };
}
