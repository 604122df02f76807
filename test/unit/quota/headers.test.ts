import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { rateLimitHeaders } from '../../support/quota-headers.ts';
import { rateLimitFields } from '../../../src/quota/headers.ts';
import { QUOTA_WINDOWS } from '../../../src/quota/log.ts';
import { createMemoryQuota, type MemoryQuota } from '../../../src/quota/memory-quota.ts';
import type { QuotaLimits, WindowState } from '../../../src/quota/quota.ts';
import { QuotaOracle } from '../../contract/quota/oracle.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { headersByTheBook } from '../../support/quota-headers.ts';
import { SeededRandom } from '../../support/random.ts';

const START_SECONDS = 1_768_478_400;
const DEFAULTS = { perMinute: 120, perHour: 3000 };

function setUp() {
  const clock = new ManualClock(START_SECONDS * 1000);
  const quota = createMemoryQuota({ clock });
  const take = (limits: QuotaLimits = DEFAULTS) => rateLimitHeaders(quota.take('q', limits));
  return { clock, take };
}

test('R2, R4: the headers of a first request with the default limits', () => {
  const { take } = setUp();
  expect(take()).toEqual({
    'X-RateLimit-Limit': '120',
    'X-RateLimit-Remaining': '119',
    'X-RateLimit-Reset': '1768478460',
    'X-RateLimit-Active-Window': 'minute',
    'X-RateLimit-Minute-Limit': '120',
    'X-RateLimit-Minute-Remaining': '119',
    'X-RateLimit-Minute-Reset': '1768478460',
    'X-RateLimit-Hour-Limit': '3000',
    'X-RateLimit-Hour-Remaining': '2999',
    'X-RateLimit-Hour-Reset': '1768482000',
    'RateLimit-Policy': '"minute";q=120;w=60, "hour";q=3000;w=3600',
    RateLimit: '"minute";r=119;t=60, "hour";r=2999;t=3600',
  });
});

test('R2: Reset is rounded up to the next whole second', () => {
  const { clock, take } = setUp();
  clock.advanceMicros(1);
  expect(take()['X-RateLimit-Minute-Reset']).toBe('1768478461');
  clock.advanceMicros(999_999);
  expect(take()['X-RateLimit-Minute-Reset']).toBe('1768478461');
});

test('R4: t is the time until the oldest request is given back, rounded up', () => {
  const { clock, take } = setUp();
  take();
  clock.advanceMicros(10_000_001);
  expect(take()['RateLimit']).toBe('"minute";r=118;t=50, "hour";r=2998;t=3590');
  clock.advanceMicros(999_998);
  expect(take()['RateLimit']).toBe('"minute";r=117;t=50, "hour";r=2997;t=3590');
});

test('R2: a refusal tells when to try again, rounded up to the second that is true', () => {
  const { clock, take } = setUp();
  const limits = { perMinute: 2, perHour: 100 };
  take(limits);
  clock.advanceMicros(1_500_000);
  take(limits);
  clock.advanceMicros(100_000);
  expect(take(limits)).toEqual({
    'X-RateLimit-Limit': '2',
    'X-RateLimit-Remaining': '0',
    'X-RateLimit-Reset': '1768478462',
    'X-RateLimit-Active-Window': 'minute',
    'X-RateLimit-Minute-Limit': '2',
    'X-RateLimit-Minute-Remaining': '0',
    'X-RateLimit-Minute-Reset': '1768478462',
    'X-RateLimit-Hour-Limit': '100',
    'X-RateLimit-Hour-Remaining': '98',
    'X-RateLimit-Hour-Reset': '1768482002',
    'RateLimit-Policy': '"minute";q=2;w=60, "hour";q=100;w=3600',
    RateLimit: '"minute";r=0;t=59, "hour";r=98;t=3599',
    'Retry-After': '59',
  });
  clock.advance(58_000);
  expect(take(limits)['Retry-After']).toBe('1');
  clock.advance(1000);
  expect(take(limits)['Retry-After']).toBeUndefined();
});

test('R2: Retry-After is at least 1, also a microsecond before', () => {
  const { clock, take } = setUp();
  const limits = { perMinute: 1, perHour: 100 };
  take(limits);
  clock.advanceMicros(60_000_000);
  expect(take(limits)['Retry-After']).toBe('1');
});

