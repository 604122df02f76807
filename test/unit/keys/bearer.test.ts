import { expect, test } from 'vitest';
import { parseBearer } from '../../../src/keys/bearer.ts';
import { newToken } from '../../../src/keys/token.ts';

test.each(['Bearer abc', 'bearer abc', 'BEARER abc', 'bEaReR abc', 'Bearer    abc', '  Bearer abc  ', 'Bearer abc\t'])(
  'K4: the scheme counts in any case and with any spaces around: %j',
  (authorization) => {
    expect(parseBearer(authorization)).toEqual({ kind: 'token', token: 'abc' });
  },
);

test('K4: a token of our own form is taken as it is', () => {
  const token = newToken();
  expect(parseBearer(`Bearer ${token}`)).toEqual({ kind: 'token', token });
});

test.each([
  [undefined, 'missing'],
  ['', 'missing'],
  ['   ', 'missing'],
  ['Basic dXNlcjpwYXNz', 'not-bearer'],
  ['abc', 'not-bearer'],
  ['Bearerabc', 'not-bearer'],
  ['Bearer,abc', 'not-bearer'],
  ['Bearer\tabc', 'not-bearer'],
  ['Bearer', 'empty'],
  ['Bearer ', 'empty'],
  ['bearer    ', 'empty'],
  ['Bearer two words', 'malformed'],
  ['Bearer "abc"', 'malformed'],
  ['Bearer abc,', 'malformed'],
  ['Bearer abc, Bearer def', 'malformed'],
  ['Bearer evg_abc', 'malformed'],
  [`Bearer ${'x'.repeat(1025)}`, 'malformed'],
])('K4: %j holds no credential: %s', (authorization, reason) => {
  expect(parseBearer(authorization)).toEqual({ kind: 'none', reason });
});

test('a long run of spaces is read in linear time', () => {
  expect(parseBearer(`Bearer ${' '.repeat(100_000)}a b`)).toEqual({ kind: 'none', reason: 'malformed' });
});
