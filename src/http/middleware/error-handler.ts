/** Renders whatever was thrown further in: the only place that sets a failure's status (S1, S2). */
import { RegistryUnavailableError } from '../../keys/key.ts';
import { StoreError } from '../../upstream/store.ts';
import { errorBody, Problem } from '../problem.ts';
import type { Middleware } from '../state.ts';

/** If nobody said how long the trouble lasts. */
const DEFAULT_RETRY_AFTER_SECONDS = 5;
const UNEXPECTED = 'Something went wrong in the gateway.';
const KEYS_UNAVAILABLE = 'API keys cannot be checked at the moment. Try again later.';

export function errorHandler(): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      // The client has left.
      if (ctx.state.signal.aborted) return;
      ctx.state.failure = error;
      ctx.state.response = null;
      const { code, status, publicMessage, headers } = problemOf(error);
      ctx.status = status;
      ctx.set({ 'Cache-Control': 'no-store', 'X-Error-Code': code, ...headers });
      ctx.body = errorBody(ctx.path, status, publicMessage);
    }
  };
}

function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof StoreError) {
    // The API has one status for everything that is not the consumer's fault (S1); `Retry-After` says if it will pass.
    const headers = error.isTransient ? retryAfter(error.retryAfterMs) : {};
    return new Problem(error.isTransient ? 'store_unavailable' : 'record_malformed', error.publicMessage, { headers });
  }
  if (error instanceof RegistryUnavailableError) {
    const delayMs = error.cause instanceof StoreError ? error.cause.retryAfterMs : null;
    return new Problem('keys_unavailable', KEYS_UNAVAILABLE, { headers: retryAfter(delayMs) });
  }
  return new Problem('internal_error', UNEXPECTED);
}

function retryAfter(delayMs: number | null): { readonly 'Retry-After': string } {
  const seconds = delayMs === null ? DEFAULT_RETRY_AFTER_SECONDS : Math.max(1, Math.ceil(delayMs / 1000));
  return { 'Retry-After': String(seconds) };
}
