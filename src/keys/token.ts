/**
 * The form of a key's token: `evg_`, 32 random base62 characters, and 6 base62 characters of a checksum. The checksum
 * lets a mistyped or made-up token be refused at once (K1: without a look-up), and secret scanners recognise a real one.
 *
 * The checksum is the CRC-32 (IEEE 802.3, as zlib computes it) of the 36 ASCII characters before it, as an unsigned
 * number in base 62, most significant digit first, padded with `0` to 6 digits. The digits are `0-9A-Za-z` in that
 * order: `0` is 0, `A` is 10, `a` is 36, `z` is 61.
 */
import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { KeyHash } from './key.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PREFIX = 'evg_';
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
const BODY_LENGTH = PREFIX.length + RANDOM_LENGTH;
const OWN_FORM = /^evg_[0-9A-Za-z]{38}$/;

/** Tokens issued elsewhere may be longer than ours; this bounds what is hashed for a stranger. */
const MAX_TOKEN_LENGTH = 1024;
/** RFC 6750, section 2.1: `b64token`. */
const B64TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** `length` base62 characters from the system's random source, each of them equally likely. */
export function randomBase62(length: number): string {
  let text = '';
  for (let i = 0; i < length; i += 1) text += BASE62.charAt(randomInt(BASE62.length));
  return text;
}

function checksumOf(body: string): string {
  let rest = crc32(body);
  let digits = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}

/** A new token with some 190 bits of randomness. */
export function newToken(): string {
  const body = PREFIX + randomBase62(RANDOM_LENGTH);
  return body + checksumOf(body);
}

/** SHA-256 of the token in lower-case hex. A plain hash is enough: a random token cannot be guessed from it. */
export function hashToken(token: string): KeyHash {
  return hash('sha256', token, 'hex');
}

/**
 * Whether a token can be a key at all. One that begins with `evg_` must have the right length and checksum; one of
 * another form, such as a key that was imported, must be an RFC 6750 `b64token` of at most 1024 characters.
 */
export function isWellFormed(token: string): boolean {
  if (!token.startsWith(PREFIX)) return token.length <= MAX_TOKEN_LENGTH && B64TOKEN.test(token);
  return OWN_FORM.test(token) && checksumOf(token.slice(0, BODY_LENGTH)) === token.slice(BODY_LENGTH);
}
