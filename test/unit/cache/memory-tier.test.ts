import { expect, test } from 'vitest';
import { Entry } from '../../../src/cache/entry.ts';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import type { StoredEntry } from '../../../src/cache/stored.ts';

function aStored(bytes: number, filledAtMs = 0): StoredEntry {
  const entry = new Entry({ kind: 'found', record: {}, etag: null, bytes }, filledAtMs);
  // One string, so that it weighs its bytes.
  return { kind: 'transcript', entry, tags: [], position: { history: 'h', sequence: 0 }, fetchedAtMs: filledAtMs };
}

function createTier(maxBytes: number): { tier: MemoryTier; evicted: string[] } {
  const evicted: string[] = [];
  return { tier: new MemoryTier({ maxBytes, onEvict: (key) => evicted.push(key) }), evicted };
}

test('an entry weighs its answer, its key and tags as UTF-16, what is derived from it, and 1,200 bytes', () => {
  const { tier } = createTier(100_000);
  const stored: StoredEntry = { ...aStored(1000), tags: ['all', 'class:list'] };
  tier.set('abcd', stored);
  expect(tier.usage()).toEqual({ entries: 1, bytes: 1200 + 2 * (4 + 13) + 1000 });
  stored.entry.addDerivedBytes(300);
  expect(tier.usage()).toEqual({ entries: 1, bytes: 1200 + 2 * (4 + 13) + 1300 });
  tier.set('abcd', { ...stored, kind: 'evaluation', entry: aStored(1000).entry });
  expect(tier.usage()).toEqual({ entries: 1, bytes: 1200 + 2 * (4 + 13) + 2 * 1000 });
});

test('the least recently read entry makes room for a new one', () => {
  const { tier, evicted } = createTier(14_000);
  for (const key of ['a', 'b', 'c']) tier.set(key, aStored(2000));
  tier.get('a');
  tier.set('d', aStored(2000));
  expect(evicted).toEqual(['b']);
  expect(tier.get('b')).toBeUndefined();
  expect(tier.wasEvicted('b')).toBe(true);
  expect(tier.wasEvicted('a')).toBe(false);
  tier.set('b', aStored(1));
  expect(tier.wasEvicted('b')).toBe(false);
});

test('what is derived from an entry after it was stored counts, and others make room for it', () => {
  const { tier, evicted } = createTier(12_000);
  const big = aStored(2000);
  tier.set('old', aStored(2000));
  tier.set('big', big);
  big.entry.addDerivedBytes(5000);
  expect(evicted).toEqual(['old']);
  expect(tier.usage()).toEqual({ entries: 1, bytes: 1200 + 6 + 7000 });
});

test('an entry that outgrows the tier leaves it, and grows on unheard', () => {
  const { tier, evicted } = createTier(10_000);
  const big = aStored(2000);
  tier.set('big', big);
  big.entry.addDerivedBytes(9000);
  expect(evicted).toEqual(['big']);
  expect(tier.usage()).toEqual({ entries: 0, bytes: 0 });
  big.entry.addDerivedBytes(1);
  expect(evicted).toEqual(['big']);
});

test('an entry that was replaced or dropped is not weighed any more when it grows', () => {
  const { tier } = createTier(10_000);
  const replaced = aStored(1000);
  const dropped = aStored(1000);
  tier.set('a', replaced);
  tier.set('a', aStored(2000));
  tier.set('b', dropped);
  tier.delete('b');
  replaced.entry.addDerivedBytes(500);
  dropped.entry.addDerivedBytes(500);
  expect(tier.usage()).toEqual({ entries: 1, bytes: 1200 + 2 + 2000 });
});

test('an entry that does not fit is refused, and replaces the older one by nothing', () => {
  const { tier } = createTier(10_000);
  expect(tier.set('a', aStored(1000))).toBe(true);
  expect(tier.set('a', aStored(20_000))).toBe(false);
  expect(tier.get('a')).toBeUndefined();
});

test('searched lists get a tenth, so that made-up searches push out nothing else', () => {
  const { tier, evicted } = createTier(100_000);
  tier.set('v1:{evaluation:ev_1}', aStored(80_000));
  for (let index = 0; index < 100; index++) tier.set(`v1:{search:${index}}`, aStored(3000));
  expect(tier.get('v1:{evaluation:ev_1}')).toBeDefined();
  expect(evicted.length).toBe(98);
  expect(evicted.every((key) => key.startsWith('v1:{search:'))).toBe(true);
  expect(tier.usage().entries).toBe(3);
});

test('C8: a suspended tier holds nothing and takes nothing until it is resumed', () => {
  const { tier, evicted } = createTier(10_000);
  tier.set('a', aStored(1));
  tier.suspend();
  expect(tier.usage()).toEqual({ entries: 0, bytes: 0 });
  expect(tier.set('a', aStored(1))).toBe(false);
  expect(tier.get('a')).toBeUndefined();
  tier.resume();
  expect(tier.get('a')).toBeUndefined();
  expect(tier.set('a', aStored(1))).toBe(true);
  expect(evicted).toEqual([]);
});

test('a copy gives way to news of a newer one, and not to news of itself', () => {
  const { tier } = createTier(10_000);
  tier.set('a', aStored(1, 5));
  tier.deleteOlder('a', 5);
  expect(tier.get('a')).toBeDefined();
  tier.deleteOlder('a', 6);
  expect(tier.get('a')).toBeUndefined();
});
