import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Entry } from '../../../src/cache/entry.ts';
import { hash32 } from '../../../src/cache/request.ts';
import { type Freshness, freshnessOf, jitterOf, plan } from '../../../src/cache/plan.ts';
import type { PurgeMode } from '../../../src/journal/journal.ts';
import { purgesAlone } from '../../support/purges.ts';
import type { CacheTtl } from '../../../src/cache/ttl-policy.ts';
import { systemClock } from '../../../src/time/clock.ts';

const TIMES = { freshMs: 30_000, staleMs: 300_000, errorMs: 3_600_000 };

/** The freshness of a rubric of that age. */
function at(
  ageMs: number,
  { times = TIMES, purge = null, keyHash = 0 }: { times?: CacheTtl; purge?: PurgeMode | null; keyHash?: number } = {},
): Freshness {
  const position = purgesAlone(systemClock).position;
  const entry = new Entry({ kind: 'found', record: {}, etag: null, bytes: 1 }, 0);
  const stored = { kind: 'rubric', owner: 'w1', entry, tags: ['all'], position, receivedAtMs: 0 } as const;
  return freshnessOf(
    { request: { keyHash }, set: null },
    stored,
    { ttl: { of: () => times }, purges: { since: () => purge, changeOf: () => null } },
    ageMs,
  );
}

/** This key's entry of time 0 has no jitter. */
test('the jitter of the key that the examples use is none', () => {
  expect(jitterOf(0, 0)).toBe(0);
});

test.each([
  [0, 'fresh', 30_000],
  [29_999, 'fresh', 1],
  [30_000, 'stale', 0],
  [329_999, 'stale', -299_999],
  [330_000, 'usable-on-error', -300_000],
  [3_629_999, 'usable-on-error', -3_599_999],
  [3_630_000, 'unusable', -3_600_000],
] as const)('C1, C2: at the age of %d ms an entry is %s, with %d ms left', (ageMs, state, ttlMs) => {
  expect(at(ageMs)).toEqual({ state, ttlMs, ageMs });
});

test('C2: stale and error times both count from the end of freshness, so a shorter error time ends nothing that is stale', () => {
  const times = { ...TIMES, errorMs: 0 };
  expect(at(100_000, { times }).state).toBe('stale');
  expect(at(330_000, { times }).state).toBe('unusable');
});

test('C1: an entry that has neither stale nor error time has expired when its freshness ends', () => {
  expect(at(15_000, { times: { freshMs: 15_000, staleMs: 0, errorMs: 0 } }).state).toBe('unusable');
});

test('C2: jitter shortens freshness by a tenth at most, and stale and error time begin earlier by as much', () => {
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 32 - 1 }), (keyHash) => {
      const { ttlMs } = at(0, { keyHash });
      expect(ttlMs).toBe(Math.floor(30_000 * (1 - 0.1 * jitterOf(keyHash, 0))));
      expect(ttlMs).toBeGreaterThanOrEqual(27_000);
      expect(at(ttlMs + 300_000, { keyHash }).state).toBe('usable-on-error');
    }),
  );
});

test('a clock that differs by two seconds makes no entry younger than new', () => {
  expect(at(-2000)).toEqual({ state: 'fresh', ttlMs: 30_000, ageMs: 0 });
});

test('C9: the age of an entry from the future is unknown, and stays so; it has just become stale when that is seen', () => {
  const position = purgesAlone(systemClock).position;
  const entry = new Entry({ kind: 'found', record: {}, etag: null, bytes: 1 }, 3_600_000);
  const stored = { kind: 'rubric', owner: 'w1', entry, tags: ['all'], position, receivedAtMs: 3_600_000 } as const;
  const policy = { ttl: { of: () => TIMES }, purges: { since: () => null, changeOf: () => null } };
  const seen = [0, 299_999, 300_000, 3_600_000].map((nowMs) =>
    freshnessOf({ request: { keyHash: 0 }, set: null }, stored, policy, nowMs),
  );
  expect(seen).toEqual([
    { state: 'stale', ttlMs: 0, ageMs: null },
    { state: 'stale', ttlMs: -299_999, ageMs: null },
    { state: 'usable-on-error', ttlMs: -300_000, ageMs: null },
    { state: 'unusable', ttlMs: -3_600_000, ageMs: null },
  ]);
});

test('a soft purge makes a fresh entry stale at once, and an old one no younger', () => {
  expect(at(1, { purge: 'soft' })).toMatchObject({ state: 'stale', ttlMs: 0 });
  expect(at(40_000, { purge: 'soft' })).toMatchObject({ state: 'stale', ttlMs: -10_000 });
});

test('a stale copy is served while one refresh runs, and without any during maintenance', () => {
  const position = purgesAlone(systemClock).position;
  const entry = new Entry({ kind: 'found', record: {}, etag: null, bytes: 1 }, 0);
  const stored = { kind: 'rubric', owner: 'w1', entry, tags: ['all'], position, receivedAtMs: 0 } as const;
  const copy = { stored, tier: 'memory', ...at(100_000) } as const;
  expect(plan(copy, null).action).toBe('serve-and-refresh');
  expect(plan(copy, { sinceMs: 0, untilMs: 1, by: 'ann' }).action).toBe('serve');
});

test('C6: a hard purge ends an entry at any age', () => {
  for (const ageMs of [1, 40_000, 4_000_000]) expect(at(ageMs, { purge: 'hard' }).state).toBe('purged');
});

test('jitter is spread evenly over keys that differ by one character and over fills a millisecond apart', () => {
  const buckets = Array.from({ length: 10 }, () => 0);
  for (let index = 0; index < 10_000; index++) {
    const bucket = Math.floor(
      10 * jitterOf(hash32(`v2:{evaluation:ev_${index % 100}}`), 1_772_600_000_000 + Math.floor(index / 100)),
    );
    buckets[bucket] = (buckets[bucket] ?? 0) + 1;
  }
  for (const count of buckets) {
    expect(count).toBeGreaterThan(850);
    expect(count).toBeLessThan(1150);
  }
});
