/** Turns whatever was thrown further in into the surface's own error form. */
import { RegistryUnavailableError } from '../../keys/key.ts';
import { StoreError } from '../../upstream/store.ts';
import { type Answer, jsonAnswer, NO_STORE } from '../answer.ts';
import { errorFormOf } from '../error-forms.ts';
import { type FieldLines, fieldLines } from '../head.ts';
import { Problem } from '../problem.ts';
import type { Context } from '../state.ts';

/** When to try again where nobody told how long the trouble lasts. */
const DEFAULT_RETRY_AFTER_SECONDS = 5;
const UNEXPECTED = 'Something went wrong in the gateway.';
const KEYS_UNAVAILABLE = 'API keys cannot be checked at the moment. Try again later.';

/** What a request that failed is answered with. */
export function errorAnswer(ctx: Context, error: unknown): Answer {
  const { status, publicMessage, headers } = problemOf(error);
  return failureAnswer(ctx, { status, message: publicMessage, fields: fieldLines(headers) });
}

export interface Failure {
  readonly status: number;
  /** Public. */
  readonly message: string;
  readonly fields?: FieldLines;
}

/** The same for a failure that nobody has thrown. */
export function failureAnswer(ctx: Context, { status, message, fields = '' }: Failure): Answer {
  return jsonAnswer(status, NO_STORE + fields, errorFormOf(ctx)(status, message, ctx));
}

/** Every way of failing as a status and what may be said of it (S1, S2). */
function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof StoreError) {
    const headers: Record<string, string> = error.isTransient ? retryAfter(error.retryAfterMs) : {};
    return new Problem(500, error.publicMessage, { headers });
  }
  if (error instanceof RegistryUnavailableError) {
    const { cause } = error;
    const delayMs = cause instanceof StoreError ? cause.retryAfterMs : null;
    return new Problem(500, KEYS_UNAVAILABLE, { headers: retryAfter(delayMs) });
  }
  return new Problem(500, UNEXPECTED);
}

function retryAfter(delayMs: number | null): Record<string, string> {
  const seconds = delayMs === null ? DEFAULT_RETRY_AFTER_SECONDS : Math.max(1, Math.ceil(delayMs / 1000));
  return { 'Retry-After': String(seconds) };
}
