/** Turns whatever was thrown further in into the surface's own error form. The only place that sets a failing status. */
import { RegistryUnavailableError } from '../../keys/key.ts';
import { StoreError } from '../../upstream/store.ts';
import { Problem } from '../problem.ts';
import type { Context, Middleware } from '../state.ts';

/** The body of an error: v1 and v2 differ in it, and v1's list has more to it. */
export type ErrorForm = (status: number, publicMessage: string, ctx: Context) => object;

/** When to try again where nobody told how long the trouble lasts. */
const DEFAULT_RETRY_AFTER_SECONDS = 5;
const UNEXPECTED = 'Something went wrong in the gateway.';
const KEYS_UNAVAILABLE = 'API keys cannot be checked at the moment. Try again later.';

/** What may have been set for a 200 that then failed. */
const OF_A_REPRESENTATION = ['ETag', 'Age', 'Cache-Status', 'Content-Encoding'];

export function renderErrors(form: ErrorForm): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const problem = problemOf(error);
      ctx.state.failure = error;
      for (const name of OF_A_REPRESENTATION) ctx.remove(name);
      ctx.status = problem.status;
      ctx.set('Cache-Control', 'no-store');
      ctx.set(problem.headers);
      ctx.body = form(problem.status, problem.publicMessage, ctx);
    }
  };
}

/** Every way of failing as a status and what may be said of it (S1, S2). */
function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof StoreError) {
    const headers: Record<string, string> = error.isTransient ? retryAfter(error.retryAfterMs) : {};
    return new Problem(500, error.publicMessage, { headers });
  }
  if (error instanceof RegistryUnavailableError) {
    return new Problem(500, KEYS_UNAVAILABLE, { headers: retryAfter(null) });
  }
  return new Problem(500, UNEXPECTED);
}

function retryAfter(delayMs: number | null): Record<string, string> {
  const seconds = delayMs === null ? DEFAULT_RETRY_AFTER_SECONDS : Math.max(1, Math.ceil(delayMs / 1000));
  return { 'Retry-After': String(seconds) };
}
