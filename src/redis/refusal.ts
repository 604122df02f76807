/**
 * How a Redis that answers refuses what it is asked for, in the words of `/readyz`, of the log and of the fleet. The first
 * word of an error reply is part of the protocol, and says which it is; its text is for people.
 */
import { HandshakeError, NotSentError, replyCode } from './errors.ts';

/**
 * - `full`: keys can still be revoked
 * - `read-only`: nothing can be changed, and everything be read
 * - `forbidden`: this gateway may not ask
 * - `away`: nothing can be read either, for now
 */
export interface Refusal {
  readonly code: string;
  readonly kind: 'full' | 'read-only' | 'forbidden' | 'away';
  /** What is said of Redis, after its name. */
  readonly finding: string;
}

/** The variable that holds its address. */
export type AddressSetting = 'REDIS_URL' | 'REDIS_CACHE_URL';

const CREDENTIALS = { kind: 'forbidden', finding: 'refuses the user or the password of %s (%c)' } as const;
const REFUSALS: Readonly<Record<string, Omit<Refusal, 'code'>>> = {
  OOM: { kind: 'full', finding: 'is full (maxmemory)' },
  MISCONF: { kind: 'read-only', finding: 'cannot save to its disk (%c): make room there, or see why in its log' },
  READONLY: { kind: 'read-only', finding: 'is a read-only replica (%c)' },
  NOREPLICAS: { kind: 'read-only', finding: 'has fewer replicas than min-replicas-to-write (%c)' },
  NOPERM: { kind: 'forbidden', finding: 'refuses commands to the user of %s (%c)' },
  NOAUTH: CREDENTIALS,
  WRONGPASS: CREDENTIALS,
  LOADING: { kind: 'away', finding: 'is loading its data (%c)' },
  BUSY: { kind: 'away', finding: 'runs a script that does not end (%c)' },
  MASTERDOWN: { kind: 'away', finding: 'is a replica that has lost its primary (%c)' },
  CLUSTERDOWN: { kind: 'away', finding: 'does not serve all slots (%c)' },
  TRYAGAIN: { kind: 'away', finding: 'is moving slots to another node (%c)' },
};

/** The code of a refusal that does not depend on what was asked for; null for any other error. */
export function refusalCode(error: unknown): string | null {
  const code = replyCode(error);
  return code !== null && Object.hasOwn(REFUSALS, code) ? code : null;
}

/**
 * What Redis refuses, also if that is only why a later command was not sent; null for any other error. `setting`: that of
 * its address.
 */
export function refusalOf(error: unknown, setting: AddressSetting): Refusal | null {
  const reason = error instanceof NotSentError ? error.cause : error;
  const reply = reason instanceof HandshakeError ? reason.cause : reason;
  const code = replyCode(reply) ?? '';
  const refusal = REFUSALS[code];
  if (refusal !== undefined) {
    return { ...refusal, code, finding: refusal.finding.replace('%s', setting).replace('%c', code) };
  }
  return reason instanceof HandshakeError
    ? { code, kind: 'forbidden', finding: handshakeFinding(reason, setting) }
    : null;
}

function handshakeFinding({ command, db }: HandshakeError, setting: AddressSetting): string {
  if (command === 'SELECT')
    return `has no database ${db}: give another number in ${setting}, or raise "databases" there`;
  if (command === 'AUTH') return `takes no password, and ${setting} has one: leave it out there, or set it in Redis`;
  return `refuses ${command}`;
}
