import { describe, expect, test } from 'vitest';
import { CACHE_CLASSES, overridesFor } from '../../../src/cache/ttl-policy.ts';
import { adviceOf, type AdviceOptions } from '../../../src/operations/advice.ts';
import { zipfTrace } from '../../support/read-traces.ts';
import { adviceFor, outdatedLimitOf, Watched } from '../../support/watched.ts';

const HOUR_MS = 3_600_000;
const TRACE = zipfTrace({ seed: 5, reads: 6000, hours: 10, keys: 300, exponent: 1 });

/** Ten hours of lists, of which the store has been asked for so many again after half a minute. */
function watch(refreshes: number, changed: number): Watched {
  const watched = new Watched();
  watched.feed(TRACE, 'list');
  for (let refresh = 0; refresh < refreshes; refresh++) watched.refreshed('list', refresh < changed, 30_000);
  return watched;
}

test('all classes have advice, also those that nobody reads', () => {
  const { ttl, clock } = new Watched();
  const { classes: all } = adviceOf([], { ttl, outdatedLimitOf, nowMs: clock.nowMs() });
  expect(all.map((each) => each.class)).toEqual(CACHE_CLASSES);
  expect(all[0]).toEqual({
    class: 'list',
    reads: 0,
    since: null,
    includesStart: false,
    staleness: null,
    outdatedLimit: 0.02,
    current: null,
    measured: null,
    curve: [],
    changes: [],
    recommendation: { freshMs: null, why: 'No reads were seen yet.', warning: null },
    announcements: { unannouncedRatio: null, freshMs: null, why: null },
  });
});

test('the models of several processes, each with its own keys, say together what one of all keys says', () => {
  const one = new Watched();
  const several = Array.from({ length: 4 }, () => new Watched(one.clock, one.ttl));
  for (const [index, afterMs] of TRACE.atMs.entries()) {
    const key = TRACE.keys[index] ?? 0;
    one.readAt(afterMs, `ev_${key}`);
    several[key % 4]?.read(`ev_${key}`);
    one.refreshed('evaluation', index % 100 === 0, 300_000);
    several[index % 3]?.refreshed('evaluation', index % 100 === 0, 300_000);
  }
  const whole = one.advice();
  const merged = adviceFor(
    several.map(({ whatIf }) => whatIf.report()),
    one,
  );
  expect(merged.reads).toBe(6000);
  expect(merged.curve.map(({ freshMs }) => freshMs)).toEqual(whole.curve.map(({ freshMs }) => freshMs));
  for (const [index, point] of merged.curve.entries()) {
    const same = whole.curve[index];
    expect(point.hitRatio).toBeCloseTo(same?.hitRatio ?? -1, 12);
    // Each process has seen its first read at another moment.
    expect(point.upstreamRps / (same?.upstreamRps ?? 1)).toBeCloseTo(1, 2);
    expect(point.outdatedRatio).toBeCloseTo(same?.outdatedRatio ?? -1, 3);
    expect(Math.abs(point.ageP90Ms / (same?.ageP90Ms ?? 1) - 1)).toBeLessThan(0.2);
    expect(point.extrapolated).toBe(same?.extrapolated);
  }
});

test('the share of outdated answers follows from their ages and how fast records change', () => {
  const { curve } = watch(10_000, 100).advice('list');
  const shares = curve.map(({ outdatedRatio }) => outdatedRatio ?? -1);
  expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  // 1 % changes in 30 s, and answers of a time of 45 s are about 20 s old, or old copies of up to 5 min.
  const at = curve.find(({ freshMs }) => freshMs === 45_000)?.outdatedRatio;
  expect(at).toBeGreaterThan(0.005);
  expect(at).toBeLessThan(0.03);
});

