/** Issue of custody: a loss of keys is told from how many there are. */
import { expect, test } from 'vitest';
import type { KeyLoss } from '../../../src/keys/key.ts';
import { KeyCensus } from '../../../src/keys/key-census.ts';

const lossOf = (keys: number, left: number, isAcknowledged = false, atMs = 7): KeyLoss => ({
  atMs,
  keys,
  left,
  created: 0,
  isAcknowledged,
});
const createdSince = (created: number, keys: number, left: number): KeyLoss => ({ ...lossOf(keys, left), created });

type Count = readonly [known: number, noted: KeyLoss | null];

/** The loss after the last count, and what is to be noted then. */
function after(counts: readonly Count[], remembered = 0): readonly [KeyLoss | null, KeyLoss | null | undefined] {
  const census = new KeyCensus();
  census.remember(remembered);
  let note: KeyLoss | null | undefined;
  for (const [known, noted] of counts) note = census.count(known, noted, 7);
  return [census.loss, note];
}

test.each<[string, readonly Count[], KeyLoss | null, KeyLoss | null | undefined]>([
  ['none that anybody knows of', [[0, null]], null, undefined],
  [
    'more keys than before',
    [
      [1, null],
      [2, null],
    ],
    null,
    undefined,
  ],
  [
    'all keys are gone',
    [
      [2, null],
      [0, null],
    ],
    lossOf(2, 0),
    lossOf(2, 0),
  ],
  [
    'some keys are gone',
    [
      [5, null],
      [3, null],
    ],
    lossOf(5, 3),
    lossOf(5, 3),
  ],
  ['a loss that another process has noted', [[0, lossOf(4, 0, false, 3)]], lossOf(4, 0, false, 3), undefined],
  [
    'a loss that another process has noted, which remembers fewer keys',
    [
      [5, null],
      [1, createdSince(1, 3, 0)],
    ],
    createdSince(1, 4, 0),
    createdSince(1, 4, 0),
  ],
  [
    'the note is lost too',
    [
      [2, null],
      [0, null],
      [0, null],
    ],
    lossOf(2, 0),
    lossOf(2, 0),
  ],
  [
    'all are back',
    [
      [5, null],
      [3, null],
      [5, lossOf(5, 3)],
    ],
    null,
    null,
  ],
  [
    'one is still missing',
    [
      [5, null],
      [3, null],
      [4, lossOf(5, 3)],
    ],
    lossOf(5, 3),
    undefined,
  ],
  [
    'as many are created as were lost of all',
    [
      [2, null],
      [0, null],
      [2, createdSince(2, 2, 0)],
    ],
    createdSince(2, 2, 0),
    undefined,
  ],
  [
    'as many are created as were lost of some, in the eyes of a later process',
    [[5, createdSince(2, 5, 3)]],
    createdSince(2, 5, 3),
    undefined,
  ],
  [
    'all are back beside those that were created',
    [
      [2, null],
      [0, null],
      [1, createdSince(1, 2, 0)],
      [3, createdSince(1, 2, 0)],
    ],
    null,
    null,
  ],
  [
    'those that were created are lost too, with the note',
    [
      [2, null],
      [0, null],
      [1, createdSince(1, 2, 0)],
      [0, null],
    ],
    lossOf(3, 0),
    lossOf(3, 0),
  ],
  [
    'all are back, and another process was quicker to notice',
    [
      [2, null],
      [0, null],
      [2, null],
    ],
    null,
    undefined,
  ],
  [
    'acknowledged',
    [
      [2, null],
      [0, null],
      [0, lossOf(2, 0, true)],
    ],
    lossOf(2, 0, true),
    undefined,
  ],
  [
    'acknowledged, and then a new key',
    [
      [2, null],
      [0, null],
      [1, lossOf(2, 0, true)],
    ],
    lossOf(2, 0, true),
    undefined,
  ],
  [
    'some acknowledged, and then a new key',
    [
      [5, null],
      [3, null],
      [4, lossOf(5, 3, true)],
    ],
    lossOf(5, 3, true),
    undefined,
  ],
  [
    'another loss after one that is acknowledged',
    [
      [5, null],
      [3, null],
      [3, lossOf(5, 3, true)],
      [1, lossOf(5, 3, true)],
    ],
    lossOf(3, 1),
    lossOf(3, 1),
  ],
])('%s', (_what, counts, loss, note) => {
  expect(after(counts)).toEqual([loss, note]);
});

test('a loss that only the witness remembers', () => {
  expect(after([[0, null]], 6)).toEqual([lossOf(6, 0), lossOf(6, 0)]);
  expect(after([[2, null]], 6)).toEqual([lossOf(6, 2), lossOf(6, 2)]);
});
