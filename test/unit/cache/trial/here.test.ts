import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { hash32 } from '../../../../src/cache/hash.ts';
import { AdjustableTimes, DEFAULT_TIMES } from '../../../../src/cache/times.ts';
import { totalsOf } from '../../../../src/cache/trial/counts.ts';
import { TrialsHere } from '../../../../src/cache/trial/here.ts';
import { TrialKeys } from '../../../../src/cache/trial/keys.ts';
import { CONTEXT, createRig, TEST_TIMES } from '../../../support/cache-rig.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { ManualTimers } from '../../../support/manual-timers.ts';
import { anEvaluation } from '../../../support/records.ts';
import { aTrial, BEGAN_MS, ended } from '../../../support/trials.ts';

let clock: ManualClock;
let times: AdjustableTimes;
let here: TrialsHere;
beforeEach(() => {
  clock = new ManualClock();
  times = new AdjustableTimes();
  here = new TrialsHere({ times, clock });
});

const trial = aTrial();
const keys = new TrialKeys(trial);
const hashes = Array.from({ length: 500 }, (_, index) => hash32(`key ${index}`));
const tried = hashes.find((keyHash) => keys.has(keyHash)) ?? 0;
const other = hashes.find((keyHash) => !keys.has(keyHash)) ?? 0;

function read(keyHash: number, outcome: 'hit' | 'miss' | 'stale-while-revalidate' = 'hit') {
  here.onRead({ class: 'list', key: 'k', keyHash, outcome, tier: null, missReason: null, ageMs: 0, durationMs: 1 });
}

function call(keyHash: number, isFailed = false) {
  here.onStoreCall({ class: 'list', key: 'k', keyHash, isFailed, route: null, durationMs: 1 });
}

