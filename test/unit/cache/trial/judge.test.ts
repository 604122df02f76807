import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TrialJudge } from '../../../../src/cache/trial/judge.ts';
import type { TrialCounts } from '../../../../src/cache/trial/counts.ts';
import type { Predicted, Trial } from '../../../../src/cache/trial/trial.ts';
import type { Verdict } from '../../../../src/cache/trial/verdict.ts';
import { aTrial, BEGAN_MS, countsOf } from '../../../support/trials.ts';
import { simulateTrial } from '../../../support/trial-simulation.ts';

const NOTHING = { trial: null, control: null };
const WELL = { kind: 'well' };

function judgeOf(trial: Trial = aTrial(), controlFreshMs = trial.controlFreshMs) {
  const judge = new TrialJudge(trial, controlFreshMs);
  const look = (
    afterMs: number,
    counts: TrialCounts,
    predicted: { readonly trial: Predicted | null; readonly control: Predicted | null } = NOTHING,
  ): Verdict => judge.look({ atMs: BEGAN_MS + afterMs, counts, predicted });
  return { judge, look };
}

/** Nine times as many keys are in the other arm, each as those of the trial. */
const ALIKE = countsOf({ trial: { reads: 100, storeCalls: 20 }, control: { reads: 900, storeCalls: 180 } });
const DOUBLE = countsOf({ trial: { reads: 100, storeCalls: 40 }, control: { reads: 900, storeCalls: 180 } });

/** Of so many hours in which both arms cost alike. */
function well(hours: number): TrialCounts {
  return countsOf({
    trial: { reads: 1e6 * hours, storeCalls: 1e5 * hours },
    control: { reads: 9e6 * hours, storeCalls: 9e5 * hours },
  });
}

/** So many calls of the whole store; before the trial none of 1000 failed. */
function ofStore(calls: number, failures: number): TrialCounts {
  return countsOf({ since: { calls, failures }, before: { calls: 1000, failures: 0 } });
}

/** What a verdict says. */
function textOf(verdict: Verdict): string {
  if (verdict.kind === 'well') return 'well';
  return verdict.kind === 'harm' ? verdict.reason : verdict.why;
}