describe('the time in force', () => {
  test.each([
    [60_000, 45_000, 120_000],
    [300_000, 120_000, 360_000],
  ])('of %i ms, which is not simulated, has figures between those next to it', (freshMs, below, above) => {
    const watched = watch(1000, 10);
    watched.ttl.override('list', overridesFor({ freshMs }, null));
    const { curve, current } = watched.advice('list');
    const [low, high] = [below, above].map((each) => curve.find((point) => point.freshMs === each));
    expect(current).toMatchObject({ freshMs, extrapolated: false });
    expect(current?.storeCallsPerRead).toBeLessThan(low?.storeCallsPerRead ?? 0);
    expect(current?.storeCallsPerRead).toBeGreaterThan(high?.storeCallsPerRead ?? 1);
    expect(current?.outdatedRatio).toBeLessThan(high?.outdatedRatio ?? 0);
  });

  test('of nothing is a call a read, also before the first one', () => {
    const watched = watch(1000, 10);
    watched.ttl.override('list', overridesFor({ freshMs: 0 }, null));
    expect(watched.advice('list').current).toMatchObject({ freshMs: 0, storeCallsPerRead: 1 });
  });

  test('beyond all candidates is told by the last one, and extrapolated', () => {
    const watched = watch(1000, 10);
    watched.ttl.override('list', overridesFor({ freshMs: 200_000_000 }, null));
    const { current, curve } = watched.advice('list');
    expect(current).toEqual(curve.at(-1));
    expect(current).toMatchObject({ freshMs: 200_000_000, hitRatio: curve.at(-2)?.hitRatio, extrapolated: true });
  });
});

/** Records that change every minute, kept for ten: only a much shorter time would keep the limit. */
function watchChanging() {
  const watched = new Watched();
  watched.ttl.override('transcript', overridesFor({ freshMs: 600_000, staleMs: 0 }, null));
  for (let read = 0; read < 3600; read++) {
    watched.readAt(read * 1000, 'a', 'transcript');
    if (read % 30 === 0) watched.refreshed('transcript', read % 60 === 0, 30_000, 'a');
  }
  const adviceWith = (options: Partial<AdviceOptions> = {}) => {
    const basis = { ttl: watched.ttl, outdatedLimitOf, nowMs: watched.clock.nowMs() };
    const { load, classes } = adviceOf([watched.whatIf.report()], { ...basis, ...options });
    return { load, advice: classes.find((each) => each.class === 'transcript') };
  };
  return { watched, adviceWith };
}

describe('what the store may be asked for', () => {
  test('is twice the calls in force: a time that costs more is not recommended, unless the operator insists', () => {
    const { adviceWith } = watchChanging();
    const { load, advice } = adviceWith();
    expect(advice?.recommendation).toMatchObject({ freshMs: null, warning: null });
    expect(advice?.recommendation.why).toMatch(
      /^The times that keep the limit of 2 % outdated answers \(1500ms or less\) would take the store from 0\.0021 to 0\.5 calls a second, all classes together, more than twice what the times in force cost \(0\.0042\)\. They are only recommended with --force\.$/,
    );
    expect(load).toMatchObject({ warning: null, recommendedRps: load.upstreamRps, limitRps: 2 * load.upstreamRps });
    const forced = adviceWith({ force: true });
    expect(forced.advice?.recommendation).toMatchObject({ freshMs: 1500 });
    expect(forced.advice?.recommendation.warning).toMatch(/^WARNING: /);
    expect(forced.load.warning).toMatch(/^WARNING: the recommended times would cost the store 0\.5 calls a second/);
  });

  test('is what the configuration and the operator allow, if that is less', () => {
    const { adviceWith } = watchChanging();
    const { load } = adviceWith({ maxRequestsPerSecond: 3, budgetRps: 0.001 });
    expect(load).toMatchObject({ limitRps: 0.001, limit: 'the budget' });
    expect(load.warning).toMatch(
      /^WARNING: the times in force cost the store 0\.0021 calls a second, more than the budget/,
    );
    expect(adviceWith({ maxRequestsPerSecond: 0.003 }).load.limit).toBe('upstream.maxRequestsPerSecond');
  });

  test('is for all classes together: what one of them gets the others do not', () => {
    const { watched, adviceWith } = watchChanging();
    watched.ttl.override('rubric', overridesFor({ freshMs: 1_200_000, staleMs: 0 }, null));
    for (let read = 0; read < 3600; read++) {
      watched.read(`${read % 300}`, 'rubric');
      watched.clock.advance(1000);
    }
    const { load, advice } = adviceWith();
    const each = advice?.curve.map(({ upstreamRps, totalRps }) => totalRps - upstreamRps) ?? [];
    for (const others of each) expect(others).toBeCloseTo(load.upstreamRps - (advice?.current?.upstreamRps ?? 0), 10);
    expect(load.upstreamRps).toBeGreaterThan(10 * (advice?.current?.upstreamRps ?? 1));
    expect(advice?.current?.totalRps).toBe(load.upstreamRps);
  });
});

