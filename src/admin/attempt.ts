/** A change whose answer may be lost: it may then have been made all the same, and nobody may be told that it wasn't. */
import { InvalidKeyError } from '../keys/schema.ts';
import { KeyStateError, RegistryUnavailableError } from '../keys/key.ts';
import { NotSentError } from '../redis/connection.ts';
import type { Audit, AuditedChange } from './audit.ts';
import { AdminError } from './errors.ts';

/** Refused before anything was done; not for lack of an answer. */
const REFUSALS = [AdminError, KeyStateError, InvalidKeyError, RangeError] as const;

export interface AttemptedChange extends Pick<AuditedChange, 'who' | 'action' | 'target'> {
  /** The request as it was understood, for an audit that can't tell more. Holds no secret; null where `action` says all. */
  readonly asked: object | null;
}

/**
 * Makes the change. Where it fails for lack of an answer, the audit tells what was asked and that its outcome is unknown,
 * and an AdminError 503 says so too. Where it could not even be sent, it was not made, and the AdminError 503 says that.
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
    if (wasNotSent(error)) {
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

/** Whether the change certainly did not reach Redis. An error that does not say so leaves the outcome unknown. */
function wasNotSent(error: unknown): boolean {
  const cause = error instanceof RegistryUnavailableError ? error.cause : error;
  return cause instanceof NotSentError;
}
