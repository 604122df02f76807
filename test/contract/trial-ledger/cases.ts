import { expect, test } from 'vitest';
import { type AdjustableTimes, DEFAULT_TIMES } from '../../../src/cache/times.ts';
import type { TrialsHere } from '../../../src/cache/trial/here.ts';
import type { TrialLedger } from '../../../src/cache/trial/ledger.ts';
import { aTrial, ended } from '../../support/trials.ts';

export interface LedgerWorld {
  readonly ledger: TrialLedger;
  /** As another process has it; the same one where there is no other. */
  readonly beside: TrialLedger;
  /** What the process of `ledger` goes by. */
  readonly here: TrialsHere;
  readonly times: AdjustableTimes;
  /** Resolves once both know the same. */
  readonly heard: () => Promise<void>;
}

function idsOf(here: TrialsHere): readonly string[] {
  return here.all().map(({ id }) => id);
}

/** What every ledger of trials does. `create` gives an empty one, with the default times and nothing set. */
export function trialLedgerContract(create: () => Promise<LedgerWorld>): void {
  const trial = aTrial();

  test('a class has one trial at a time, another class its own', async () => {
    const { ledger, beside, here, heard } = await create();
    expect(await ledger.begin(trial)).toBeNull();
    expect(await beside.begin(aTrial({ id: 'trial-2' }))).toEqual(trial);
    expect(await beside.begin(aTrial({ id: 'trial-3', class: 'rubric' }))).toBeNull();
    await heard();
    expect(idsOf(here).toSorted()).toEqual(['trial-1', 'trial-3']);
  });

  test('of two that are begun at once, one begins', async () => {
    const { ledger, beside } = await create();
    const results = await Promise.all([ledger.begin(trial), beside.begin(aTrial({ id: 'trial-2' }))]);
    expect(results.filter((inTheWay) => inTheWay === null)).toHaveLength(1);
  });

  test('it is ended once, and then another may begin', async () => {
    const { ledger, beside, here } = await create();
    await ledger.begin(trial);
    const stopped = ended(trial, 'stopped');
    expect(await ledger.end(stopped)).toBe(true);
    expect(await beside.end(ended(trial, 'rolled-back', { cause: 'breaker' }))).toBe(false);
    expect(here.all()).toEqual([stopped]);
    expect(await ledger.begin(aTrial({ id: 'trial-2' }))).toBeNull();
    expect(idsOf(here)).toEqual(['trial-2', 'trial-1']);
  });

  test('one that is adopted while it runs has its time set for the class, and is over', async () => {
    const { ledger, here, times } = await create();
    await ledger.begin(trial);
    const adopted = ended(trial, 'adopted');
    const { list } = DEFAULT_TIMES;
    expect(await ledger.adopt(adopted)).toEqual({ from: list, to: { ...list, freshMs: 60_000 } });
    expect([times.of('list').freshMs, here.all()]).toEqual([60_000, [adopted]]);
    expect(await ledger.adopt(adopted)).toBeNull();
  });

  test('one that has ended by its time may still be adopted; its place in the list stays', async () => {
    const { ledger, here, times } = await create();
    const old = aTrial({ untilMs: trial.startedAtMs });
    await ledger.begin(old);
    expect(await ledger.end(ended(old, 'ended'))).toBe(true);
    expect(await ledger.adopt(ended(old, 'adopted'))).not.toBeNull();
    expect([times.of('list').freshMs, here.all()]).toEqual([60_000, [ended(old, 'adopted')]]);
  });

  test.each(['stopped', 'rolled-back', 'adopted'] as const)(
    'one that was %s is not adopted any more',
    async (state) => {
      const { ledger, times } = await create();
      await ledger.begin(trial);
      await ledger.end(ended(trial, state));
      expect(await ledger.adopt(ended(trial, 'adopted'))).toBeNull();
      expect(times.of('list')).toEqual(DEFAULT_TIMES.list);
    },
  );

  test('one that has ended by its time is not adopted once another was begun', async () => {
    const { ledger, times } = await create();
    const old = aTrial({ untilMs: trial.startedAtMs });
    await ledger.begin(old);
    await ledger.end(ended(old, 'ended'));
    await ledger.begin(aTrial({ id: 'trial-2' }));
    expect(await ledger.adopt(ended(old, 'adopted'))).toBeNull();
    expect(times.of('list')).toEqual(DEFAULT_TIMES.list);
  });

  test('of a stop and an adoption at once, one is done', async () => {
    const { ledger, beside, times, heard } = await create();
    await ledger.begin(trial);
    await heard();
    const [isStopped, change] = await Promise.all([
      ledger.end(ended(trial, 'stopped')),
      beside.adopt(ended(trial, 'adopted')),
    ]);
    expect(isStopped).toBe(change === null);
    await ledger.refresh();
    expect(times.of('list').freshMs).toBe(isStopped ? 30_000 : 60_000);
  });

  test('the last twenty that are over are remembered, newest first', async () => {
    const { ledger, here } = await create();
    for (let number = 1; number <= 22; number++) {
      const each = aTrial({ id: `trial-${number}` });
      await ledger.begin(each);
      await ledger.end(ended(each, 'stopped', { atMs: trial.startedAtMs + number }));
    }
    expect(idsOf(here)).toEqual(Array.from({ length: 20 }, (_, index) => `trial-${22 - index}`));
  });
}