describe('the recommendation', () => {
  test('is none of a few reads', () => {
    const watched = new Watched();
    for (let read = 0; read < 999; read++) watched.readAt(read * 1000, 'a');
    expect(watched.advice().recommendation).toEqual({
      freshMs: null,
      why: 'Too few reads for a recommendation: 999 in 16m 38s; it takes 1,000.',
      warning: null,
    });
  });

  test.each([
    [0, 0],
    [1, 1],
    [29, 0],
    [29, 29],
  ])('is none after %i refreshes, of which %i brought a change, and no share is stated', (seen, changed) => {
    const { recommendation, curve } = watch(seen, changed).advice('list');
    expect(recommendation).toEqual({
      freshMs: null,
      why: `Too few refreshes to tell how fast the records change: ${seen}; it takes 30.`,
      warning: null,
    });
    expect(new Set(curve.map(({ outdatedRatio }) => outdatedRatio))).toEqual(new Set([null]));
  });

  test('is none if every time would serve too many outdated answers', () => {
    const { freshMs, why } = watch(1000, 990).advice('list').recommendation;
    expect(freshMs).toBeNull();
    expect(why).toMatch(
      /^Every time would serve more outdated answers \([\d.]+ % at \d+m?s\) than the limit of 2 %\.$/,
    );
  });

  test('is the shortest within a tenth of the lowest store load that the limit allows', () => {
    const watched = watch(100_000, 10);
    const { recommendation, curve, current } = watched.advice('list');
    const allowed = curve.filter((point) => !point.extrapolated && (point.outdatedRatio ?? 1) <= 0.02);
    const lowest = Math.min(...allowed.map(({ upstreamRps }) => upstreamRps));
    const best = allowed.find(({ upstreamRps }) => upstreamRps <= 1.1 * lowest);
    expect(recommendation.freshMs).toBe(best?.freshMs);
    expect(best?.freshMs).toBeGreaterThan(current?.freshMs ?? Number.MAX_VALUE);
    expect(recommendation.why).toMatch(
      /^\d+[mh] instead of 30s would take (?:the hit ratio from ([\d.]+) % to (?!\1 )[\d.]+ % and )?the store from [\d.]+ to [\d.]+ calls a second, all classes together, with [\d.]+ % of the answers outdated instead of [\d.]+ % \(limit 2 %\)\.$/,
    );
  });

  test('never is a time that was not watched for as long as it lasts', () => {
    const watched = new Watched();
    watched.ttl.override('evaluation', overridesFor({ freshMs: 5000 }, null));
    for (let read = 0; read < 2000; read++) watched.readAt(read * 100, `${read % 5}`);
    for (let refresh = 0; refresh < 100_000; refresh++) watched.refreshed('evaluation', false, HOUR_MS);
    expect(watched.advice().recommendation.freshMs).toBe(120_000);
  });

  test('is none while the time in force was not watched for as long as it lasts', () => {
    const watched = new Watched();
    for (let read = 0; read < 2000; read++) watched.readAt(read * 100, `${read % 5}`);
    for (let refresh = 0; refresh < 100_000; refresh++) watched.refreshed('evaluation', false, HOUR_MS);
    expect(watched.advice().recommendation).toEqual({
      freshMs: null,
      why: '5m, the time in force, is longer than traffic was watched (3m 19s).',
      warning: null,
    });
  });

  test('is the time in force while another would gain no more than chance may explain', () => {
    const watched = new Watched();
    // Two calls in three hours or one: with so few, anything may be chance.
    watched.ttl.override('evaluation', overridesFor({ freshMs: 7_200_000 }, null));
    for (let read = 0; read < 1100; read++) watched.readAt(read * 20_000, 'a');
    for (let refresh = 0; refresh < 100_000; refresh++) watched.refreshed('evaluation', false, HOUR_MS);
    const { freshMs, why } = watched.advice().recommendation;
    expect(freshMs).toBe(7_200_000);
    expect(why).toMatch(/^2h, the time in force, is as good as 3h as far as can be told/);
  });

  test('says so if the time in force is the best', () => {
    const watched = watch(100_000, 10);
    watched.ttl.override('list', overridesFor({ freshMs: watched.advice('list').recommendation.freshMs ?? 0 }, null));
    const { why } = watched.advice('list').recommendation;
    expect(why).toMatch(/^\d+[mh], the time in force, is the shortest that comes within 10 % of the lowest store load/);
  });
});
