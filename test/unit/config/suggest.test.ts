import { expect, test } from 'vitest';
import { nearest } from '../../../src/config/suggest.ts';

const NAMES = ['server', 'admin', 'redis', 'rateLimit'];

test.each([
  ['sever', 'server'],
  ['ratelimit', 'rateLimit'],
  ['rate_limit', 'rateLimit'],
  ['Redis', 'redis'],
  ['reids', 'redis'],
])('%s was meant to be %s', (word, meant) => {
  expect(nearest(word, NAMES)).toBe(meant);
});

test('nothing is guessed for a word that is far from all', () => {
  expect(nearest('telemetry', NAMES)).toBeNull();
  expect(nearest('x', [])).toBeNull();
});
