import { expect, test } from 'vitest';
import { parseDurationMs } from '../../../src/admin/duration.ts';

test.each([
  ['250ms', 250],
  ['0s', 0],
  ['30s', 30_000],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['7d', 604_800_000],
  ['999999999999ms', 999_999_999_999],
])('%s is %d ms', (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms);
});

test.each([
  '',
  '0',
  '5',
  's',
  '-1s',
  '+1s',
  '1.5h',
  '1 h',
  '1H',
  '1w',
  '1constructor',
  '1h\n',
  '1h30m',
  '1000000000000s',
])('%j is no duration', (text) => {
  expect(parseDurationMs(text)).toBeNull();
});
