/** A change whose answer may be lost: it may then have been made, and nobody must be told that it was not. */
import { InvalidKeyError } from '../keys/schema.ts';
import { KeyStateError, RegistryUnavailableError } from '../keys/key.ts';
import { NotSentError, replyCode } from '../redis/connection.ts';
import type { Audit, AuditedChange } from './audit.ts';
import { AdminError } from './errors.ts';

/** Refused before anything was done; not for lack of an answer. */
const REFUSALS = [AdminError, KeyStateError, InvalidKeyError, RangeError] as const;

export interface AttemptedChange extends Pick<AuditedChange, 'who' | 'action' | 'target'> {
  /** The request as it was understood, for an audit that can't tell more. Holds no secret; null where `action` says all. */
  readonly asked: object | null;
}

/**
 * Makes the change. If no answer comes, the audit notes what was asked and that its outcome is unknown, and an AdminError
 * 503 says so too. If the change could not be sent, or Redis is full, it was not made, and the AdminError 503 says that.
 */
export async function attempt<T>(
  audit: Audit,
  { asked, ...change }: AttemptedChange,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (REFUSALS.some((refusal) => error instanceof refusal)) throw error;
    const reason = error instanceof Error ? error.message : 'no reason was given';
    // The registry reports what Redis did as the cause.
    const cause = error instanceof RegistryUnavailableError ? error.cause : error;
    if (replyCode(cause) === 'OOM') {
      throw new AdminError(
        503,
        'Redis is out of memory, so the change was not made. Raise maxmemory there or free memory, then repeat the change. Keys can be revoked and deprecated meanwhile.',
        { privateMessage: `${change.action}: not made: Redis is out of memory` },
      );
    }
    // An error that does not say that the change was not sent leaves the outcome unknown.
    if (cause instanceof NotSentError) {
      throw new AdminError(
        503,
        'What the gateways share cannot be reached, so the change was not made. GET /readyz tells which dependency is down; repeat the change when it is back.',
        { privateMessage: `${change.action}: not made: ${reason}` },
      );
    }
    await audit.record({ ...change, from: null, to: { outcome: 'unknown', asked } });
    throw new AdminError(
      503,
      'What the gateways share gave no answer in time, so it is not known whether the change was made. GET /readyz tells which dependency is down; look whether it was made before you repeat it.',
      { privateMessage: `${change.action}: outcome unknown: ${reason}` },
    );
  }
}
