/**
 * The one interface to the store of evaluations: a single generic function. The HTTP client is a `Fetch`; what protects the
 * store (maintenance, queue, breaker) takes a `Fetch` and returns one; the cache reads through it. `problemOf` in
 * http/problem.ts answers the consumer of a StoreError: a 500, with `Retry-After` for what may pass, such as a timeout.
 */
import type { AbsentCode, Resource } from './resources.ts';

/** Rejects with a StoreError, or with a TypeError for parameters that the caller should have refused: nothing is sent then. */
export type Fetch = <P, R>(resource: Resource<P, R>, params: P, options: FetchOptions) => Promise<StoreAnswer<R>>;

/** Who asks and how long the answer is of use. */
export interface FetchOptions {
  readonly requestId: string;
  /** W3C trace context to pass on. */
  readonly traceparent?: string;
  /** The ETag of a copy held: the store may answer `not-modified`. */
  readonly ifNoneMatch?: string;
  /**
   * Aborted once nobody waits for the answer any more. A call that was not sent by then leaves the queue, and the promise
   * rejects with a StoreError of kind `aborted`. A call that was sent goes on, because its answer can be kept.
   */
  readonly signal?: AbortSignal;
  /** How long the call may take in all, if that is less than `upstream.timeout`. */
  readonly timeoutMs?: number;
  /** No reader waits for the answer: calls that a reader waits for go first. */
  readonly isBackground?: boolean;
  /** The call is in the background: it is made only if its turn comes at once. */
  readonly isEarly?: boolean;
  /**
   * It waits for its turn as long as the whole call may take, and not only for `upstream.queueTimeout`: its readers have nothing
   * that would do instead (C11: a copy from before a change is renewed before it is served).
   */
  readonly isUrgent?: boolean;
  /**
   * How many readers gain by it: of calls of one key, those with more go first. They wait for the answer, or, in the
   * background, have read the copy that it renews.
   */
  readonly readers?: () => number;
  /**
   * Takes over what gives back the memory reserved for the answer, to be called once the answer is kept or given up. Without
   * it, that is given back when the answer is returned.
   */
  readonly onReserved?: (release: () => void) => void;
  /** Called when the status and headers of the answer have come. */
  readonly onHeaders?: () => void;
  /** The API key whose reader caused the call: keys share the store fairly. */
  readonly keyId?: string;
}

export interface Found<T> {
  readonly kind: 'found';
  readonly record: T;
  /** The store's own validator, as it was sent. */
  readonly etag: string | null;
  /** Size of the decoded answer, for those who keep it. */
  readonly bytes: number;
}
export interface NotModified {
  readonly kind: 'not-modified';
}
export interface Absent {
  readonly kind: 'absent';
  readonly code: AbsentCode;
}
/** `NotModified` only ever answers a call with `ifNoneMatch`. */
export type StoreAnswer<T> = Found<T> | NotModified | Absent;
