/**
 * A walk through a list that changes meanwhile: each page holds the calls that follow the last one of the page before,
 * whatever was added above it or removed (Q3: `after`).
 *
 * The store only has offsets. So a walk reads *windows*: 100 consecutive records, as the store had them at one moment. A
 * window continues a place if its first record does not lie behind that place: all of its records that do lie behind follow
 * without a gap. Neighbouring windows share one record, so that each continues the one before. They begin at the same offsets
 * for all readers of a list, who therefore share its copies.
 *
 * A record that is left out (S4: it is malformed) has no place that could be trusted. If a window ends with such records, the
 * next one continues it if both hold a record of the same id. A window that has no id behind its first record is continued by
 * the one a stride further that begins with a record without an id.
 *
 * How it fails: windows of different moments may not meet, if many records were added or removed in between. Then one more
 * window across the seam is read; then windows that begin at other offsets, of which there are no copies from other moments; and
 * after three attempts the read fails: a page never has a gap. If so many records follow one another that are left out, the page
 * ends before them; it fails if it has none before them.
 */
import { z } from 'zod';
import { ID_PATTERN } from '../domain/vocabulary.ts';
import type { EvaluationPage, EvaluationRecord } from '../domain/records.ts';
import { garbled } from '../upstream/store-error.ts';

export const WINDOW_SIZE = 100;
const STRIDE = WINDOW_SIZE - 1;
const MAX_ATTEMPTS = 3;
/** A page is made of so many windows at most, whatever the store sends. */
const MAX_WINDOWS = 100;
/** How much earlier the windows of each attempt begin than those of the one before. */
const SHIFT = STRIDE / MAX_ATTEMPTS;

/** A place in a list: just behind a record, which may be gone. */
export interface Place {
  readonly createdAtMs: number;
  readonly id: string;
  /** How many records stood before the place when it was made: where it is looked for first. */
  readonly offset: number;
}

const placeSchema = z.tuple([
  z.int(),
  z.string().regex(ID_PATTERN),
  z
    .int()
    .nonnegative()
    .max(2 ** 30),
]);

/** For a link: consumers take it as it is. */
export function writeCursor({ createdAtMs, id, offset }: Place): string {
  return Buffer.from(JSON.stringify([createdAtMs, id, offset])).toString('base64url');
}

/** Null for what is no cursor. */
export function readCursor(cursor: string): Place | null {
  const text = Buffer.from(cursor, 'base64url').toString();
  try {
    const [createdAtMs, id, offset] = placeSchema.parse(JSON.parse(text));
    return { createdAtMs, id, offset };
  } catch {
    return null;
  }
}

/** Where the first window for a place begins. Null: the beginning of the list. */
export function firstOffset(place: Place | null): number {
  return place === null ? 0 : STRIDE * Math.max(0, Math.floor((place.offset - 1) / STRIDE));
}

/** Reads the window at an offset. */
export type ReadWindow = (offset: number) => Promise<EvaluationPage>;

export interface WalkedPage {
  readonly items: readonly EvaluationRecord[];
  /** How many records stand before the first item. */
  readonly offset: number;
  readonly total: number;
  /** How many records the store sent in these windows that are not served. */
  readonly omitted: number;
  /** The place behind the last item; null at the end of the list. */
  readonly next: Place | null;
}

/** Where a place is: the window that continues it, and the first of its records behind the place. */
interface Found {
  readonly offset: number;
  readonly window: EvaluationPage;
  readonly at: number;
}

/**
 * The page of at most `size` records behind a place. Rejects with what `readWindow` rejects with, and if the list changes too fast.
 */
export async function walk(place: Place | null, size: number, readWindow: ReadWindow): Promise<WalkedPage> {
  let found = place === null ? { offset: 0, window: await readWindow(0), at: 0 } : await find(place, readWindow);
  const { total } = found.window;
  let { omitted } = found.window;
  let offset = 0;
  const items: EvaluationRecord[] = [];
  for (let windows = 1; ; windows += 1) {
    const taken = found.window.items.slice(found.at, found.at + size - items.length);
    if (items.length === 0) offset = found.offset + found.at;
    items.push(...taken);
    const behind = found.offset + found.at + taken.length;
    const isWindowRead = found.at + taken.length >= found.window.items.length;
    const isEnd = isWindowRead && found.offset + WINDOW_SIZE >= found.window.total;
    const last = items.at(-1) ?? place;
    const next = last === null ? null : placeBehind(last, isWindowRead ? found.offset + WINDOW_SIZE : behind);
    const isFull = items.length === size || (windows === MAX_WINDOWS && items.length > 0);
    if (isEnd || isFull) return { items, offset, total, omitted, next: isEnd ? null : next };
    if (found.window.items.length + found.window.omitted === 0) throw garbled('the list is empty before its end');
    if (windows === MAX_WINDOWS) throw garbled(`${MAX_WINDOWS * STRIDE} records of the list are malformed in a row`);
    found = await follow(found, next, readWindow);
    omitted += found.window.omitted;
  }
}

