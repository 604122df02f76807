/** Who is calling: from the Authorization header to an active key, or a refusal (K4, K8, K9). */
import type { AuthFailure, Authenticator, AuthResult } from '../../keys/authenticate.ts';
import { Problem } from '../problem.ts';
import { type Context, routeOf } from '../state.ts';

export interface AuthenticateOptions {
  readonly authenticator: Authenticator;
  /** The caller's address, with trusted proxies taken into account. */
  readonly addressOf: (ctx: Context) => string;
  readonly onRefused: (reason: AuthFailure | 'inactive' | 'unavailable') => void;
}

/** In front of an endpoint: nobody gets past it without an active key. */
export function requireKey(options: AuthenticateOptions): (ctx: Context) => Promise<void> | void {
  const admit = (ctx: Context, result: AuthResult): void => {
    if ('key' in result) ctx.state.keyId = result.key.keyId;
    switch (result.kind) {
      case 'active':
        ctx.state.key = result.key;
        return;
      case 'inactive':
        options.onRefused('inactive');
        throw new Problem(403, routeOf(ctx).forbidden, { privateMessage: `key ${result.key.keyId} is not active` });
      case 'unauthenticated':
        options.onRefused(result.reason);
        throw unauthenticated(result.reason, result.retryAfterSeconds);
      case 'unavailable':
        options.onRefused('unavailable');
        throw result.cause;
    }
  };
  return (ctx) => {
    const result = ask(ctx, options);
    return result instanceof Promise ? result.then((later) => admit(ctx, later)) : admit(ctx, result);
  };
}

/** In front of what is no endpoint: an active key is recognised, so that its requests count; nobody is refused. */
export function recogniseKey(options: AuthenticateOptions): (ctx: Context) => Promise<void> {
  return async (ctx) => {
    if (ctx.get('Authorization') === '') return;
    const result = await ask(ctx, options);
    if (!('key' in result)) return;
    ctx.state.keyId = result.key.keyId;
    if (result.kind === 'active') ctx.state.key = result.key;
  };
}

function ask(ctx: Context, { authenticator, addressOf }: AuthenticateOptions): AuthResult | Promise<AuthResult> {
  return authenticator.authenticate({
    authorization: ctx.req.headers.authorization,
    address: () => addressOf(ctx),
  });
}

const MESSAGES: Readonly<Record<AuthFailure, string>> = {
  missing: 'No API key was given. Send it as "Authorization: Bearer <API key>".',
  'not-bearer': 'The Authorization header must be of the form "Bearer <API key>".',
  empty: 'The Authorization header holds no API key. Send it as "Authorization: Bearer <API key>".',
  malformed: 'The API key is not valid.',
  unknown: 'The API key is not valid.',
  'too-many-failures': 'Too many requests from this address had no valid API key. Try again later.',
};

function unauthenticated(reason: AuthFailure, retryAfterSeconds: number | null): Problem {
  const headers: Record<string, string> = { 'WWW-Authenticate': 'Bearer' };
  if (retryAfterSeconds !== null) headers['Retry-After'] = String(retryAfterSeconds);
  return new Problem(401, MESSAGES[reason], { headers, privateMessage: `unauthenticated: ${reason}` });
}