test.each([
  [{ perMinute: 5, perHour: 4 }, 'hour', '3'],
  [{ perMinute: 4, perHour: 5 }, 'minute', '3'],
  [{ perMinute: 5, perHour: 5 }, 'minute', '4'],
])('R3: with limits of %j the active window is the %s', (limits, name, remaining) => {
  const { take } = setUp();
  const headers = take(limits);
  expect([headers['X-RateLimit-Active-Window'], headers['X-RateLimit-Remaining']]).toEqual([name, remaining]);
});

test('R3: limit, remaining and reset are those of the active window', () => {
  const { take } = setUp();
  expect(take({ perMinute: 120, perHour: 7 })).toMatchObject({
    'X-RateLimit-Limit': '7',
    'X-RateLimit-Remaining': '6',
    'X-RateLimit-Reset': '1768482000',
    'X-RateLimit-Active-Window': 'hour',
  });
});

test('R2: the headers always come in the same order', () => {
  const { take } = setUp();
  const limits = { perMinute: 1, perHour: 1 };
  const admitted = Object.keys(take(limits));
  const refused = Object.keys(take(limits));
  expect(refused).toEqual([...admitted, 'Retry-After']);
});

test('R2, R3, R4: on random days of a key every header is exact', () => {
  for (let seed = 1; seed <= 100; seed += 1) {
    const random = new SeededRandom(seed);
    const clock = new ManualClock(START_SECONDS * 1000);
    const quota = createMemoryQuota({ clock });
    const oracle = new QuotaOracle(QUOTA_WINDOWS);
    const limits = { perMinute: random.integer(1, 5), perHour: random.integer(3, 20) };
    for (let step = 0; step < 60; step += 1) {
      const headers = rateLimitHeaders(quota.take('q', limits));
      const expected = headersByTheBook(oracle.take(clock.nowMicros(), limits));
      expect({ seed, step, ...headers }).toEqual({ seed, step, ...expected });
      clock.advanceMicros(random.pick(0, 1, random.integer(0, 5_000_000), random.integer(0, 200_000_000)));
    }
  }
});

/** Sends until refused; tells the seconds of the refusal's Retry-After. */
function exhaust(quota: MemoryQuota, limits: QuotaLimits): number {
  for (;;) {
    const headers = rateLimitHeaders(quota.take('q', limits));
    if (headers['Retry-After'] !== undefined) return Number(headers['Retry-After']);
  }
}

test('R2: Retry-After is true to the second: a second earlier is too early, and then one request is admitted', () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = new SeededRandom(seed);
    const clock = new ManualClock(START_SECONDS * 1000);
    const quota = createMemoryQuota({ clock });
    const limits = { perMinute: random.integer(1, 5), perHour: random.integer(3, 12) };
    for (let i = 0; i < limits.perHour; i += 1) {
      quota.take('q', limits);
      clock.advanceMicros(random.integer(0, 40_000_000));
    }
    const waitSeconds = exhaust(quota, limits);
    clock.advance((waitSeconds - 1) * 1000);
    const early = quota.take('q', limits);
    clock.advance(1000);
    const later = quota.take('q', limits);
    expect({ seed, early: early.admitted, later: later.admitted }).toEqual({ seed, early: false, later: true });
  }
});

function windowOf(remaining: number): WindowState {
  return { limit: remaining, remaining, emptyAtMicros: 0, nextFreeAtMicros: 0 };
}

test('R2: what remains is told in plain digits, however much it is', () => {
  const remaining = fc.oneof(
    fc.nat(),
    fc.maxSafeNat(),
    fc.nat(2000),
    fc.nat(9_000_000).map((count) => count * 1000),
  );
  fc.assert(
    fc.property(remaining, remaining, (minute, hour) => {
      const fields = rateLimitFields({
        nowMicros: 0,
        minute: windowOf(minute),
        hour: windowOf(hour),
        retryAtMicros: null,
      }).split('\r\n');
      expect(fields).toContain(`X-RateLimit-Minute-Remaining: ${minute}`);
      expect(fields).toContain(`X-RateLimit-Hour-Remaining: ${hour}`);
      expect(fields).toContain(`X-RateLimit-Remaining: ${Math.min(minute, hour)}`);
      expect(fields).toContain(`RateLimit: "minute";r=${minute};t=0, "hour";r=${hour};t=0`);
    }),
  );
});
