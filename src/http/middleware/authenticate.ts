/**
 * Who is calling: from the `Authorization` header to an active key in `ctx.state.apiKey`, or a refusal (K4: 401 for a
 * credential that was never issued, 403 for a key that is not active; K8: only an active key counts; K9: failures are limited
 * per address; K11: a key that is bound to addresses is refused elsewhere, and counts there as a failure only).
 */
import type { AuthFailure, AuthResult } from '../../keys/authenticate.ts';
import { type ErrorCode, ErrorText, forbidden, Problem, refuse, surfaceOf } from '../problem.ts';
import { type Access, apiKeyOf, type Context, type Middleware, type PublicAppOptions } from '../state.ts';

const INVALID = new ErrorText('The API key is not valid.');
const FAILURES: Readonly<Record<AuthFailure, Problem>> = {
  missing: unauthenticated(
    'key_missing',
    new ErrorText('No API key was given. Send it as "Authorization: Bearer <API key>".'),
  ),
  'not-bearer': unauthenticated(
    'key_invalid',
    new ErrorText('The Authorization header must be of the form "Bearer <API key>".'),
  ),
  empty: unauthenticated(
    'key_missing',
    new ErrorText('The Authorization header holds no API key. Send it as "Authorization: Bearer <API key>".'),
  ),
  malformed: unauthenticated('key_invalid', INVALID),
  unknown: unauthenticated('key_invalid', INVALID),
  'too-many-failures': unauthenticated(
    'too_many_failures',
    new ErrorText('Too many requests from this address had no valid API key. Try again later.'),
  ),
};
const INACTIVE = forbidden('key_inactive', 'the key is not active');
const ADDRESS_FORBIDDEN = forbidden('address_forbidden', 'the key is bound to other addresses');

/** A route is reached only with an active key. */
export function authenticate(options: PublicAppOptions): Middleware {
  return async (ctx, next) => {
    const problem = refusalOf(ctx, await look(ctx, options.access), options);
    return problem === null ? next() : refuse(ctx.state, problem);
  };
}

/**
 * Looks the key of a request up again after it has waited (K10: the key that is in force then decides): the problem if it may
 * not be used any more. At once for a key that this process knows.
 */
export function renewKey(options: PublicAppOptions): (ctx: Context) => Promise<Problem | null> {
  const { authenticator, addressOf } = options.access;
  return async (ctx) => {
    const found = authenticator.renew(apiKeyOf(ctx), () => addressOf(ctx));
    const result = found instanceof Promise ? await ctx.state.redisWait.timed(found) : found;
    if (result.kind === 'active') ctx.state.apiKey = result.key;
    return refusalOf(ctx, result, options);
  };
}

/** Null for an active key. Throws if the key cannot be checked. */
function refusalOf(ctx: Context, result: AuthResult, { access, hooks }: PublicAppOptions): Problem | null {
  if (result.kind === 'active') return null;
  const { state } = ctx;
  const reason = result.kind === 'unauthenticated' ? result.reason : result.kind;
  hooks.onAuthenticationRefused(reason);
  if (result.kind === 'unavailable') throw result.cause;
  state.refusal = { reason, address: access.addressOf(ctx) };
  if (result.kind === 'unauthenticated' && result.retryAfterSeconds !== null) {
    state.headers.push({ 'Retry-After': String(result.retryAfterSeconds) });
  }
  if (result.kind === 'address-forbidden') return ADDRESS_FORBIDDEN;
  return result.kind === 'inactive' ? INACTIVE : FAILURES[result.reason];
}

/**
 * A path of a surface that has no route is answered 404 or 405 to anyone, but an active key is recognised there too, so that
 * the request counts against its quota.
 */
export function recognise({ access }: Pick<PublicAppOptions, 'access'>): Middleware {
  return async (ctx, next) => {
    const { authorization = '' } = ctx.req.headers;
    if (authorization !== '' && surfaceOf(ctx.path) !== 'other') await look(ctx, access);
    return next();
  };
}

async function look(ctx: Context, { authenticator, addressOf }: Access): Promise<AuthResult> {
  const { state } = ctx;
  const { authorization } = ctx.req.headers;
  const found = authenticator.authenticate({ authorization, address: () => addressOf(ctx) });
  const result = found instanceof Promise ? await state.redisWait.timed(found) : found;
  if ('key' in result) state.keyId = result.key.keyId;
  else if (result.kind === 'unauthenticated') state.keyId = result.formerKeyId;
  if (result.kind === 'active') state.apiKey = result.key;
  return result;
}

function unauthenticated(code: ErrorCode, text: ErrorText): Problem {
  return new Problem(code, text, { headers: { 'WWW-Authenticate': 'Bearer' } });
}
