import { beforeEach, expect, test } from 'vitest';
import { StoreHealth } from '../../src/store-health.ts';
import type { StoreCall } from '../../src/upstream/http-store.ts';
import { ManualClock } from '../support/manual-clock.ts';

const START = Date.parse('2026-01-15T12:00:00.000Z');

let clock: ManualClock;
let health: StoreHealth;
beforeEach(() => {
  clock = new ManualClock(START);
  health = new StoreHealth(clock);
});

function call(outcome: StoreCall['outcome'], status: number | null, failure: string | null = null): void {
  health.note({ outcome, status, failure, resource: 'list', requestId: 'r-1' });
}

test('C7: nothing is known of a store that was not asked', () => {
  expect(health.now()).toEqual({ status: 'unknown', detail: 'not asked yet' });
  call('aborted', null);
  call('overloaded', null);
  expect(health.now().status).toBe('unknown');
});

test.each([
  ['found', 200],
  ['not-modified', 304],
  ['absent', 404],
  ['malformed', 200],
] as const)('C7: a call that ends as %s is one that the store answered', (outcome, status) => {
  call(outcome, status);
  expect(health.now()).toEqual({ status: 'ok', sinceMs: START, detail: `last call was answered: status ${status}` });
});

test.each([
  ['refused', 503, 'the store answered list with 503'],
  ['garbled', 200, 'the answer is not HTTP (HPE_INVALID_CONSTANT)'],
  ['timeout', null, 'the store gave no whole answer within 5000 ms'],
  ['unreachable', null, 'the connection to the store failed before the answer (ECONNREFUSED)'],
] as const)('a call that ends as %s (status %s) is told as what it was', (outcome, status, failure) => {
  call(outcome, status, failure);
  expect(health.now()).toEqual({
    status: 'degraded',
    sinceMs: START,
    detail: `last call failed: ${failure}`,
    fields: { resource: 'list', outcome, requestId: 'r-1' },
  });
});

test.each([401, 403])('with status %i the store may have forgotten the token', (status) => {
  const failure = `the store answered list with ${status}`;
  call('refused', status, failure);
  expect(health.now().detail).toBe(`last call failed: ${failure}: the store does not take the gateway's token`);
});

test('it is well again once no call has failed for 5 s, since the first that went well', () => {
  call('refused', 503, 'the store answered list with 503');
  clock.advance(1000);
  call('refused', 502, 'the store answered list with 502');
  clock.advance(1000);
  call('found', 200);
  clock.advance(3999);
  expect(health.now()).toMatchObject({
    status: 'degraded',
    sinceMs: START,
    detail: 'answers again, not for 5 s yet; the last call that failed: the store answered list with 502',
  });
  clock.advance(1);
  expect(health.now()).toMatchObject({ status: 'ok', sinceMs: START + 2000 });
});

test('one that fails now and then is failing all the time', () => {
  for (let second = 0; second < 20; second += 1) {
    call(second % 4 === 0 ? 'timeout' : 'found', second % 4 === 0 ? null : 200);
    expect(health.now()).toMatchObject({ status: 'degraded', sinceMs: START });
    clock.advance(1000);
  }
});

test('while calls are held back it is degraded, whatever the last call was', () => {
  const error = new Error('too many');
  call('refused', 503, 'the store answered list with 503');
  health.holdBack(error);
  expect(health.now()).toEqual({
    status: 'degraded',
    trouble: 'held-back',
    sinceMs: START,
    detail: 'calls are held back, but for one a second; last call failed: the store answered list with 503',
    fields: { err: error },
  });
  health.holdBack(null);
  expect(health.now().detail).toBe('last call failed: the store answered list with 503');
});
