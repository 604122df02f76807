/** A walk through a list that changes meanwhile: nothing is lost, nothing comes twice, and places are found with few reads. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EvaluationPage, EvaluationRecord } from '../../../src/domain/records.ts';
import { type Place, readCursor, walk, WINDOW_SIZE, writeCursor } from '../../../src/http/walk.ts';
import { anEvaluation } from '../../support/records.ts';

/** The store's list: newest first. Reads may be answered from a copy that is a few changes old. */
class ChangingList {
  readonly ids = new Set<string>();
  reads = 0;
  readonly #list: EvaluationRecord[];
  readonly #copies = new Map<number, EvaluationPage>();
  readonly #isDamaged: (number: number) => boolean;
  #newest = 0;

  /** `isDamaged`: which records are left out of the windows, by their number. */
  constructor(count: number, isDamaged: (number: number) => boolean = () => false) {
    this.#isDamaged = isDamaged;
    this.#list = Array.from({ length: count }, () => this.#made()).toReversed();
    for (const record of this.#list) if (!this.#isLeftOut(record)) this.ids.add(record['_id']);
  }

  #isLeftOut({ _id: id }: EvaluationRecord): boolean {
    return this.#isDamaged(Number(id.slice(3)));
  }

  addAbove(): void {
    this.#list.unshift(this.#made());
  }

  /** Some are of the same moment. */
  #made(): EvaluationRecord {
    this.#newest += 1;
    const createdAtMs = 1000 * Math.floor(this.#newest / 3);
    return { ...anEvaluation(), _id: `ev_${String(this.#newest).padStart(6, '0')}`, createdAtMs };
  }

  removeAt(index: number): void {
    const [removed] = this.#list.splice(index % Math.max(1, this.#list.length), 1);
    if (removed !== undefined) this.ids.delete(removed['_id']);
  }

  window(offset: number): EvaluationPage {
    this.reads += 1;
    const sent = this.#list.slice(offset, offset + WINDOW_SIZE);
    const items = sent.filter((record) => !this.#isLeftOut(record));
    const sentIds = sent.map((record) => record['_id']);
    return { items, total: this.#list.length, omitted: sent.length - items.length, sentIds };
  }

  /** The copy of an earlier read, if there is one. */
  copy(offset: number): EvaluationPage {
    const copy = this.#copies.get(offset) ?? this.window(offset);
    this.#copies.set(offset, copy);
    return copy;
  }
}

const changes = fc.array(
  fc.record({ added: fc.nat(30), removed: fc.array(fc.nat(2000), { maxLength: 8 }), isFromCopies: fc.boolean() }),
  {
    maxLength: 60,
  },
);

/** The copies of two neighbouring windows are from before and after so many additions that no window between them meets both. */
const WINDOWS_APART: [number, number, typeof changes extends fc.Arbitrary<infer T> ? T : never] = [
  471,
  74,
  [
    { added: 0, removed: [], isFromCopies: false },
    { added: 26, removed: [], isFromCopies: true },
    { added: 20, removed: [], isFromCopies: false },
    { added: 30, removed: [], isFromCopies: true },
  ],
];

test('each record that stays comes once, in order, whatever is added above or removed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(700), fc.integer({ min: 1, max: 100 }), changes, async (count, size, steps) => {
      const list = new ChangingList(count);
      const seen: string[] = [];
      let place: Place | null = null;
      for (let step = 0; step === 0 || place !== null; step += 1) {
        const { added = 0, removed = [], isFromCopies = false } = steps[step] ?? {};
        for (let number = 0; number < added; number += 1) list.addAbove();
        for (const index of removed) list.removeAt(index);
        const read = async (offset: number): Promise<EvaluationPage> =>
          isFromCopies ? list.copy(offset) : list.window(offset);
        const page = await walk(place, size, read);
        expect(page.items.length).toBeLessThanOrEqual(size);
        expect(page.next === null || page.items.length === size).toBe(true);
        seen.push(...page.items.map((item) => item['_id']));
        place = page.next === null ? null : readCursor(writeCursor(page.next));
      }
      expect(seen).toEqual([...new Set(seen)].toSorted().toReversed());
      const missed = [...list.ids].filter((id) => !seen.includes(id));
      expect(missed).toEqual([]);
    }),
    { examples: [WINDOWS_APART] },
  );
});

/** From which number on so many records are damaged. */
const damages = fc.array(fc.record({ from: fc.nat(900), count: fc.nat(350) }), { maxLength: 4 });

