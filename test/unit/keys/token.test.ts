import { createHash } from 'node:crypto';
import { assert, integer, property } from 'fast-check';
import { expect, test } from 'vitest';
import { hashToken, isWellFormed, newToken, randomBase62 } from '../../../src/keys/token.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** CRC-32 bit by bit, so that the form doesn't rest on the library that made it. */
function crc32(text: string): bigint {
  let crc = 0xffff_ffffn;
  for (const byte of Buffer.from(text)) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1n ? (crc >> 1n) ^ 0xedb8_8320n : crc >> 1n;
  }
  return crc ^ 0xffff_ffffn;
}

function checksum(body: string): string {
  const value = crc32(body);
  return Array.from({ length: 6 }, (_, i) => DIGITS[Number((value / 62n ** BigInt(5 - i)) % 62n)]).join('');
}

test('K1: a new token is evg_, 32 random base62 characters and the CRC-32 of what stands before in 6 more', () => {
  for (let i = 0; i < 200; i += 1) {
    const token = newToken();
    expect(token).toMatch(/^evg_[0-9A-Za-z]{38}$/);
    expect(token.slice(36)).toBe(checksum(token.slice(0, 36)));
    expect(isWellFormed(token)).toBe(true);
  }
});

test('K1: the checksum has its most significant digit first and is padded to 6 digits', () => {
  expect(isWellFormed('evg_00000000000000000000000000000000' + checksum('evg_00000000000000000000000000000000'))).toBe(
    true,
  );
  // 62^6 is some 13 times 2^32, so the first digit is never beyond 4.
  for (let i = 0; i < 50; i += 1) expect(newToken()[36]).toMatch(/[0-4]/);
});

test('K1: no two new tokens are alike', () => {
  expect(new Set(Array.from({ length: 1000 }, newToken)).size).toBe(1000);
});

test('K1: a token whose checksum is wrong is refused, whichever character was changed', () => {
  const token = newToken();
  for (let at = 4; at < token.length; at += 1) {
    const other = token[at] === 'a' ? 'b' : 'a';
    expect([at, isWellFormed(token.slice(0, at) + other + token.slice(at + 1))]).toEqual([at, false]);
  }
});

test('K1: a token that begins with evg_ and has another length is refused', () => {
  const token = newToken();
  expect(isWellFormed(token.slice(0, -1))).toBe(false);
  expect(isWellFormed(`${token}0`)).toBe(false);
  expect(isWellFormed('evg_')).toBe(false);
});

test('K1: two neighbouring characters exchanged are found out', () => {
  assert(
    property(integer({ min: 4, max: 34 }), (at) => {
      const token = newToken();
      const swapped = token.slice(0, at) + token.charAt(at + 1) + token.charAt(at) + token.slice(at + 2);
      expect(isWellFormed(swapped)).toBe(swapped === token);
    }),
  );
});

test.each(['imported-key', 'EVG_upper', 'a', 'abc.def~ghi+jkl/mno_pqr-stu==', 'x'.repeat(1024)])(
  'K1: a key of another form is let through to be looked up: %s',
  (token) => {
    expect(isWellFormed(token)).toBe(true);
  },
);

test.each(['', 'two words', 'ümlaut', 'a=b', '=', 'tab\t', 'a,b', 'x'.repeat(1025), 'new\nline', 'a\n'])(
  'what is no RFC 6750 token, or too long, is refused: %j',
  (token) => {
    expect(isWellFormed(token)).toBe(false);
  },
);

test('K2: the hash of a token is its SHA-256 in lower-case hex', () => {
  expect(hashToken('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  const token = newToken();
  expect(hashToken(token)).toBe(createHash('sha256').update(token).digest('hex'));
});

test('random base62 text uses all 62 characters about equally often', () => {
  const text = randomBase62(62_000);
  const counts = Array.from(DIGITS, (digit) => text.split(digit).length - 1);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(62_000);
  // 1000 each are expected, with a standard deviation of 31: eight of them on either side.
  expect(Math.min(...counts)).toBeGreaterThan(750);
  expect(Math.max(...counts)).toBeLessThan(1250);
});
