import { inspect } from 'node:util';

import { expect, test } from 'vitest';

import { BodyTooLargeError } from '../../../src/upstream/bounded-body.ts';
import { storeErrorOf } from '../../../src/upstream/failures.ts';
import { StoreError } from '../../../src/upstream/store.ts';

/** An error as a library throws it: a code, and secrets all over it. */
function libraryError(code: unknown): Error {
  const options = { url: 'http://store.internal/secret', headers: { authorization: 'Bearer secret' } };
  return Object.assign(new Error('GET http://store.internal/secret failed', { cause: options }), { code, options });
}

test.each([
  ['ECONNREFUSED', null, 'the connection to the store failed before the answer (ECONNREFUSED)'],
  ['ENOTFOUND', null, 'the connection to the store failed before the answer (ENOTFOUND)'],
  [
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    null,
    'the connection to the store failed before the answer (DEPTH_ZERO_SELF_SIGNED_CERT)',
  ],
  ['ECONNRESET', 200, 'the connection to the store failed half-way through the answer (ECONNRESET)'],
  ['secret code', 200, 'the connection to the store failed half-way through the answer (no code)'],
  [17, null, 'the connection to the store failed before the answer (no code)'],
])('%s of a connection is unreachable', (code, status, message) => {
  expect(storeErrorOf(libraryError(code), status)).toMatchObject({ kind: 'unreachable', status, message });
});

test.each([
  ['HPE_INVALID_CONSTANT', 'the answer is not HTTP (HPE_INVALID_CONSTANT)'],
  ['Z_DATA_ERROR', 'the body cannot be decoded (Z_DATA_ERROR)'],
])('%s of a parser is garbled', (code, message) => {
  expect(storeErrorOf(libraryError(code), 200)).toMatchObject({ kind: 'garbled', status: 200, message });
});

test('a body over the cap is garbled', () => {
  expect(storeErrorOf(new BodyTooLargeError('the body is larger than 5 bytes'), 200)).toMatchObject({
    kind: 'garbled',
    message: 'the body is larger than 5 bytes',
  });
});

test.each([undefined, null, 'secret', {}])('%s is unreachable too', (error) => {
  expect(storeErrorOf(error, null)).toMatchObject({
    kind: 'unreachable',
    message: 'the connection to the store failed before the answer (no code)',
  });
});

test('a StoreError stays itself', () => {
  const error = new StoreError('timeout', 'too late');
  expect(storeErrorOf(error, 200)).toBe(error);
});

test("K2: nothing of a library's error but its code is passed on", () => {
  const error = storeErrorOf(libraryError('ECONNRESET'), null);
  expect(error.cause).toBeUndefined();
  expect(inspect(error, { depth: null, showHidden: true })).not.toMatch(/secret|store\.internal/);
});
