/** The one error that a call to the store fails with: why, and what a consumer may be told. */

/**
 * Why a call has no answer. `label`: the kind as metrics, logs and spans have always named it, which is public; `message`:
 * for consumers, without address, id or stack (S2).
 */
const KINDS = {
  /** No whole answer in time. */
  timeout: { label: 'timeout', message: 'The evaluation store did not answer in time. Try again later.' },
  /** No connection, or it broke. */
  unreachable: {
    label: 'unreachable',
    message: 'The evaluation store cannot be reached at the moment. Try again later.',
  },
  /** The store answered with a failure (401, 429, 5xx, a redirect, a 404 without a known code). */
  errorStatus: { label: 'refused', message: 'The evaluation store is failing at the moment. Try again later.' },
  /** It answered 200 with something that is no answer of the interface (HTML, cut off, too large, too deep). */
  invalidResponse: {
    label: 'garbled',
    message: 'The evaluation store sent an answer that cannot be read. Try again later.',
  },
  /** The answer is not what was asked for (a member is missing or of the wrong type, another id or workspace). */
  malformed: { label: 'malformed', message: 'The evaluation store sent an answer that cannot be used.' },
  /** The gateway did not send the call, to shield the store. */
  overloaded: {
    label: 'overloaded',
    message: 'The gateway is shielding the evaluation store from too many requests. Try again later.',
  },
  /** The gateway did not send the call, because too many of the last ones failed. */
  circuitOpen: { label: 'suspended', message: 'The evaluation store is failing at the moment. Try again later.' },
  /** The store is under maintenance, so the call was not sent. */
  maintenance: {
    label: 'paused',
    message: 'The evaluation store is under maintenance, and there is no usable copy of this. Try again later.',
  },
  /** No reader was waiting for the answer, or the gateway was stopping. */
  aborted: { label: 'aborted', message: 'The request was abandoned before the evaluation store answered.' },
} as const;

export type StoreErrorKind = keyof typeof KINDS;
export type StoreErrorLabel = (typeof KINDS)[StoreErrorKind]['label'];

export function isStoreErrorKind(text: unknown): text is StoreErrorKind {
  return typeof text === 'string' && Object.hasOwn(KINDS, text);
}

type StoreErrorDetails = Partial<Pick<StoreError, 'retryAfterMs' | 'status' | 'workspaceId' | 'cause'>>;

/** A failed call to the store. `message` is private (for logs); `publicMessage` may be shown to anyone. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly kind: StoreErrorKind;
  /** When trying again may help: the store's own `Retry-After`, else null. */
  readonly retryAfterMs: number | null;
  /** The store's HTTP status, if there was one. */
  readonly status: number | null;
  /**
   * The workspace that a malformed single record says it belongs to, in lower case; null if it cannot be told. A reader who
   * may not see that workspace must not learn that the record exists (K7).
   */
  readonly workspaceId: string | null;

  constructor(kind: StoreErrorKind, privateMessage: string, details: StoreErrorDetails = {}) {
    super(privateMessage, { cause: details.cause });
    this.kind = kind;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.status = details.status ?? null;
    this.workspaceId = details.workspaceId ?? null;
  }

  /** The name of the kind in metrics, logs and spans. */
  get label(): StoreErrorLabel {
    return KINDS[this.kind].label;
  }

  get publicMessage(): string {
    return KINDS[this.kind].message;
  }

  /** Whether a later try of the same call can be expected to go better. */
  get isTransient(): boolean {
    return this.kind !== 'malformed';
  }
}

/** An answer that cannot be used; `workspaceId` is the one that a single record claims. */
export function malformed(privateMessage: string, workspaceId: string | null = null): StoreError {
  return new StoreError('malformed', privateMessage, { status: 200, workspaceId });
}

/** The error itself, or one of kind `invalidResponse`: readers know no other errors than the store's. */
export function asStoreError(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError('invalidResponse', 'the answer of the store could not be processed', { cause: error });
}
