/** Whether events follow one another in the journal, whether any are lost, and since when that is proven. */
import { expect, test } from 'vitest';
import { compareEnd, type End, follow, Proof } from '../../../src/journal/chain.ts';

const PLACE = { history: 'h', sequence: 5, word: 'five' };
const entry = (sequence: number, word: string, after: string) => ({ sequence, word, after, text: '' });

test.each([
  ['the next event', entry(6, 'six', 'five'), 'next'],
  ['one that was applied before', entry(3, 'any', 'other'), 'known'],
  ['the last one again', entry(5, 'five', 'four'), 'known'],
  ['another one in the place of the last', entry(5, 'another', 'four'), 'broken'],
  ['the next one of another past', entry(6, 'six', 'another'), 'broken'],
  ['one with a gap before it', entry(7, 'seven', 'six'), 'broken'],
])('%s', (_what, next, expected) => {
  expect(follow(PLACE, next)).toBe(expected);
});

const END: End = { history: 'h', last: '5 five', newest: { sequence: 5, word: 'five' } };

test.each<[string, Partial<End>, string]>([
  ['nothing new', {}, 'reached'],
  ['a newer event', { last: '6 six', newest: { sequence: 6, word: 'six' } }, 'further'],
  ['no stream', { newest: null }, 'lost'],
  ['no hash', { history: null, last: null }, 'lost'],
  ['another history', { history: 'other' }, 'lost'],
  ['an older state', { last: '4 four', newest: { sequence: 4, word: 'four' } }, 'lost'],
  ['another event in its place', { last: '5 another', newest: { sequence: 5, word: 'another' } }, 'lost'],
  ['a stream that is older than the hash', { newest: { sequence: 4, word: 'four' } }, 'lost'],
  ['a hash that is older than the stream', { last: '4 four' }, 'lost'],
])('the end of the journal shows %s', (_what, changed, expected) => {
  expect(compareEnd(PLACE, { ...END, ...changed })).toBe(expected);
});

test('a proof holds as of when its question was sent, and an answer that comes late takes nothing back', () => {
  const proof = new Proof();
  expect(proof.atMs).toBe(Number.NEGATIVE_INFINITY);
  proof.note(20);
  proof.note(10);
  expect(proof.atMs).toBe(20);
});
