import { expect, test } from 'vitest';
import { describeChange, parseBeat, parseChange } from '../../../src/keys/redis-feed-messages.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);

test('a change names its keys', () => {
  expect(parseChange(`- v1 ${describeChange([A, B])}`)).toEqual({ before: '-', after: 'v1', hashes: [A, B] });
});

test('a change of more than a thousand keys names none', () => {
  expect(describeChange(Array.from({ length: 1000 }, () => A))).toHaveLength(64_999);
  expect(parseChange(`v1 v2 ${describeChange(Array.from({ length: 1001 }, () => A))}`)).toEqual({
    before: 'v1',
    after: 'v2',
    hashes: null,
  });
});

test.each(['', 'v1', 'v1 v2', 'v1 v2 ', `v1 v2 ${A},`, `v1 v2 ${A.toUpperCase()}`, `v1  v2 ${A}`, `v1 v2 ${A} x`])(
  '"%s" is no change',
  (message) => {
    expect(parseChange(message)).toBeNull();
  },
);

test('a beat has a number and a version', () => {
  expect(parseBeat('17 -')).toEqual({ number: 17, version: '-' });
});

test.each(['', '17', 'x v1', '-1 v1', '17 v1 v2', '1234567890123456 v1'])('"%s" is no beat', (message) => {
  expect(parseBeat(message)).toBeNull();
});
