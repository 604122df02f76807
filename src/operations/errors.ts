/** A refused or failed admin request, and changes whose outcome may stay unknown. */
import { InvalidKeyError, KeyStateError, RegistryUnavailableError } from '../keys/key.ts';
import { NotSentError, replyCode } from '../redis/errors.ts';
import { refusalOf } from '../redis/refusal.ts';
import type { Audit, AuditedChange } from './audit.ts';

/**
 * A refusal. `publicMessage` goes to the caller and says what was given, what is allowed and what to do;
 * `message` goes to the log and holds nothing that a caller sent, since that could be a secret in the wrong place.
 */
export class AdminError extends Error {
  override readonly name = 'AdminError';
  readonly status: number;
  readonly publicMessage: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    publicMessage: string,
    details: { privateMessage: string; headers?: Readonly<Record<string, string>>; cause?: unknown },
  ) {
    super(details.privateMessage, { cause: details.cause });
    this.status = status;
    this.publicMessage = publicMessage;
    this.headers = details.headers ?? {};
  }
}

/** The refusal that any thrown value amounts to. */
export function asAdminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof KeyStateError) {
    return new AdminError(409, error.message, { privateMessage: 'the state of the key forbids it' });
  }
  if (error instanceof InvalidKeyError) {
    return new AdminError(400, error.message, { privateMessage: 'the registry does not take such a key' });
  }
  if (error instanceof RegistryUnavailableError) {
    return new AdminError(
      503,
      'The key registry cannot be asked at the moment. GET /readyz tells which dependency is down; try again when it is back.',
      { privateMessage: `the key registry is unavailable: ${error.message}` },
    );
  }
  return new AdminError(500, 'The gateway failed in an unexpected way. Its log says why.', {
    privateMessage: 'unexpected failure',
  });
}

/** Refused before anything was done; not for lack of an answer. */
const REFUSALS = [AdminError, KeyStateError, InvalidKeyError, RangeError] as const;

export interface Change<T> extends Pick<AuditedChange, 'who' | 'action' | 'target'> {
  /** The request as it was understood, for the audit of an unknown outcome. No secret; null if `action` says it all. */
  readonly asked: object | null;
  readonly make: () => Promise<T>;
  /** For the audit, once it is made: what became of it, and what is known better by then; null if nothing is different. */
  readonly note: (made: T) => Note | null | Promise<Note>;
}
type Note = Pick<AuditedChange, 'from' | 'to'> & Partial<AuditedChange>;

/**
 * Makes the change, and audits it. If no answer comes, the audit notes what was asked and that its outcome is unknown, and
 * an AdminError 503 says so too. If the change could not be sent, or Redis is full or read-only, it was not made, and the
 * AdminError 503 says that.
 */
export async function makeChange<T>(audit: Audit, { asked, make, note, ...about }: Change<T>): Promise<T> {
  const made = await make().catch(async (error: unknown) => {
    const failure = (publicMessage: string, reason: string): AdminError =>
      new AdminError(503, publicMessage, { privateMessage: `${about.action}: ${reason}`, cause: error });
    if (REFUSALS.some((refusal) => error instanceof refusal)) throw error;
    const reason = error instanceof Error ? error.message : 'no reason was given';
    // The registry reports what Redis did as the cause.
    const cause = error instanceof RegistryUnavailableError ? error.cause : error;
    if (replyCode(cause) === 'OOM') {
      throw failure(
        'Redis is out of memory, so the change was not made. Raise maxmemory there or free memory, then repeat the change. Keys can be revoked and deprecated meanwhile.',
        'not made: Redis is out of memory',
      );
    }
    const refusal = refusalOf(cause, 'REDIS_URL');
    // A read-only Redis refuses the first write of a script, one that is away the whole script. Any other error of a change
    // that was sent leaves its outcome unknown.
    if (cause instanceof NotSentError || refusal?.kind === 'read-only' || refusal?.kind === 'away') {
      throw failure(
        `Redis ${refusal?.finding ?? 'cannot be reached'}, so the change was not made. GET /readyz tells which dependency is down; repeat the change when it is back.`,
        `not made: ${reason}`,
      );
    }
    await audit.record({ ...about, from: null, to: { outcome: 'unknown', asked } });
    throw failure(
      'Redis gave no answer in time, so it is not known whether the change was made. GET /readyz tells which dependency is down; look whether it was made before you repeat it.',
      `outcome unknown: ${reason}`,
    );
  });
  const noted = await note(made);
  if (noted !== null) await audit.record({ ...about, ...noted });
  return made;
}
