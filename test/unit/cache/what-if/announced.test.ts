import { describe, expect, test } from 'vitest';
import { overridesFor } from '../../../../src/cache/ttl-policy.ts';
import { NO_REFRESHES, type Refreshes, unannouncedOf } from '../../../../src/cache/what-if/announced.ts';
import { adviceOf } from '../../../../src/operations/advice.ts';
import { SeededRandom } from '../../../support/random.ts';
import { type ReadTrace, zipfTrace } from '../../../support/read-traces.ts';
import { outdatedLimitOf, Watched } from '../../../support/watched.ts';

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];
const [KEYS, HOURS] = [200, 12];
const IN_FORCE_AFTER_MS = 1000;
const TRACE = zipfTrace({ seed: 21, reads: 40_000, hours: HOURS, keys: KEYS, exponent: 0.9 });

interface Change {
  readonly atMs: number;
  readonly isAnnounced: boolean;
}

/** By record: it changes at random, once in `everyMs`, and that share of its changes is not announced. */
function changesOf(everyMs: number, unannounced: number): readonly (readonly Change[])[] {
  const random = new SeededRandom(22);
  return Array.from({ length: KEYS + 1 }, () => {
    const changes: Change[] = [];
    for (let atMs = 0; atMs < HOURS * HOUR_MS;) {
      atMs += -Math.log(1 - random.next()) * everyMs;
      changes.push({ atMs, isAnnounced: random.next() >= unannounced });
    }
    return changes;
  });
}

interface Call {
  readonly key: number;
  readonly atMs: number;
  /** Null for a record's first call. */
  readonly ageMs: number | null;
  /** The changes since the copy. */
  readonly changes: readonly Change[];
}

/** A cache that keeps every record for that time, and renews it at the first read since an announced change that is in force. */
function replay({ keys, atMs }: ReadTrace, all: readonly (readonly Change[])[], freshMs: number, areHeard: boolean) {
  const fills = new Map<number, number>();
  const calls: Call[] = [];
  let outdated = 0;
  for (const [index, nowMs] of atMs.entries()) {
    const key = keys[index] ?? 0;
    const filledMs = fills.get(key);
    const changes = (all[key] ?? []).filter((one) => one.atMs > (filledMs ?? nowMs) && one.atMs <= nowMs);
    const isHeard = changes.some((one) => areHeard && one.isAnnounced && one.atMs <= nowMs - IN_FORCE_AFTER_MS);
    if (filledMs === undefined || nowMs - filledMs >= freshMs || isHeard) {
      calls.push({ key, atMs: nowMs, ageMs: filledMs === undefined ? null : nowMs - filledMs, changes });
      fills.set(key, nowMs);
    } else if (changes.length > 0) outdated += 1;
  }
  return { calls, storeCallsPerRead: calls.length / atMs.length, outdatedRatio: outdated / atMs.length };
}

/** The advice of a gateway that keeps records for two minutes and hears of no change. */
function watch(all: readonly (readonly Change[])[], refreshes: Refreshes | null) {
  const watched = new Watched();
  watched.ttl.override('transcript', overridesFor({ freshMs: 2 * MINUTE_MS, staleMs: 0 }, null));
  const { calls } = replay(TRACE, all, 2 * MINUTE_MS, false);
  const waiting = [...calls];
  for (const [index, afterMs] of TRACE.atMs.entries()) {
    const key = `ev_${TRACE.keys[index]}`;
    watched.readAt(afterMs, key, 'transcript');
    if (waiting[0]?.atMs !== afterMs) continue;
    const { ageMs, changes } = waiting.shift() ?? { ageMs: null, changes: [] };
    if (ageMs !== null) watched.refreshed('transcript', changes.length > 0, ageMs, key);
  }
  const basis = { ttl: watched.ttl, outdatedLimitOf, nowMs: watched.clock.nowMs() };
  const found = refreshes && [{ class: 'transcript', ...refreshes }];
  const { classes } = adviceOf([watched.whatIf.report()], { ...basis, refreshes: found });
  const advice = classes.find((each) => each.class === 'transcript');
  if (advice === undefined) throw new Error('there is no advice on transcripts');
  return advice;
}