test('records that are left out, however many follow one another, stand in the way of none', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(900),
      fc.integer({ min: 1, max: 100 }),
      damages,
      changes,
      async (count, size, runs, steps) => {
        const list = new ChangingList(count, (number) =>
          runs.some((run) => number >= run.from && number < run.from + run.count),
        );
        const seen: string[] = [];
        let place: Place | null = null;
        for (let step = 0; step === 0 || place !== null; step += 1) {
          const { added = 0 } = steps[step] ?? {};
          for (let number = 0; number < added; number += 1) list.addAbove();
          const page = await walk(place, size, async (offset) => list.window(offset));
          expect(page.next === null || page.items.length === size).toBe(true);
          seen.push(...page.items.map((item) => item['_id']));
          place = page.next;
        }
        expect(seen).toEqual([...new Set(seen)].toSorted().toReversed());
        expect([...list.ids].filter((id) => !seen.includes(id))).toEqual([]);
      },
    ),
  );
});

test.each([
  ['at the top', 0, 90],
  ['in the middle', 130, 90],
  ['at the top, more than a window', 0, 250],
])('records without an id stand in the way of none: %s', async (_, from, count) => {
  const list = Array.from({ length: 700 }, (_one, number) => ({
    ...anEvaluation(),
    _id: `ev_${String(9999 - number)}`,
    createdAtMs: 1_000_000 - number,
  }));
  const isNameless = (number: number): boolean => number >= from && number < from + count;
  const read = async (offset: number): Promise<EvaluationPage> => {
    const sent = list.slice(offset, offset + WINDOW_SIZE);
    const items = sent.filter((_one, index) => !isNameless(offset + index));
    const sentIds = sent.map(({ _id }, index) => (isNameless(offset + index) ? null : _id));
    return { items, total: list.length, omitted: sent.length - items.length, sentIds };
  };
  const seen: string[] = [];
  let place: Place | null = null;
  for (let step = 0; step === 0 || place !== null; step += 1) {
    const page = await walk(place, 40, read);
    seen.push(...page.items.map((item) => item['_id']));
    place = page.next;
  }
  expect(seen).toEqual(list.filter((_one, number) => !isNameless(number)).map((one) => one['_id']));
});

test('a page ends before more damaged records than it reads past, and the next one fails', async () => {
  const list = new ChangingList(12_000, (number) => number <= 11_990);
  const read = async (offset: number): Promise<EvaluationPage> => list.window(offset);
  const first = await walk(null, 50, read);
  expect([first.items.length, first.next === null]).toEqual([10, false]);
  await expect(walk(first.next, 50, read)).rejects.toThrow('malformed in a row');
  const shorter = new ChangingList(9000, (number) => number > 5 && number <= 8990);
  const page = await walk(null, 50, async (offset) => shorter.window(offset));
  expect([page.items.length, page.next]).toEqual([15, null]);
});

describe('a place is found', () => {
  test('where it was with one read', async () => {
    const list = new ChangingList(10_000);
    const place = await placeAt(list, 5000);
    await walk(place, 20, async (offset) => list.window(offset));
    expect(list.reads).toBe(1);
  });

  test.each([
    [250, 0],
    [1000, 900],
    [10_000, 9000],
    [40_000, 30_000],
  ])('anywhere in %d records with at most ⌈log2(total / 100)⌉ + 1 reads', async (total, moved) => {
    const list = new ChangingList(total);
    for (let index = 0; index < total - 50; index += Math.ceil(total / 40)) {
      const place = await placeAt(list, index);
      list.reads = 0;
      // One record is asked for, so that no read is for filling the page.
      const wrong = { ...place, offset: (place.offset + moved) % total };
      const page = await walk(wrong, 1, async (offset) => list.window(offset));
      expect(page.offset).toBe(index + 1);
      expect(list.reads).toBeLessThanOrEqual(Math.ceil(Math.log2(total / 100)) + 1);
    }
  });
});

/** The place behind the record at that index. */
async function placeAt(list: ChangingList, index: number): Promise<Place> {
  const record = list.window(index).items[0];
  if (record === undefined) throw new Error('there is no such record');
  list.reads = 0;
  return { createdAtMs: record.createdAtMs, id: record['_id'], offset: index + 1 };
}

test('a list that becomes shorter than the place is read on, although the window before the place is an old copy', async () => {
  const list = new ChangingList(120);
  const first = await walk(null, 100, async (offset) => list.copy(offset));
  for (let removed = 0; removed < 75; removed += 1) list.removeAt(0);
  const read = async (offset: number): Promise<EvaluationPage> => (offset === 0 ? list.copy(0) : list.window(offset));
  const { items, next } = await walk(first.next, 100, read);
  expect([items.length, next]).toEqual([20, null]);
});

test('a list that ends is read to its end, and an empty one at once', async () => {
  const list = new ChangingList(0);
  expect(await walk(null, 50, async (offset) => list.window(offset))).toMatchObject({
    items: [],
    next: null,
    total: 0,
  });
  expect(list.reads).toBe(1);
});

test.each([
  'x',
  'W10',
  '',
  Buffer.from('["1","a",0]').toString('base64url'),
  Buffer.from('[1,"a b",0]').toString('base64url'),
])('%j is no cursor', (text) => expect(readCursor(text)).toBeNull());