describe('which time rules', () => {
  test('its own for the keys of a trial, that in force for all others and all other classes', () => {
    here.adopt([trial]);
    expect(times.of('list', tried)).toEqual({ ...DEFAULT_TIMES.list, freshMs: 60_000 });
    expect(times.of('list', other)).toEqual(DEFAULT_TIMES.list);
    expect(times.of('list')).toEqual(DEFAULT_TIMES.list);
    expect(times.of('evaluation', tried)).toEqual(DEFAULT_TIMES.evaluation);
  });

  test('every key, as its arm has it, whatever is set meanwhile', () => {
    const change = fc.record({
      freshMs: fc.option(fc.nat({ max: 100_000 }), { nil: undefined }),
      staleMs: fc.option(fc.nat({ max: 100_000 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 5 }), fc.nat({ max: 90_000 }), (changes, freshMs) => {
        here.adopt([aTrial({ freshMs })]);
        for (const given of [{}, ...changes]) {
          times.set('list', Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
          const inForce = times.of('list');
          for (const keyHash of hashes) {
            const expected = keys.has(keyHash) ? { ...inForce, freshMs } : inForce;
            expect(times.of('list', keyHash)).toEqual(expected);
          }
        }
      }),
      { numRuns: 20 },
    );
  });

  test('a read is fresh by the time of its arm', async () => {
    const timers = new ManualTimers();
    const rig = createRig({ timers });
    const trials = new TrialsHere({ times: rig.times, clock: timers.clock });
    const everySecond = aTrial({ class: 'evaluation', freshMs: 1000, share: 0.5 });
    trials.adopt([everySecond]);
    const armOf = new TrialKeys(everySecond);
    const ids = Array.from({ length: 40 }, (_, index) => `ev_${index}`);
    for (const id of ids) rig.store.evaluations.set(id, { ...anEvaluation(), _id: id });
    for (const id of ids) await rig.reader.evaluation(id, CONTEXT);
    await timers.advance(1500);
    for (const id of ids) {
      const { outcome, ttlMs } = await rig.reader.evaluation(id, CONTEXT);
      const isTried = armOf.has(hash32(`v1:{evaluation:${id}}`));
      expect([id, outcome]).toEqual([id, isTried ? 'stale-while-revalidate' : 'hit']);
      expect(ttlMs > 0).toBe(!isTried);
      expect(ttlMs).toBeLessThanOrEqual((isTried ? 1000 : TEST_TIMES.freshMs) - 1500);
    }
  });

  test('it ends by this clock, with nobody to say so', () => {
    here.adopt([trial]);
    clock.advance(3_599_999);
    here.apply();
    expect([times.of('list', tried).freshMs, here.isCounting]).toEqual([60_000, true]);
    clock.advance(1);
    here.apply();
    expect([times.of('list', tried).freshMs, here.isCounting]).toEqual([30_000, false]);
  });

  test('what has ended rules nothing', () => {
    here.adopt([ended(trial, 'stopped')]);
    expect(times.of('list', tried)).toEqual(DEFAULT_TIMES.list);
  });
});

describe('what this process has ended by itself', () => {
  const end = ended(trial, 'rolled-back', { cause: 'breaker' }).end;

  test('stays ended, and is owed to whoever takes it to be running', () => {
    here.adopt([trial]);
    here.endHere(trial.id, end);
    here.adopt([trial]);
    expect(times.of('list', tried).freshMs).toBe(30_000);
    expect(here.owed()).toEqual([{ ...trial, end }]);
    expect(here.all()).toEqual([{ ...trial, end }]);
  });

  test('is owed no more once they know, and their word is the one that counts', () => {
    here.adopt([trial]);
    here.endHere(trial.id, end);
    const stopped = ended(trial, 'stopped');
    here.adopt([stopped]);
    expect([here.owed(), here.all()]).toEqual([[], [stopped]]);
  });

  test('what ended and is then said to be running, because that was forgotten, stays ended too', () => {
    const stopped = ended(trial, 'stopped');
    here.adopt([trial]);
    here.adopt([stopped]);
    here.adopt([trial]);
    expect([here.owed(), times.of('list', tried).freshMs]).toEqual([[stopped], 30_000]);
  });
});

test('what ran here and nobody knows of any more is told, and rules no more', () => {
  here.adopt([trial]);
  expect(here.adopt([])).toEqual([trial]);
  expect([here.all(), times.of('list', tried).freshMs]).toEqual([[], 30_000]);
});

describe('counting', () => {
  test('reads, hits, calls and failures, each to its arm', () => {
    here.adopt([trial]);
    read(tried);
    read(tried, 'stale-while-revalidate');
    read(tried, 'miss');
    read(other, 'miss');
    call(tried);
    call(tried, true);
    call(other);
    const counts = here.countsOf(trial.id);
    expect(counts && totalsOf(counts.arms.trial)).toEqual({ reads: 3, hits: 2, storeCalls: 2, storeFailures: 1 });
    expect(counts && totalsOf(counts.arms.control)).toEqual({ reads: 1, hits: 0, storeCalls: 1, storeFailures: 0 });
    expect(counts?.store.since).toEqual({ calls: 3, failures: 1 });
  });

  test('of a key once in each stretch of the time that was in force', () => {
    here.adopt([trial]);
    const firstReads = () => here.countsOf(trial.id)?.arms.trial.firstReads.reduce((sum, each) => sum + each, 0);
    read(tried);
    read(tried);
    expect(firstReads()).toBe(1);
    clock.advance(30_000);
    here.apply();
    read(tried);
    expect(firstReads()).toBe(2);
  });

  test('what the store did before is that of the last ten minutes', () => {
    call(other, true);
    clock.advance(600_000);
    call(other, true);
    call(other);
    here.adopt([aTrial({ startedAtMs: BEGAN_MS + 600_000 })]);
    call(other);
    expect(here.countsOf(trial.id)?.store).toEqual({
      before: { calls: 2, failures: 1 },
      since: { calls: 1, failures: 0 },
    });
  });
});