test.each([
  ['all', 2 * HOUR_MS, 0, null],
  ['all', 10 * MINUTE_MS, 0, null],
  ['four of five', 2 * HOUR_MS, 0.2, { refreshes: 10_000, changedRatio: 0.5, unannouncedRatio: 0.1 }],
] as const)('%s announced, one change in %i ms: calls and outdated answers are as in a replay', (...row) => {
  const [, everyMs, unannounced, refreshes] = row;
  const all = changesOf(everyMs, unannounced);
  const points = watch(all, refreshes).curve.filter(({ freshMs, extrapolated }) => freshMs >= 15_000 && !extrapolated);
  expect(points.length).toBeGreaterThan(5);
  for (const { freshMs, announced } of points) {
    const truth = replay(TRACE, all, freshMs, true);
    const calls = announced?.storeCallsPerRead ?? Number.NaN;
    expect(calls / truth.storeCallsPerRead).toBeGreaterThan(1);
    // Some changes come before a copy is read again, and two of them may share one read.
    expect(calls / truth.storeCallsPerRead).toBeLessThan(2);
    const off = Math.abs((announced?.outdatedRatio ?? Number.NaN) - truth.outdatedRatio);
    expect(off).toBeLessThan(0.0002 + 0.25 * truth.outdatedRatio);
  }
});

describe('advice on a time that announcements would allow', () => {
  const changes = changesOf(2 * HOUR_MS, 0);

  test('names a longer one, what it saves and what it costs', () => {
    const { current, recommendation, announcements } = watch(changes, null);
    expect([current?.freshMs, recommendation.freshMs]).toEqual([120_000, 360_000]);
    expect(announcements).toEqual({
      unannouncedRatio: 0,
      freshMs: 28_800_000,
      why: 'If the store announced its changes, 8h instead of 6m would take this class from 0.27 to at most 0.048 store calls a second, with less than 0.1 % of the answers outdated (limit 2 %).',
    });
  });

  test('is by the share that is announced, once the store announces them', () => {
    const found = { refreshes: 1000, changedRatio: 0.5, unannouncedRatio: 0.01 };
    const { announcements } = watch(changes, found);
    expect(announcements.freshMs).toBe(28_800_000);
    expect(announcements.why).toMatch(/^As the store announces 97\.9 % of its changes, 8h instead of 6m would take /);
  });

  test('is none if too many changes are not announced', () => {
    const found = { refreshes: 1000, changedRatio: 0.5, unannouncedRatio: 0.4 };
    expect(watch(changes, found).announcements).toMatchObject({ freshMs: null, why: null });
  });

  test('says so if too few changes were found to tell how many are announced', () => {
    const { announcements, curve } = watch(changes, { refreshes: 58, changedRatio: 0.5, unannouncedRatio: 0 });
    expect(announcements).toEqual({
      unannouncedRatio: null,
      freshMs: null,
      why: 'Too few changes were found in the last hour to tell how many of them the store announces: 29; it takes 30.',
    });
    expect(curve.map(({ announced }) => announced)).toEqual(curve.map(() => null));
  });
});

test.each<[string, Refreshes | null, number | null]>([
  ['none without announcements: all would be announced', null, 0],
  ['not known without refreshes', NO_REFRESHES, null],
  ['not known of 29 changes', { refreshes: 290, changedRatio: 0.1, unannouncedRatio: 0.1 }, null],
  [
    'of 30 changes, all announced, half of one more',
    { refreshes: 300, changedRatio: 0.1, unannouncedRatio: 0 },
    0.5 / 31,
  ],
  ['of 100 changes, half of them announced', { refreshes: 100, changedRatio: 1, unannouncedRatio: 0.5 }, 50.5 / 101],
])('the share that is not announced is %s', (_, found, share) => {
  expect(unannouncedOf(found)).toBe(share);
});
