/** A refused or failed admin request, and how far a change came that failed. */
import { InvalidKeyError, KeyStateError, RegistryUnavailableError } from '../keys/key.ts';
import { isUnanswered, NotSentError, replyCode } from '../redis/errors.ts';
import { refusalOf } from '../redis/refusal.ts';

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
  if (isOutage(error)) {
    return new AdminError(
      503,
      `${failureOf(error).finding}. GET /readyz tells which dependency is down; try again when it is back.`,
      { privateMessage: `Redis cannot be asked: ${reasonOf(error)}` },
    );
  }
  return new AdminError(500, 'The gateway failed in an unexpected way. Its log says why.', {
    privateMessage: 'unexpected failure',
  });
}

/** Whether something could not be read because Redis does not answer, or refuses: the log has that once, when it begins. */
export function isOutage(error: unknown): boolean {
  return error instanceof RegistryUnavailableError || isUnanswered(error) || refusalOf(error, STATE) !== null;
}

/** Endpoints ask the state Redis. A redirection that is left over is one that no Cluster was expected to send. */
const STATE = { setting: 'REDIS_URL', kind: 'single' } as const;

/** How soon an announcement that was not taken may be sent again. */
const ANNOUNCE_AGAIN_SECONDS = 2;

/** The refusal of an announcement that was not taken, or perhaps was: 503, with the time to send it again. */
export function notAnnounced(error: unknown): AdminError {
  const { finding, isUnknown } = failureOf(error);
  const outcome = isUnknown ? 'it is not known whether the changes were taken' : 'no change was taken';
  return new AdminError(503, `${finding}, so ${outcome}. Send the same again, with the same webhook-id.`, {
    privateMessage: `announcement: ${isUnknown ? 'outcome unknown' : 'not taken'}: ${reasonOf(error)}`,
    headers: { 'Retry-After': String(ANNOUNCE_AGAIN_SECONDS) },
    cause: error,
  });
}

interface Failure {
  /** Whether it was made is not known; if it is, it was not made. */
  readonly isUnknown: boolean;
  readonly finding: string;
  readonly advice: string;
}

/** The failure of a change, by the error that ended it. */
export function failureOf(error: unknown): Failure {
  // The registry reports what Redis did as the cause.
  const cause = error instanceof RegistryUnavailableError ? error.cause : error;
  if (replyCode(cause) === 'OOM') {
    return {
      isUnknown: false,
      finding: 'Redis is out of memory',
      advice:
        'Raise maxmemory there or free memory, then repeat the change. Keys can be revoked and deprecated meanwhile.',
    };
  }
  const refusal = refusalOf(cause, STATE);
  // A read-only Redis refuses the first write of a script, one that is away the whole script. Any other error of a change
  // that was sent leaves its outcome unknown.
  if (cause instanceof NotSentError || refusal?.kind === 'read-only' || refusal?.kind === 'away') {
    return {
      isUnknown: false,
      finding: `Redis ${refusal?.finding ?? 'cannot be reached'}`,
      advice: 'GET /readyz tells which dependency is down; repeat the change when it is back.',
    };
  }
  if (cause instanceof RangeError || cause instanceof TypeError) {
    return {
      isUnknown: true,
      finding: 'The gateway failed in an unexpected way',
      advice: 'Its log says why. Look whether the change was made before you repeat it.',
    };
  }
  return {
    isUnknown: true,
    finding: `Redis ${refusal?.finding ?? 'gave no answer in time'}`,
    advice: 'GET /readyz tells which dependency is down; look whether it was made before you repeat it.',
  };
}

/** For the log. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'no reason was given';
}
