/** Who is calling: from the `Authorization` header to an active key in `ctx.state.apiKey`, or a refusal (K4, K8, K9). */
import type { AuthFailure, Authenticator } from '../../keys/authenticate.ts';
import { hasScope } from '../../keys/key.ts';
import { type ErrorCode, Problem, surfaceOf } from '../problem.ts';
import { forbidden, type Route } from '../route.ts';
import { apiKeyOf, type Context, type Middleware } from '../state.ts';

export interface AuthenticateOptions {
  readonly authenticator: Authenticator;
  /** The client's address, with trusted proxies taken into account. */
  readonly addressOf: (ctx: Context) => string;
  /** Called for each request that is refused. */
  readonly onRefused: (reason: AuthFailure | 'inactive' | 'unavailable') => void;
}

const CODES: Readonly<Record<AuthFailure, ErrorCode>> = {
  missing: 'key_missing',
  'not-bearer': 'key_invalid',
  empty: 'key_missing',
  malformed: 'key_invalid',
  unknown: 'key_invalid',
  'too-many-failures': 'too_many_failures',
};

const MESSAGES: Readonly<Record<AuthFailure, string>> = {
  missing: 'No API key was given. Send it as "Authorization: Bearer <API key>".',
  'not-bearer': 'The Authorization header must be of the form "Bearer <API key>".',
  empty: 'The Authorization header holds no API key. Send it as "Authorization: Bearer <API key>".',
  malformed: 'The API key is not valid.',
  unknown: 'The API key is not valid.',
  'too-many-failures': 'Too many requests from this address had no valid API key. Try again later.',
};

/**
 * A route is reached only with an active key. A path of a surface that has no route is answered 404 or 405 to anyone, but
 * an active key is recognised there too, so that the request counts against its quota.
 */
export function authenticate({ authenticator, addressOf, onRefused }: AuthenticateOptions): Middleware {
  return async (ctx, next) => {
    const { route } = ctx.state;
    const { authorization } = ctx.req.headers;
    if (route === null && (surfaceOf(ctx.path) === 'other' || authorization === undefined || authorization === '')) {
      return next();
    }
    const look = authenticator.authenticate({ authorization, address: () => addressOf(ctx) });
    const result = await ctx.state.redisWait.count(look);
    if ('key' in result) ctx.state.keyId = result.key.keyId;
    if (result.kind === 'active') ctx.state.apiKey = result.key;
    if (result.kind === 'active' || route === null) return next();
    switch (result.kind) {
      case 'inactive':
        onRefused('inactive');
        ctx.state.refusal = { reason: 'inactive', address: addressOf(ctx) };
        throw forbidden(route, 'key_inactive', `key ${result.key.keyId} is not active`);
      case 'unauthenticated':
        onRefused(result.reason);
        ctx.state.refusal = { reason: result.reason, address: addressOf(ctx) };
        throw unauthenticated(result.reason, result.retryAfterSeconds);
      case 'unavailable':
        onRefused('unavailable');
        throw result.cause;
    }
  };
}

/** In front of a handler: the key must hold the route's scope, if it has one. */
export function requireScope(route: Route): Middleware {
  const { scope } = route;
  return (ctx, next) => {
    if (scope !== null && !hasScope(apiKeyOf(ctx), scope)) throw forbidden(route, 'scope_missing', `scope ${scope}`);
    return next();
  };
}

function unauthenticated(reason: AuthFailure, retryAfterSeconds: number | null): Problem {
  const headers: Record<string, string> = { 'WWW-Authenticate': 'Bearer' };
  if (retryAfterSeconds !== null) headers['Retry-After'] = String(retryAfterSeconds);
  return new Problem(CODES[reason], MESSAGES[reason], { headers, privateMessage: `unauthenticated: ${reason}` });
}
