/** The one error that a call to the store fails with: why, and what a consumer may be told. */

/**
 * Why a call has no answer: by kind, what a consumer is told, without address, id or stack (S2: a 500 says why in plain
 * words). The kinds are public, in metrics, logs and spans, and have the same names between processes.
 */
const MESSAGES = {
  /** No whole answer in time. */
  timeout: 'The evaluation store did not answer in time. Try again later.',
  /** No connection, or it broke. */
  unreachable: 'The evaluation store cannot be reached at the moment. Try again later.',
  /** The store answered with a failure (401, 429, 5xx, a redirect, a 404 without a known code). */
  refused: 'The evaluation store is failing at the moment. Try again later.',
  /** It answered 200 with no answer of the interface (HTML, cut off), or with that to another question (id, workspace). */
  garbled: 'The evaluation store sent an invalid answer. Try again later.',
  /** The record itself is at fault (a member is missing or of the wrong type; too large, too deep, not UTF-8). */
  malformed: 'The evaluation store sent an answer that cannot be used.',
  /** The gateway did not send the call, to shield the store. */
  overloaded: 'The gateway is shielding the evaluation store from too many requests. Try again later.',
  /** The gateway did not send the call, because too many of the last ones failed. */
  suspended: 'The evaluation store is failing at the moment. Try again later.',
  /** The store is under maintenance, so the call was not sent. */
  paused: 'The evaluation store is under maintenance, and there is no usable copy of this. Try again later.',
  /** The gateway failed at the answer. That is no fault of the store's. */
  internal: 'An unexpected error occurred.',
  /** No reader was waiting for the answer, or the gateway was stopping. */
  aborted: 'The request was abandoned before the evaluation store answered.',
} as const;

export type StoreErrorKind = keyof typeof MESSAGES;

export function isStoreErrorKind(text: unknown): text is StoreErrorKind {
  return typeof text === 'string' && Object.hasOwn(MESSAGES, text);
}

type StoreErrorDetails = Partial<
  Pick<StoreError, 'retryAfterMs' | 'status' | 'workspaceId' | 'isUnprovoked' | 'isGivenUp' | 'cause'>
>;

/** A failed call to the store. `message` is private (for logs); `publicMessage` may be shown to anyone. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly kind: StoreErrorKind;
  /** When trying again may help, if that is known: the store's own `Retry-After`, or the gateway's wait. */
  readonly retryAfterMs: number | null;
  /** The store's HTTP status, if there was one. */
  readonly status: number | null;
  /**
   * The workspace that a malformed single record says it belongs to, in lower case; null if it cannot be told. A reader who
   * may not see that workspace must not learn that the record exists (K7: a foreign record looks like none).
   */
  readonly workspaceId: string | null;
  /** Whether no call had a part in the failure: nothing listens at the store's address, or its name has none. */
  readonly isUnprovoked: boolean;
  /** Whether the call left the queue before its turn came, though a reader with more time might have had it. */
  readonly isGivenUp: boolean;

  constructor(kind: StoreErrorKind, privateMessage: string, details: StoreErrorDetails = {}) {
    super(privateMessage, { cause: details.cause });
    this.kind = kind;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.status = details.status ?? null;
    this.workspaceId = details.workspaceId ?? null;
    this.isUnprovoked = details.isUnprovoked ?? false;
    this.isGivenUp = details.isGivenUp ?? false;
  }

  /** The same without the store's `Retry-After`. */
  withoutRetryAfter(): StoreError {
    const { status, workspaceId, isUnprovoked, isGivenUp, cause } = this;
    return new StoreError(this.kind, this.message, { status, workspaceId, isUnprovoked, isGivenUp, cause });
  }

  get publicMessage(): string {
    return MESSAGES[this.kind];
  }

  /** Whether a later try of the same call can be expected to go better. */
  get isTransient(): boolean {
    return this.kind !== 'malformed';
  }
}

/** A record that is at fault itself; `workspaceId` is the one that it claims to be of. */
export function malformed(privateMessage: string, workspaceId: string | null = null): StoreError {
  return new StoreError('malformed', privateMessage, { status: 200, workspaceId });
}

/** An answer of the store that breaks its interface, whatever record it holds. `status` is null if none had come. */
export function garbled(privateMessage: string, status: number | null = 200): StoreError {
  return new StoreError('garbled', privateMessage, { status });
}

/** The error itself, or one of kind `internal`: those who wait for a call know no other errors. */
export function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError('internal', 'the answer of the store could not be processed', { cause: error });
}
