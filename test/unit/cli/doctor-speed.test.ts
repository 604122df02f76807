import { expect, test } from 'vitest';
import { speedFindings } from '../../../src/cli/doctor/store-reader.ts';

const found = (slow: number): unknown =>
  speedFindings([...Array.from({ length: 50 - slow }, () => 100), ...Array.from({ length: slow }, () => 1500)], 1000);

test('fifty calls of which a few are slow are no warning: so few cannot show what 99 of 100 take', () => {
  expect(found(0)).toEqual([]);
  const message =
    '5 of 50 calls took longer than objectives.missP99 (1s): the median is 0.10 s, the slowest 1.50 s; of so few calls, chance makes some slow';
  expect(found(5)).toMatchObject([{ name: 'upstream', status: 'ok', message }]);
  expect(found(6)).toMatchObject([{ name: 'upstream', status: 'warn' }]);
});
