import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTokenCheck } from '../../../src/admin/tokens.ts';

/** What Node makes of a header's bytes. */
function asHeader(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

test('each token has its holder, and nothing else has one', () => {
  const holderOf = createTokenCheck([
    { name: 'ops', token: 'alpha' },
    { name: 'ci', token: 'beta' },
  ]);
  expect(['alpha', 'beta', 'alph', 'alphaa', 'Alpha', 'ops', ''].map(holderOf)).toEqual([
    'ops',
    'ci',
    null,
    null,
    null,
    null,
    null,
  ]);
});

test('a token that two holders share is the first one’s', () => {
  const holderOf = createTokenCheck([
    { name: 'first', token: 'same' },
    { name: 'second', token: 'same' },
  ]);
  expect(holderOf('same')).toBe('first');
});

test('only the very bytes of a token are it', () => {
  const bytes = fc.string({ unit: 'grapheme', minLength: 1 });
  fc.assert(
    fc.property(bytes, bytes, (token, other) => {
      const holderOf = createTokenCheck([{ name: 'ops', token }]);
      expect(holderOf(asHeader(token))).toBe('ops');
      expect(holderOf(asHeader(other))).toBe(token === other ? 'ops' : null);
    }),
  );
});
