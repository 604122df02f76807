/**
 * Whether an answer shows that a call has changed (C11: a part is never older than the change that its reader has seen): by a
 * digest of what is published of it, which is kept as long as the longest of its parts. No I/O.
 */
import { hash } from 'node:crypto';
import { toCall } from '../domain/call.ts';
import type { EvaluationRecord } from '../domain/records.ts';
import type { Position } from '../journal/journal.ts';
import { type FetchStamp, isLater } from './entry.ts';

/** The last sighting of a call in one workspace: what the answer has shown. */
export interface LastSeen {
  readonly digest: string;
  /** How many answers in a row have differed from the one before. */
  readonly differed: number;
  /** When the fetch of the answer began, Unix milliseconds, and how far the journal was known then. */
  readonly requestedAtMs: number;
  readonly position: Position;
  /** The sequence of an announced change that is forgotten, and that no answer has shown yet; 0 for none. */
  readonly announced: number;
}

/** A call that differed in that many answers, one after the other, is unstable: its parts go by their times. */
export const UNSTABLE_AFTER = 5;
const LENGTH = 16;
/** A call that has not changed is noted again after so long, so that it is not forgotten before its parts. */
const NOTE_EVERY_MS = 3_600_000;

/** A digest of the fields of both surfaces, without those that may differ at each read: avatar, share, addresses of links. */
export function digestOf(record: EvaluationRecord): string {
  const call = toCall(record);
  const links = call.crm_objects.map(({ id, name, type }) => [id, name, type]);
  const published = [{ ...call, crm_objects: links }, record.state, record.evaluatee.givenName];
  return hash('sha256', JSON.stringify(published), 'base64url').slice(0, LENGTH);
}

export interface Judgement {
  /** Whether what was fetched before is out of date, and nobody has said so. */
  readonly isChanged: boolean;
  readonly isUnstable: boolean;
  /** The sighting that is to be kept; null if that would be the same. */
  readonly seen: LastSeen | null;
}

/** `announced`: the sequence of the last announced change of the call that is remembered; 0 for none. */
export function judge(
  known: LastSeen | null,
  digest: string,
  { requestedAtMs, receivedAtMs, position }: FetchStamp,
  announced: number,
): Judgement {
  const first = { digest, differed: 0, requestedAtMs, position, announced: 0 };
  if (known === null) return { isChanged: false, isUnstable: false, seen: first };
  const isSame = digest === known.digest;
  const differed = isSame ? 0 : known.differed + 1;
  const isUnstable = differed >= UNSTABLE_AFTER;
  const isAnnounced = isExplained(known, position, announced);
  // Changes of an unstable call have marked nothing.
  const isSettled = isSame && known.differed >= UNSTABLE_AFTER;
  const isChanged = isSettled || (!isSame && !isUnstable && !isAnnounced);
  // An older answer comes late: what the later one has shown stays.
  if (isLater(known.requestedAtMs, requestedAtMs, receivedAtMs))
    return { isChanged: !isSame && isChanged, isUnstable, seen: null };
  const isKnown = isSame && known.differed === 0 && !isAnnounced && requestedAtMs - known.requestedAtMs < NOTE_EVERY_MS;
  return { isChanged, isUnstable, seen: isKnown ? null : { ...first, differed } };
}

/** Whether the store has announced a change since the known answer, and before this one was asked for. */
function isExplained(
  { position: known, announced: forgotten }: LastSeen,
  position: Position,
  announced: number,
): boolean {
  if (known.history !== position.history) return false;
  const last = Math.max(forgotten, announced);
  return known.sequence < last && last <= position.sequence;
}