describe('store load', () => {
  test('as much as of the others is well', () => {
    expect(judgeOf().look(600_000, ALIKE)).toEqual(WELL);
  });

  test('twice as much goes back, with figures', () => {
    expect(judgeOf().look(600_000, DOUBLE)).toEqual({
      kind: 'harm',
      cause: 'store-load',
      reason:
        "The trial's keys asked the store 2 times as often as the others in 10 min (1,280 calls in 3,200 reads, where 640 would be expected by what the others asked); the limit is 1.5 times.",
    });
  });

  test('up to the limit that was set nothing is done', () => {
    const trial = aTrial({ limits: { maxStoreLoad: 3, maxErrors: 0.05 } });
    expect(judgeOf(trial).look(600_000, DOUBLE)).toEqual(WELL);
  });

  test('is not judged before the shorter time has passed four times', () => {
    const early = { kind: 'unjudged', why: 'Not judged yet: store load is judged from 2 min after the start on.' };
    const { look } = judgeOf();
    expect(look(119_999, DOUBLE)).toEqual(early);
    expect(look(120_000, DOUBLE)).toMatchObject({ cause: 'store-load' });
  });

  test('a handful of calls says nothing, however many times those of the others they are', () => {
    const few = countsOf({ trial: { reads: 0.75, storeCalls: 0.75 }, control: { reads: 900, storeCalls: 1 } });
    expect(judgeOf().look(600_000, few)).toMatchObject({ kind: 'unjudged' });
  });

  test('an arm of which nothing was read is said to be so', () => {
    const nothing = countsOf({ control: { reads: 900, storeCalls: 180 } });
    const why = "Not judged yet: none of the trial's keys was read yet.";
    expect(judgeOf().look(600_000, nothing)).toEqual({ kind: 'unjudged', why });
  });

  test('calls that failed are no load: what fails is asked again as often as it is read', () => {
    const failing = countsOf({
      trial: { reads: 100, storeCalls: 40, storeFailures: 20 },
      control: { reads: 900, storeCalls: 360, storeFailures: 180 },
      before: { calls: 1000, failures: 500 },
      since: { calls: 1000, failures: 500 },
    });
    expect(judgeOf().look(600_000, failing)).toEqual(WELL);
  });

  test('a rise that comes late is seen, though it is small beside all that went well', () => {
    const { look } = judgeOf();
    for (let minute = 2; minute <= 60; minute++) expect(look(minute * 60_000, well(minute / 60))).toEqual(WELL);
    const { arms } = well(62 / 60);
    const storeCalls = arms.trial.storeCalls.map((calls) => calls + 4000);
    const late = { ...well(62 / 60), arms: { ...arms, trial: { ...arms.trial, storeCalls } } };
    expect(textOf(look(62 * 60_000, late))).toMatch(/^The trial's keys asked the store .* in 2 min /);
  });
});

describe('a shorter time', () => {
  const shorter = aTrial({ freshMs: 10_000, controlFreshMs: 30_000 });
  const predictedDouble = {
    trial: { hitRatio: 0.6, storeCallsPerRead: 0.4 },
    control: { hitRatio: 0.8, storeCallsPerRead: 0.2 },
  };

  test('may cost what was predicted', () => {
    expect(judgeOf(shorter).look(600_000, DOUBLE)).toMatchObject({ cause: 'store-load' });
    expect(judgeOf(shorter).look(600_000, DOUBLE, predictedDouble)).toEqual(WELL);
  });

  test('and no more than the limit beyond it', () => {
    const worse = countsOf({ trial: { reads: 100, storeCalls: 80 }, control: { reads: 900, storeCalls: 180 } });
    const verdict = judgeOf(shorter).look(600_000, worse, predictedDouble);
    expect(textOf(verdict)).toMatch(/limit is 3\.03 times, where 2 times was predicted/);
  });

  test('a prediction that no time could have is not believed', () => {
    const wild = { trial: { hitRatio: 0, storeCallsPerRead: 1 }, control: { hitRatio: 1, storeCallsPerRead: 0 } };
    const tenfold = countsOf({ trial: { reads: 1000, storeCalls: 200 }, control: { reads: 9000, storeCalls: 180 } });
    expect(judgeOf(shorter).look(600_000, tenfold, wild)).toMatchObject({ cause: 'store-load' });
  });

  test('for a longer one what was predicted makes no difference', () => {
    expect(judgeOf().look(600_000, DOUBLE, predictedDouble)).toMatchObject({ cause: 'store-load' });
  });

  test('the calls of its beginning, once for each key, are allowed for', () => {
    const quarterHour = aTrial({ freshMs: 900_000, controlFreshMs: 1_800_000 });
    const { look } = judgeOf(quarterHour);
    // 3,600 s: four times in the trial and once more at its beginning, twice of the others.
    const counts = countsOf({ trial: { reads: 1000, storeCalls: 50 }, control: { reads: 9000, storeCalls: 180 } });
    const predicted = {
      trial: { hitRatio: 0.96, storeCallsPerRead: 0.04 },
      control: { hitRatio: 0.98, storeCallsPerRead: 0.02 },
    };
    expect(look(3_600_000, counts, predicted)).toEqual(WELL);
  });
});

describe('errors', () => {
  test('of the trial alone go back at once', () => {
    const counts = countsOf({
      trial: { reads: 10, storeCalls: 10, storeFailures: 5 },
      control: { reads: 90, storeCalls: 90 },
      since: { calls: 3200, failures: 160 },
      before: { calls: 3200, failures: 160 },
    });
    expect(judgeOf().look(5000, counts)).toEqual({
      kind: 'harm',
      cause: 'arm-errors',
      reason:
        "160 of 320 (50 %) store calls of the trial's keys failed in 5 s, and 0 of 2,880 (0 %) of the others; the limit is 5 % more.",
    });
  });

  test('of the whole store, above what was before the trial, go back', () => {
    const both = { reads: 10, storeCalls: 10, storeFailures: 4 };
    const since = { calls: 640, failures: 256 };
    const counts = (failures: number) =>
      countsOf({ trial: both, control: both, since, before: { calls: 500, failures } });
    expect(judgeOf().look(5000, counts(10))).toEqual({
      kind: 'harm',
      cause: 'store-errors',
      reason:
        '256 of 640 (40 %) of all store calls failed in 5 s, and 10 of 500 (2 %) before the trial; the limit is 5 % more.',
    });
    expect(judgeOf().look(5000, counts(200))).toMatchObject({ kind: 'unjudged' });
  });

  test('where no call was made before the trial, none failed', () => {
    const counts = countsOf({ since: { calls: 100, failures: 50 } });
    expect(textOf(judgeOf().look(5000, counts))).toContain('of none that was made before the trial');
  });

  test('a few failures are no rise', () => {
    const counts = countsOf({ since: { calls: 40, failures: 5 }, before: { calls: 1000, failures: 0 } });
    expect(judgeOf().look(5000, counts)).toMatchObject({ kind: 'unjudged' });
  });

  test('one key that always fails is no harm of the trial', () => {
    const counts = countsOf({
      trial: { reads: 10, storeCalls: 10 },
      control: { reads: 90, storeCalls: 90 },
      since: { calls: 3300, failures: 100 },
      before: { calls: 3300, failures: 100 },
    });
    const { arms, store } = counts;
    const storeCalls = arms.trial.storeCalls.with(3, 110);
    const storeFailures = arms.trial.storeFailures.with(3, 100);
    const one = { store, arms: { ...arms, trial: { ...arms.trial, storeCalls, storeFailures } } };
    expect(judgeOf().look(5000, one)).toMatchObject({ kind: 'unjudged' });
  });

  test('those of the last minute count for themselves', () => {
    const { look } = judgeOf();
    for (let second = 0; second <= 3600; second += 5) look(second * 1000, ofStore(second * 100, 0));
    expect(look(3_605_000, ofStore(360_500, 300))).toMatchObject({ kind: 'unjudged' });
    expect(look(3_610_000, ofStore(361_000, 950))).toMatchObject({ cause: 'store-errors' });
  });
});

describe('what changes meanwhile', () => {
  test('with another time in force the comparison begins anew', () => {
    const { judge, look } = judgeOf();
    expect(look(100_000, DOUBLE)).toMatchObject({ kind: 'unjudged' });
    judge.noteControl(20_000);
    // Whatever was before.
    expect(look(600_000, DOUBLE)).toMatchObject({ kind: 'unjudged' });
    const more = countsOf({ trial: { reads: 200, storeCalls: 80 }, control: { reads: 1800, storeCalls: 360 } });
    expect(look(679_999, more)).toMatchObject({ kind: 'unjudged' });
    expect(look(680_000, more)).toMatchObject({ cause: 'store-load' });
  });

  test('one who comes after that begins with what he finds', () => {
    const { look } = judgeOf(aTrial(), 20_000);
    expect(look(600_000, DOUBLE)).toMatchObject({ kind: 'unjudged' });
    expect(look(700_000, DOUBLE)).toMatchObject({ kind: 'unjudged' });
  });

  test('counts that were lost are no harm', () => {
    const { look } = judgeOf();
    look(100_000, countsOf({ trial: { reads: 100, storeCalls: 20 }, control: { reads: 9000, storeCalls: 1800 } }));
    expect(look(600_000, DOUBLE)).toMatchObject({ kind: 'unjudged' });
  });

  test('a clock that was set back is no harm', () => {
    expect(judgeOf().look(-5000, DOUBLE)).toMatchObject({ kind: 'unjudged' });
  });
});

/** Keys read by Zipf's law, a cache with jitter, a look every 10 s. */
describe('simulated traffic', () => {
  const traffic = { keys: 400, skew: 1, readsPerSecond: 15, share: 0.1, forMs: 240_000, controlFreshMs: 30_000 };

  test('a trial that does no harm is rolled back in fewer than 1 of 1000 runs', { timeout: 60_000 }, () => {
    const rolledBack: string[] = [];
    let runs = 0;
    for (const [skew, share, freshMs] of [
      [0, 0.1, 30_000],
      [1, 0.1, 33_000],
      [1, 0.02, 60_000],
      [1.3, 0.3, 30_000],
      [2, 0.1, 45_000],
    ] as const) {
      for (let seed = 1; seed <= 620; seed++) {
        const { harm } = simulateTrial({ ...traffic, skew, share, freshMs, seed });
        runs += 1;
        if (harm !== null) rolledBack.push(harm.reason);
      }
    }
    expect(runs).toBe(3100);
    expect(rolledBack).toEqual([]);
  });

  test.each([0, 1, 1.3])('a doubling of the load is caught within 1000 calls (skew %d)', (skew) => {
    for (let seed = 1; seed <= 15; seed++) {
      const forMs = 3_600_000;
      const { harm, trialCalls } = simulateTrial({ ...traffic, skew, factor: 2, freshMs: 30_000, seed, forMs });
      expect(harm).toMatchObject({ cause: 'store-load' });
      expect(trialCalls).toBeLessThan(1000);
    }
  });

  test('no time at all, by mistake, is caught within two minutes', () => {
    for (let seed = 1; seed <= 15; seed++) {
      const { harm, atMs } = simulateTrial({ ...traffic, freshMs: 0, controlFreshMs: 300_000, seed });
      expect(harm).toMatchObject({ cause: 'store-load' });
      expect(atMs).toBeLessThanOrEqual(120_000);
    }
  });
});

test('whatever is counted, a limit is never exceeded by fewer calls than it allows', () => {
  const group = fc.integer({ min: 0, max: 50 });
  fc.assert(
    fc.property(group, group, fc.double({ min: 0.01, max: 0.5, noNaN: true }), (tried, others, share) => {
      const counts = countsOf({ trial: { reads: 50, storeCalls: tried }, control: { reads: 50, storeCalls: others } });
      const verdict = judgeOf(aTrial({ share })).look(600_000, counts);
      const isMore = tried / share > (1.5 * others) / (1 - share);
      expect(verdict.kind === 'harm' && !isMore).toBe(false);
    }),
  );
});
