import { expect, test } from 'vitest';
import { within } from '../../../src/keys/within.ts';

test('a promise that is quicker gives its value or its failure', async () => {
  expect(await within(Promise.resolve('value'), 60_000)).toBe('value');
  await expect(within(Promise.reject(new Error('failed')), 60_000)).rejects.toThrow('failed');
});

test('a promise that takes too long gives nothing', async () => {
  expect(await within(new Promise(() => undefined), 1)).toBeUndefined();
});
