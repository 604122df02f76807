/** The estimate of what more memory would have kept, against caches that had it. */
import { LRUCache } from 'lru-cache';
import { expect, test } from 'vitest';
import { EvictedEntries, SAMPLE } from '../../../src/cache/evicted.ts';
import { hash32 } from '../../../src/cache/request.ts';
import { SeededRandom } from '../../support/random.ts';

const MEMORY = 1_000_000;
const MORE = [125_000, 250_000, 500_000, 1_000_000, 2_000_000];

/** Reads of keys of different sizes, some much more often than others. */
function* reads(): Generator<readonly [key: string, bytes: number]> {
  const random = new SeededRandom(1);
  for (let i = 0; i < 120_000; i += 1) {
    const place = Math.floor(8000 * random.next() ** 2);
    yield [`evaluation:ev_${place}`, 200 + (hash32(String(place)) % 800)];
  }
}

function cacheOf(maxSize: number, onEvict: (bytes: number, key: string) => void = () => undefined) {
  return new LRUCache<string, number>({
    maxSize,
    sizeCalculation: (bytes) => bytes,
    dispose: (bytes, key, reason) => (reason === 'evict' ? onEvict(bytes, key) : undefined),
  });
}

test('as many misses are spared as a cache of that size spares, within 10 %', () => {
  const evicted = new EvictedEntries();
  const cache = cacheOf(MEMORY, (bytes, key) => evicted.add(hash32(key), { bytes, requestedAtMs: 0 }));
  const larger = MORE.map((more) => ({ more, cache: cacheOf(MEMORY + more), spared: 0, estimated: 0 }));
  for (const [key, bytes] of reads()) {
    const isMiss = cache.get(key) === undefined;
    const moreBytes = isMiss ? (evicted.take(hash32(key))?.moreBytes ?? null) : null;
    for (const one of larger) {
      const isHit = one.cache.get(key) !== undefined;
      if (isMiss && isHit) one.spared += 1;
      if (moreBytes !== null && moreBytes <= one.more) one.estimated += SAMPLE;
      if (!isHit) one.cache.set(key, bytes);
    }
    if (isMiss) cache.set(key, bytes);
  }
  for (const { more, spared, estimated } of larger) {
    expect([more, spared]).toEqual([more, expect.toSatisfy((count: number) => count > 2000)]);
    expect([more, Math.abs(estimated / spared - 1)]).toEqual([more, expect.toSatisfy((error: number) => error < 0.1)]);
  }
});

test('what was stored again or purged is no longer among what was evicted', () => {
  const evicted = new EvictedEntries();
  for (const hash of [SAMPLE, 2 * SAMPLE, 3 * SAMPLE]) evicted.add(hash, { bytes: 100, requestedAtMs: hash });
  evicted.delete(2 * SAMPLE);
  expect(evicted.take(2 * SAMPLE)).toBeNull();
  expect(evicted.take(SAMPLE)).toEqual({ bytes: 100, requestedAtMs: SAMPLE, moreBytes: 200 * SAMPLE });
  expect(evicted.take(SAMPLE)).toBeNull();
});
