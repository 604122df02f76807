import { expect, test } from 'vitest';

import { retryAfterMsOf } from '../../../src/upstream/retry-after.ts';

const NOW_MS = Date.UTC(2026, 10, 3, 12, 0, 0);

test.each([
  ['0', 0],
  ['1', 1000],
  [' 120 ', 120_000],
  ['3600', 3_600_000],
  ['3601', 3_600_000],
  ['999999999999999', 3_600_000],
  ['Tue, 03 Nov 2026 12:00:30 GMT', 30_000],
  ['Tue, 03 Nov 2026 11:59:00 GMT', 0],
  ['Wed, 04 Nov 2026 12:00:00 GMT', 3_600_000],
])('%j asks to wait %i ms', (header, expected) => {
  expect(retryAfterMsOf(header, NOW_MS)).toBe(expected);
});

test.each([
  undefined,
  '',
  '-1',
  '1.5',
  '1e3',
  '0x10',
  'soon',
  '2026-11-03T12:00:30Z',
  'Tue, 99 Nov 2026 12:00:30 GMT',
  '5, 6',
])('%j says nothing', (header) => {
  expect(retryAfterMsOf(header, NOW_MS)).toBeNull();
});
