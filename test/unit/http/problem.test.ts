import { expect, test } from 'vitest';
import { problemOf } from '../../../src/http/problem.ts';
import { asStoreError, StoreError } from '../../../src/upstream/store-error.ts';

test('a fault of the gateway is not called one of the store, also if it comes from a call to it', () => {
  for (const error of [new TypeError('x is not a function'), asStoreError(new TypeError('x is not a function'))]) {
    expect(problemOf(error)).toMatchObject({ code: 'internal_error', status: 500 });
  }
  expect(problemOf(new StoreError('timeout', 'late')).code).toBe('store_unavailable');
});
