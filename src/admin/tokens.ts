/** Who calls the admin listener: its tokens, compared so that neither time nor length tells anything about them. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { AdminMiddleware } from './context.ts';
import { AdminError } from './errors.ts';

/** A token and the name under which its holder's changes stand in the audit. */
export interface AdminToken {
  readonly name: string;
  readonly token: string;
}

/** The name in the audit where the listener has no tokens and so cannot know who calls. */
const ANONYMOUS = 'anonymous';

/** The scheme's name in any case (RFC 9110, 11.1). The token may be any text without spaces: it is chosen by an operator. */
const BEARER = /^bearer +(\S+) *$/i;

function digest(text: string, encoding: 'utf8' | 'latin1'): Buffer {
  return createHash('sha256').update(text, encoding).digest();
}

/**
 * A look-up from a presented token to its holder's name; null where it is none of the known ones. Digests of equal
 * length are compared, all of them whatever the outcome of the first.
 */
export function createTokenCheck(tokens: readonly AdminToken[]): (presented: string) => string | null {
  const known = tokens.map(({ name, token }) => ({ name, digest: digest(token, 'utf8') }));
  return (presented) => {
    // Node reads header bytes as Latin-1; taken back to bytes, a token with other letters than ASCII's compares as sent.
    const candidate = digest(presented, 'latin1');
    let holder: string | null = null;
    for (const { name, digest: expected } of known) {
      if (timingSafeEqual(candidate, expected)) holder ??= name;
    }
    return holder;
  };
}

function unauthenticated(challenge: string, publicMessage: string, privateMessage: string): AdminError {
  return new AdminError(401, publicMessage, { privateMessage, headers: { 'WWW-Authenticate': challenge } });
}

/** Where tokens are configured, lets nobody without one past it. */
export function authenticate(tokens: readonly AdminToken[]): AdminMiddleware {
  const holderOf = createTokenCheck(tokens);
  return async (ctx, next) => {
    if (tokens.length === 0) {
      ctx.state.who = ANONYMOUS;
      await next();
      return;
    }
    const credentials = ctx.get('Authorization');
    if (credentials === '') {
      throw unauthenticated(
        'Bearer realm="evalgate admin"',
        'No admin token was given. Send one of the tokens of ADMIN_TOKEN as "Authorization: Bearer <token>".',
        'no admin token',
      );
    }
    const presented = BEARER.exec(credentials)?.[1];
    const holder = presented === undefined ? null : holderOf(presented);
    if (holder === null) {
      throw unauthenticated(
        'Bearer realm="evalgate admin", error="invalid_token"',
        'The Authorization header holds no admin token of this gateway. Send one of the tokens of ADMIN_TOKEN as "Authorization: Bearer <token>".',
        'unknown admin token',
      );
    }
    ctx.state.who = holder;
    await next();
  };
}
