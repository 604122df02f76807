import { expect, test } from 'vitest';
import { hash32 } from '../../../src/cache/hash.ts';
import { LastMisses } from '../../../src/cache/last-misses.ts';

test('the last miss of a key is remembered with its reason; what was answered at once is none', () => {
  const misses = new LastMisses();
  expect(misses.of('a')).toBeNull();
  misses.note({ keyHash: hash32('a'), missReason: 'never-seen' }, 1000);
  misses.note({ keyHash: hash32('b'), missReason: 'not-cacheable' }, 1500);
  misses.note({ keyHash: hash32('a'), missReason: 'expired' }, 2000);
  misses.note({ keyHash: hash32('a'), missReason: null }, 3000);
  expect(misses.of('a')).toEqual({ reason: 'expired', atMs: 2000 });
  expect(misses.of('b')).toEqual({ reason: 'not-cacheable', atMs: 1500 });
  expect(misses.of('c')).toBeNull();
});

test('of many keys most of the latest are remembered, none with the miss of another', () => {
  const misses = new LastMisses();
  for (let i = 0; i < 100_000; i += 1) {
    misses.note({ keyHash: hash32(`key-${i}`), missReason: i % 2 === 0 ? 'purged' : 'evicted' }, i);
  }
  const latest = Array.from({ length: 1000 }, (_, i) => 99_000 + i);
  const known = latest.filter((i) => misses.of(`key-${i}`) !== null);
  expect(known.length).toBeGreaterThan(900);
  for (const i of known) {
    expect(misses.of(`key-${i}`)).toEqual({ reason: i % 2 === 0 ? 'purged' : 'evicted', atMs: i });
  }
});
