/**
 * Who is calling: from the `Authorization` header to an active key in `ctx.state.apiKey`, or a refusal (K4: 401 for a
 * credential that was never issued, 403 for a key that is not active; K8: only an active key counts; K9: failures are limited
 * per address).
 */
import type { AuthFailure } from '../../keys/authenticate.ts';
import { type ErrorCode, forbidden, Problem, surfaceOf } from '../problem.ts';
import type { Middleware, PublicAppOptions } from '../state.ts';

const FAILURES: Readonly<Record<AuthFailure, readonly [code: ErrorCode, message: string]>> = {
  missing: ['key_missing', 'No API key was given. Send it as "Authorization: Bearer <API key>".'],
  'not-bearer': ['key_invalid', 'The Authorization header must be of the form "Bearer <API key>".'],
  empty: ['key_missing', 'The Authorization header holds no API key. Send it as "Authorization: Bearer <API key>".'],
  malformed: ['key_invalid', 'The API key is not valid.'],
  unknown: ['key_invalid', 'The API key is not valid.'],
  'too-many-failures': [
    'too_many_failures',
    'Too many requests from this address had no valid API key. Try again later.',
  ],
};

/**
 * A route is reached only with an active key. A path of a surface that has no route is answered 404 or 405 to anyone, but
 * an active key is recognised there too, so that the request counts against its quota.
 */
export function authenticate({ authenticator, addressOf, hooks }: PublicAppOptions): Middleware {
  return async (ctx, next) => {
    const { route } = ctx.state;
    const { authorization } = ctx.req.headers;
    if (route === null && (surfaceOf(ctx.path) === 'other' || authorization === undefined || authorization === '')) {
      return next();
    }
    const look = authenticator.authenticate({ authorization, address: () => addressOf(ctx) });
    const result = await ctx.state.redisWait.timed(look);
    if ('key' in result) ctx.state.keyId = result.key.keyId;
    if (result.kind === 'active') ctx.state.apiKey = result.key;
    if (result.kind === 'active' || route === null) return next();
    const reason = result.kind === 'unauthenticated' ? result.reason : result.kind;
    hooks.onAuthenticationRefused(reason);
    if (result.kind === 'unavailable') throw result.cause;
    ctx.state.refusal = { reason, address: addressOf(ctx) };
    if (result.kind === 'unauthenticated') throw unauthenticated(result.reason, result.retryAfterSeconds);
    throw forbidden('key_inactive', `key ${result.key.keyId} is not active`);
  };
}

function unauthenticated(reason: AuthFailure, retryAfterSeconds: number | null): Problem {
  const headers: Record<string, string> = { 'WWW-Authenticate': 'Bearer' };
  if (retryAfterSeconds !== null) headers['Retry-After'] = String(retryAfterSeconds);
  const [code, message] = FAILURES[reason];
  return new Problem(code, message, { headers, privateMessage: `unauthenticated: ${reason}` });
}
