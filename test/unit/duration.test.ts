import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, parseDuration } from '../../src/duration.ts';

test.each([
  ['250ms', 250],
  ['30s', 30_000],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['7d', 604_800_000],
  ['0s', 0],
  ['0ms', 0],
  ['007s', 7000],
])('%s is %i ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each(['', '30', '1x', '-1s', '+1s', '1.5s', ' 1s', '1s ', '1 s', '1S', 's', '1e3s', '1s30ms', '1234567890123s'])(
  '"%s" is no duration',
  (text) => {
    expect(parseDuration(text)).toBeNull();
  },
);

test.each([
  [0, '0s'],
  [250, '250ms'],
  [90_000, '90s'],
  [3_600_000, '1h'],
  [86_400_000, '1d'],
  [604_800_000, '7d'],
])('%i ms is written %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('whatever is written as a duration reads back as the same time', () => {
  fc.assert(
    fc.property(fc.nat({ max: 999_999_999_999 }), (ms) => {
      expect(parseDuration(formatDuration(ms))).toBe(ms);
    }),
  );
});
