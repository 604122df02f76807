/** What a failed call says: of the store's health, and of whether the same call can succeed if it is repeated. */
import { StoreError, type StoreErrorKind } from '../store.ts';
import type { Verdict } from './breaker.ts';

const TOO_MANY_REQUESTS = 429;
/** What stands in front of the store couldn't reach it, or it said that it is busy. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
/** The first repetition comes within this time, the next within twice of it. */
const FIRST_DELAY_MS = 100;

/** An unusable record is an answer: the store lives. What was not sent, or was abandoned, says nothing. */
const VERDICTS: Readonly<Record<Exclude<StoreErrorKind, 'refused'>, Verdict>> = {
  timeout: 'bad',
  unreachable: 'bad',
  garbled: 'bad',
  malformed: 'good',
  overloaded: 'none',
  suspended: 'none',
  paused: 'none',
  aborted: 'none',
};

/** A store that refuses the one call, as one that it doesn't authorise, lives too. */
export function verdictOf(error: StoreError): Verdict {
  if (error.kind !== 'refused') return VERDICTS[error.kind];
  return isStatusOfTrouble(error.status ?? 0) ? 'bad' : 'good';
}

function isStatusOfTrouble(status: number): boolean {
  return status >= 500 || status === TOO_MANY_REQUESTS;
}

/**
 * After how long the call may be repeated, which was sent `sent` times by now; null where that is no use. The store's own
 * wish is met; beyond it the delay is at random (full jitter), so that calls that failed together don't come again
 * together. `random` is from 0 to below 1.
 */
export function retryDelayMs(error: unknown, sent: number, random: number): number | null {
  if (!(error instanceof StoreError)) return null;
  const { kind, status, retryAfterMs } = error;
  const isPassing =
    kind === 'unreachable' ||
    (kind === 'refused' && PASSING_STATUSES.has(status ?? 0)) ||
    (kind === 'refused' && status === TOO_MANY_REQUESTS && retryAfterMs !== null);
  return isPassing ? (retryAfterMs ?? 0) + random * FIRST_DELAY_MS * 2 ** (sent - 1) : null;
}
