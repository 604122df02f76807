import { expect, test } from 'vitest';
import { hash32, mix32 } from '../../../src/cache/hash.ts';

test('bits are mixed as by the finalizer of MurmurHash3, into an unsigned integer', () => {
  expect([mix32(0), mix32(1), mix32(2)]).toEqual([0, 0x514e28b7, 0x30f4c306]);
  expect(mix32(-1)).toBe(mix32(0xffffffff));
  expect(mix32(0xffffffff)).toBe(0x81f16f39);
});

test('a text is hashed by FNV-1a, and mixed', () => {
  // FNV-1a of nothing, of "a" and of "foobar", by its authors.
  expect(hash32('')).toBe(mix32(0x811c9dc5));
  expect(hash32('a')).toBe(mix32(0xe40c292c));
  expect(hash32('foobar')).toBe(mix32(0xbf9cf968));
});
