import { expect, test } from 'vitest';
import { createPassThrough } from '../../../src/cache/pass-through.ts';
import { CONTEXT, recordOf } from '../../support/cache-rig.ts';
import { CountingStore, storeFailure } from '../../support/counting-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { anEvaluation } from '../../support/records.ts';

test('without a cache every read is a call and a miss, and nothing is stored', async () => {
  const store = new CountingStore();
  const reader = createPassThrough(store, new ManualClock());
  for (let round = 0; round < 2; round++) {
    const read = await reader.transcript('ev_1', CONTEXT);
    expect(read).toMatchObject({ outcome: 'miss', tier: null, ttlMs: 0, ageMs: 0, stored: false });
    expect(recordOf(read).evaluationId).toBe('ev_1');
  }
  expect(store.count()).toBe(2);
});

test('C4: without a cache, too, an answer for another id is none', async () => {
  const store = new CountingStore();
  store.evaluations.set('ev_1', anEvaluation({ _id: 'other' }));
  const reader = createPassThrough(store, new ManualClock());
  await expect(reader.evaluation('ev_1', CONTEXT)).rejects.toMatchObject({ kind: 'malformed' });
});

test('without a cache a failure is passed on', async () => {
  const store = new CountingStore();
  store.failure = storeFailure();
  await expect(createPassThrough(store, new ManualClock()).rubric('sc_1', CONTEXT)).rejects.toBe(store.failure);
});
