/** A change whose answer may be lost: it may then have been made all the same, and nobody may be told that it wasn't. */
import { InvalidKeyError } from '../keys/schema.ts';
import { KeyStateError } from '../keys/key.ts';
import type { Audit, AuditedChange } from './audit.ts';
import { AdminError } from './errors.ts';

/** Refused before anything was done; not for lack of an answer. */
const REFUSALS = [AdminError, KeyStateError, InvalidKeyError, RangeError] as const;

/**
 * Makes the change. Where it fails for lack of an answer, the audit tells that its outcome is unknown, and an AdminError
 * 503 says so too.
 */
export async function attempt<T>(
  audit: Audit,
  change: Pick<AuditedChange, 'who' | 'action' | 'target'>,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (REFUSALS.some((refusal) => error instanceof refusal)) throw error;
    await audit.record({ ...change, from: null, to: { outcome: 'unknown' } });
    const reason = error instanceof Error ? error.message : 'no reason was given';
    throw new AdminError(
      503,
      'What the gateways share gave no answer in time, so it is not known whether the change was made. GET /readyz tells which dependency is down; look whether it was made before you repeat it.',
      { privateMessage: `${change.action}: outcome unknown: ${reason}` },
    );
  }
}
