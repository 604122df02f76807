import { expect, test } from 'vitest';
import { cacheHeaders } from '../../../src/cache/headers.ts';

const hit = { outcome: 'hit', tier: 'memory', ttlMs: 12_900, ageMs: 17_100, stored: true } as const;

test('C5: a fresh hit says how long it stays fresh, in whole seconds', () => {
  expect(cacheHeaders(hit)).toEqual({
    age: '17',
    cacheControl: 'private, max-age=29',
    cacheStatus: 'evalgate; hit; ttl=12',
  });
});

test('C5: max-age less Age is what is left, so no client takes an answer for fresh any longer than the gateway does', () => {
  const { age, cacheControl } = cacheHeaders({ ...hit, ttlMs: 999, ageMs: 29_001 });
  expect(age).toBe('29');
  expect(cacheControl).toBe('private, max-age=29');
});

test.each([
  ['stale-while-revalidate', -4001, 'evalgate; hit; ttl=-5; detail=stale-while-revalidate'],
  ['stale-while-revalidate', 0, 'evalgate; hit; ttl=0; detail=stale-while-revalidate'],
  ['stale-if-error', -400_000, 'evalgate; hit; ttl=-400; detail=stale-if-error'],
] as const)('C5: %s with %d ms left', (outcome, ttlMs, cacheStatus) => {
  expect(cacheHeaders({ ...hit, outcome, ttlMs, ageMs: 35_000 })).toEqual({
    age: '35',
    cacheControl: 'private, max-age=0',
    cacheStatus,
  });
});

const miss = { outcome: 'miss', tier: null, ttlMs: 29_800, ageMs: 200, stored: true } as const;

test.each([
  [miss, 'evalgate; fwd=uri-miss; stored'],
  [{ ...miss, stored: false }, 'evalgate; fwd=uri-miss'],
  [{ ...miss, forward: 'stale' }, 'evalgate; fwd=stale; stored'],
  [{ ...miss, outcome: 'collapsed' }, 'evalgate; fwd=uri-miss; collapsed'],
  [{ ...miss, outcome: 'collapsed', forward: 'stale' }, 'evalgate; fwd=stale; collapsed'],
] as const)('C5: %o is %s', (read, cacheStatus) => {
  expect(cacheHeaders(read)).toEqual({ age: '0', cacheControl: 'private, max-age=29', cacheStatus });
});

test('an answer that is not kept may be kept by nobody', () => {
  expect(cacheHeaders({ ...miss, ttlMs: 0, stored: false }).cacheControl).toBe('private, max-age=0');
});
