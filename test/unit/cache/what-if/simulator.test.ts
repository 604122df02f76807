import { overridesFor } from '../../../../src/cache/ttl-policy.ts';
import { describe, expect, test } from 'vitest';
import { type Ages, bucketOf, CANDIDATE_FRESH_MS } from '../../../../src/cache/what-if/tally.ts';
import { Watched } from '../../../support/watched.ts';

const HOUR_MS = 3_600_000;

describe('one key that is read every second for ten seconds', () => {
  const watched = new Watched();
  for (let second = 0; second < 10; second++) watched.readAt(1000 * second, 'a');

  test.each([
    [500, 10],
    // Filled at 0, 2, 4, 6 and 8: after one second a copy is fresh, after two it isn't.
    [1500, 5],
    [5000, 2],
    [15_000, 1],
    [86_400_000, 1],
  ])('with %i ms costs %i calls', (freshMs, calls) => {
    expect(watched.point(freshMs)).toMatchObject({ reads: 10, calls, startedMs: watched.startMs });
  });

  test('is told as ratios, rates and ages', () => {
    watched.clock.advance(1000);
    const { curve, current, reads, since } = watched.advice();
    expect({ reads, since }).toEqual({ reads: 10, since: '2026-01-15T12:00:00.000Z' });
    expect(curve.map(({ freshMs }) => freshMs)).toEqual([...CANDIDATE_FRESH_MS, 300_000].toSorted((a, b) => a - b));
    expect(current).toEqual(curve.find(({ freshMs }) => freshMs === 300_000));
    const five = curve.find(({ freshMs }) => freshMs === 5000);
    expect(five).toMatchObject({ storeCallsPerRead: 0.2, hitRatio: 0.9, outdatedRatio: null, extrapolated: false });
    expect(five?.upstreamRps).toBeCloseTo(0.2, 10);
    // 0, 1, 2, 3, 4, 5 (served while it is refreshed), 1, 2, 3 and 4 s: nine of them are at most 4 s.
    expect(five?.ageP90Ms).toBeGreaterThan(4000 * 0.9);
    expect(five?.ageP90Ms).toBeLessThan(4000 * 1.1);
  });
});

/** The ages of answers of a TTL of 15 s: two reads, 20 s apart, of a class that is served that long while it is refreshed. */
function agesOf(staleMs: number): Ages {
  const watched = new Watched();
  watched.ttl.override('list', overridesFor({ staleMs }, null));
  watched.readAt(0, 'a', 'list');
  watched.readAt(20_000, 'a', 'list');
  expect(watched.point(15_000, 'list').calls).toBe(2);
  return watched.point(15_000, 'list').ages;
}

describe('copies served past their freshness', () => {
  test('is the old copy, with its age', () => {
    const ages = agesOf(60_000);
    expect(ages).toEqual([
      [0, 0.5],
      [bucketOf(20_000), 0.5],
    ]);
  });

  test('is new if the old copy is too old to be served', () => {
    expect(agesOf(5000)).toEqual([[0, 1]]);
  });
});

test('a copy is fresh for nine tenths of its time at least, and never for longer than that', () => {
  const watched = new Watched();
  for (let key = 0; key < 1000; key++) watched.readAt(0, `short ${key}`);
  for (let key = 0; key < 1000; key++) watched.readAt(40_000, `short ${key}`);
  expect(watched.point(45_000).calls).toBe(1000);
  for (let key = 0; key < 1000; key++) watched.readAt(85_200, `short ${key}`);
  expect(watched.point(45_000).calls).toBe(2000);
});

/** Lists that are fetched at each of these reads. */
function watchPage(): Watched {
  const watched = new Watched();
  watched.ttl.override('list', overridesFor({ freshMs: 1500 }, null));
  watched.readList('page', ['a']);
  return watched;
}
const callsAt = (watched: Watched, freshMs: number) =>
  watched.advice().curve.find((point) => point.freshMs === freshMs)?.storeCallsPerRead;

describe('an evaluation on a list', () => {
  test('is held from then on without a call, and refreshed by every page that holds it', () => {
    const watched = watchPage();
    for (const afterMs of [4000, 8000]) watched.readAt(afterMs, 'a');
    expect([callsAt(watched, 5000), callsAt(watched, 15_000)]).toEqual([1 / 2, 0]);
    watched.clock.advance(4000);
    watched.readList('page', ['a']);
    watched.readAt(16_000, 'a');
    expect(callsAt(watched, 5000)).toBeCloseTo(1 / 3, 10);
  });

  test('costs calls again if lists are fetched too seldom: the other times are those in force', () => {
    const watched = watchPage();
    for (let second = 4; second < 400; second += 4) {
      watched.clock.advance(2000);
      watched.readList('page', ['a']);
      watched.readAt(1000 * second, 'a');
    }
    expect(callsAt(watched, 15_000)).toBe(0);
    watched.ttl.override('list', overridesFor({ freshMs: 120_000 }, null));
    expect(callsAt(watched, 15_000)).toBeGreaterThan(0.15);
    expect(callsAt(watched, 360_000)).toBe(0);
  });

  test('is not counted as read', () => {
    expect(watchPage().advice()).toMatchObject({ reads: 0, since: null, curve: [] });
  });
});

test('a clock that was set back is followed, at the price of one call a key', () => {
  const watched = new Watched();
  watched.clock.advance(2 * HOUR_MS);
  watched.read('a');
  watched.clock.advance(-HOUR_MS);
  for (let minute = 0; minute < 10; minute++) {
    watched.read('a');
    watched.clock.advance(60_000);
  }
  expect(watched.point(500).calls).toBe(11);
  expect(watched.point(1_200_000).calls).toBe(2);
});

test('a key that was not read for weeks is no hit of any candidate, however often its time has come round', () => {
  for (const idleMs of [65_536, 24 * HOUR_MS + 5, 30 * 24 * HOUR_MS, 65_536 * 84_375]) {
    const watched = new Watched();
    watched.readAt(0, 'a');
    watched.readAt(idleMs, 'a');
    for (const freshMs of CANDIDATE_FRESH_MS.filter((each) => each <= idleMs)) {
      expect(watched.point(freshMs).calls, `${freshMs} after ${idleMs}`).toBeGreaterThanOrEqual(1);
    }
    expect(watched.point(500).calls).toBe(watched.point(500).reads);
  }
});

test('the keys of one class are not those of another', () => {
  const watched = new Watched();
  watched.readAt(0, 'a', 'evaluation');
  watched.readAt(100, 'a', 'transcript');
  expect([watched.point(5000, 'evaluation').calls, watched.point(5000, 'transcript').calls]).toEqual([1, 1]);
});

test('figures are of the last 24 to 36 hours', () => {
  const watched = new Watched();
  // One read an hour, of a key that is never read again.
  for (let hour = 0; hour < 60; hour++) watched.readAt(hour * HOUR_MS, `once ${hour}`);
  expect(watched.point(500)).toMatchObject({ reads: 36, calls: 36, sinceMs: watched.startMs + 24 * HOUR_MS });
  watched.readAt(60 * HOUR_MS, 'next');
  expect(watched.point(500)).toMatchObject({ reads: 25, sinceMs: watched.startMs + 36 * HOUR_MS });
  // After a long pause nothing of before is left.
  watched.readAt(200 * HOUR_MS, 'late');
  expect(watched.point(500)).toMatchObject({ reads: 1, startedMs: watched.startMs });
});
