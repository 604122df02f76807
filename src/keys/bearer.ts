/** Reads the token out of the `Authorization` header (RFC 6750, section 2.1; RFC 9110, section 11.4). */
import { isWellFormed } from './token.ts';

/**
 * Why there is no token to look up:
 * - `missing`: no header, or one with nothing in it
 * - `not-bearer`: another scheme
 * - `empty`: the scheme without a token
 * - `malformed`: not a token, or one whose checksum is wrong
 */
export type BearerFault = 'missing' | 'not-bearer' | 'empty' | 'malformed';

export type BearerCredential =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'none'; readonly reason: BearerFault };

/** The scheme in any case, then nothing or at least one space. Trailing white space is no part of the value. */
const CREDENTIALS = /^bearer(?: +([^ ].*)?)?$/i;

/**
 * The well-formed token of an `Authorization` value, or why there is none.
 *
 * `Authorization` is a single field: of several, Node hands over the first, and a proxy that joins them with a comma
 * makes a value that is no token and is refused here. So which of two credentials counts is never a matter of luck.
 */
export function parseBearer(authorization: string | undefined): BearerCredential {
  const value = trimmed(authorization ?? '');
  if (value === '') return { kind: 'none', reason: 'missing' };
  const credentials = CREDENTIALS.exec(value);
  if (credentials === null) return { kind: 'none', reason: 'not-bearer' };
  const token = credentials[1];
  if (token === undefined) return { kind: 'none', reason: 'empty' };
  return isWellFormed(token) ? { kind: 'token', token } : { kind: 'none', reason: 'malformed' };
}

/**
 * Without the white space around a field's value (RFC 9110, section 5.6.3): no other is, whatever Unicode takes for it.
 * By hand, because a pattern for white space at the end is tried anew at each space of a long run.
 */
function trimmed(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isOptionalWhiteSpace(value.charCodeAt(start))) start += 1;
  while (end > start && isOptionalWhiteSpace(value.charCodeAt(end - 1))) end -= 1;
  return value.slice(start, end);
}

function isOptionalWhiteSpace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
