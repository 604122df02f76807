/** Who calls the admin listener: its tokens, compared so that time and length reveal nothing about them. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { addressKey } from '../keys/client-address.ts';
import type { RequestLimiter } from '../keys/request-limiter.ts';
import type { AdminContext, AdminMiddleware } from './context.ts';
import { AdminError } from './errors.ts';

/** A token, and the name of its holder in the audit. */
export interface AdminToken {
  readonly name: string;
  readonly token: string;
}

export interface AuthenticateOptions {
  /** Without any, everybody who reaches the listener may do everything. */
  readonly tokens: readonly AdminToken[];
  /** Requests per address without a valid token. */
  readonly wrongTokens: RequestLimiter;
  /** The client's address, with trusted proxies taken into account. */
  readonly addressOf: (ctx: AdminContext) => string;
}

/** The name in the audit if the listener has no tokens. */
const ANONYMOUS = 'anonymous';

/** The scheme in any case (RFC 9110, 11.1). The token may be any text without spaces: an operator chose it. */
const BEARER = /^bearer +(\S+) *$/i;

const CHALLENGE = 'Bearer realm="evalgate admin"';

/**
 * Lets nobody pass without a token, if there are any. Wrong tokens are counted per address; a right one is never refused
 * for its address, so that a stranger behind the same proxy cannot lock the operators out.
 */
export function authenticate({ tokens, wrongTokens, addressOf }: AuthenticateOptions): AdminMiddleware {
  const holderOf = createTokenCheck(tokens);
  return async (ctx, next) => {
    const credentials = ctx.get('Authorization');
    const token = BEARER.exec(credentials)?.[1];
    const known = token === undefined ? null : holderOf(token);
    const holder = tokens.length === 0 ? ANONYMOUS : known;
    if (holder === null) {
      const waitSeconds = await wrongTokens.consume(addressKey(addressOf(ctx)));
      throw waitSeconds === null ? unauthenticated(credentials) : tooManyWrongTokens(waitSeconds);
    }
    ctx.state.who = holder;
    await next();
  };
}

/**
 * Finds the name of a token's holder; null for an unknown token. Digests of equal length are compared, all of them even
 * after one was equal.
 */
export function createTokenCheck(tokens: readonly AdminToken[]): (presented: string) => string | null {
  const known = tokens.map(({ name, token }) => ({ name, digest: digest(token, 'utf8') }));
  return (presented) => {
    // Node reads header bytes as Latin-1; taken back to bytes, a token with letters outside ASCII compares as sent.
    const candidate = digest(presented, 'latin1');
    let holder: string | null = null;
    for (const { name, digest: expected } of known) {
      if (timingSafeEqual(candidate, expected)) holder ??= name;
    }
    return holder;
  };
}

function digest(text: string, encoding: 'utf8' | 'latin1'): Buffer {
  return createHash('sha256').update(text, encoding).digest();
}

function unauthenticated(credentials: string): AdminError {
  if (credentials === '') {
    return new AdminError(
      401,
      'No admin token was given. Send one of the tokens of ADMIN_TOKEN as "Authorization: Bearer <token>".',
      { privateMessage: 'no admin token', headers: { 'WWW-Authenticate': CHALLENGE } },
    );
  }
  return new AdminError(
    401,
    'The Authorization header holds no admin token of this gateway. Send one of the tokens of ADMIN_TOKEN as "Authorization: Bearer <token>".',
    {
      privateMessage: 'unknown admin token',
      headers: { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` },
    },
  );
}

function tooManyWrongTokens(waitSeconds: number): AdminError {
  return new AdminError(
    401,
    'Too many requests from this address had no valid admin token. Try again later, or send one of the tokens of ADMIN_TOKEN.',
    {
      privateMessage: 'too many wrong admin tokens',
      headers: { 'WWW-Authenticate': CHALLENGE, 'Retry-After': String(waitSeconds) },
    },
  );
}
