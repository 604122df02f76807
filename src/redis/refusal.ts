/** How a Redis that answers refuses what it is asked for, in the words of `/readyz`, of the log and of the fleet. */
import { NotSentError, replyCode } from './connection.ts';

export interface Refusal {
  readonly code: string;
  /** `full`: keys can still be revoked. `read-only`: nothing can be changed. `forbidden`: this gateway may not ask. */
  readonly kind: 'full' | 'read-only' | 'forbidden';
  /** The predicate of a sentence about Redis. */
  readonly finding: string;
}

const CREDENTIALS = { kind: 'forbidden', finding: 'refuses the user or the password of %s (%c)' } as const;
const REFUSALS: Readonly<Record<string, Omit<Refusal, 'code'>>> = {
  OOM: { kind: 'full', finding: 'is full (maxmemory)' },
  MISCONF: { kind: 'read-only', finding: 'cannot write to its disk (%c)' },
  READONLY: { kind: 'read-only', finding: 'is a read-only replica (%c)' },
  NOPERM: { kind: 'forbidden', finding: 'refuses commands to the user of %s (%c)' },
  NOAUTH: CREDENTIALS,
  WRONGPASS: CREDENTIALS,
};

/**
 * Why Redis refuses a command, or refused an earlier one so that this one was not sent; null for any other error. `setting`:
 * that of its address.
 */
export function refusalOf(error: unknown, setting: 'REDIS_URL' | 'REDIS_CACHE_URL'): Refusal | null {
  const code = replyCode(error instanceof NotSentError ? error.cause : error) ?? '';
  const refusal = REFUSALS[code];
  if (refusal === undefined) return null;
  return { ...refusal, code, finding: refusal.finding.replace('%s', setting).replace('%c', code) };
}