function placeBehind(record: Place | EvaluationRecord, offset: number): Place {
  const id = 'id' in record ? record.id : record['_id'];
  return { createdAtMs: record.createdAtMs, id, offset };
}

/** The window behind one that was read to its end. `place`: behind its last record that is served; null if there was none yet. */
async function follow(read: Found, place: Place | null, readWindow: ReadWindow): Promise<Found> {
  const offset = read.offset + STRIDE;
  if (endsWithOmitted(read.window)) return cross(read, place, readWindow);
  return place === null ? { offset, window: await readWindow(offset), at: 0 } : find(place, readWindow);
}

/** Whether the last record that the store sent is left out. */
function endsWithOmitted({ items, omitted, sentIds }: EvaluationPage): boolean {
  return omitted > 0 && sentIds.length > 0 && sentIds.at(-1) !== items.at(-1)?.['_id'];
}

/** The window behind one whose last records are left out: it shares a record with that window. */
async function cross({ offset, window }: Found, place: Place | null, readWindow: ReadWindow): Promise<Found> {
  const lastNamed = window.sentIds.findLastIndex((id) => id !== null);
  const steps = lastNamed > 0 ? [STRIDE, Math.min(WINDOW_SIZE / 2, lastNamed)] : [STRIDE];
  for (const step of steps) {
    const following = await readWindow(offset + step);
    const isShared = following.sentIds.some((id) => id !== null && window.sentIds.includes(id));
    // Records without an id all look the same.
    if (!isShared && (lastNamed > 0 || following.sentIds[0] !== null)) continue;
    return { offset: offset + step, window: following, at: place === null ? 0 : indexBehind(following, place) };
  }
  throw changesTooFast();
}

function changesTooFast(): Error {
  return garbled('the list changes faster than it can be read');
}

/**
 * The window that continues a place: first the one where it was, then its neighbour, then by halves. For a list of `total`
 * records that is at most ⌈log2(total / 100)⌉ + 1 windows, if the list does not change meanwhile.
 */
async function find(place: Place, readWindow: ReadWindow): Promise<Found> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const found = await search(place, SHIFT * attempt, readWindow);
    if (found !== null) return found;
  }
  throw changesTooFast();
}

/** Null if windows of different moments do not meet at the place. `shift`: by so much earlier than at a stride windows begin. */
async function search(place: Place, shift: number, readWindow: ReadWindow): Promise<Found | null> {
  const offsetOf = (number: number): number => Math.max(0, number * STRIDE - shift);
  let number = firstOffset(place) / STRIDE;
  let low = 0;
  let high = Infinity;
  /** The window before `low`, whose records are all before the place. */
  let early: Found | null = null;
  for (let calls = 1; ; calls++) {
    const window = await readWindow(offsetOf(number));
    const lastNumber = Math.max(0, Math.ceil((window.total + shift - WINDOW_SIZE) / STRIDE));
    const at = indexBehind(window, place);
    if (at === 0 && number > 0) high = number - 1;
    else if (at < window.items.length || number >= lastNumber) return { offset: offsetOf(number), window, at };
    else {
      early = { offset: offsetOf(number), window, at };
      low = number + 1;
    }
    high = Math.min(high, lastNumber);
    if (low > high && early !== null && endsWithOmitted(early.window)) return early;
    if (low > high) return meet(place, offsetOf(low), readWindow);
    const neighbour = at === 0 ? high : low;
    const allowed = Math.ceil(Math.log2(Math.max(1, window.total / WINDOW_SIZE))) + 1;
    const isNeighbourAllowed = calls === 1 && calls + 1 + callsFor(high - low) <= allowed;
    number = isNeighbourAllowed ? neighbour : Math.floor((low + high) / 2);
  }
}

/** How many windows are read at most to find a place in so many by halves. */
function callsFor(windows: number): number {
  return windows <= 0 ? 0 : Math.floor(Math.log2(windows)) + 1;
}

/** The place lies between two windows that do not meet: a third one, across the seam between them, may continue it. */
async function meet(place: Place, seam: number, readWindow: ReadWindow): Promise<Found | null> {
  const offset = Math.max(0, seam - WINDOW_SIZE / 2);
  const window = await readWindow(offset);
  const at = indexBehind(window, place);
  // A window behind the end of a list that has become shorter does not show what is before it.
  const isContinued = at > 0 || offset === 0 || window.total === 0;
  return isContinued && (at < window.items.length || offset + WINDOW_SIZE >= window.total)
    ? { offset, window, at }
    : null;
}

/** The index of the first record behind the place; the number of records if there is none. */
function indexBehind({ items }: EvaluationPage, place: Place): number {
  const index = items.findIndex((record) => isBehind(record, place));
  return index === -1 ? items.length : index;
}

/** By the order of lists (Q5: newest first, then by id, descending). */
function isBehind(record: EvaluationRecord, place: Place): boolean {
  if (record.createdAtMs !== place.createdAtMs) return record.createdAtMs < place.createdAtMs;
  return record['_id'] < place.id;
}
