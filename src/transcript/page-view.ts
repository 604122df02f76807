/** What pages are cut from: the turns' texts, or the raw slices of the body. */
import { at } from './columns.ts';
import type { ParsedTranscript } from './types.ts';

/** Segments as they stand one after another in a string: every page's text is one range of it. */
export interface PageView {
  readonly source: string;
  /** Segment i is `source.slice(starts[i], starts[i + 1] - gap)`. */
  readonly starts: Int32Array;
  readonly count: number;
  /** How many units part two segments: one line feed between texts, nothing between raw slices. */
  readonly gap: 0 | 1;
  /** How many surrogate pairs stand before each start; null where the source has none at all. */
  readonly pairsBefore: Int32Array | null;
}

/** The view of a transcript that a request reads. Costs one pass over the text. */
export function viewOf(parsed: ParsedTranscript, raw: boolean): PageView {
  const source = raw ? parsed.body : parsed.text;
  const starts = raw ? parsed.sliceStarts : parsed.textStarts;
  const gap = raw ? 0 : 1;
  return { source, starts, count: starts.length - 1, gap, pairsBefore: countPairs(source, starts) };
}

/** Where a segment's text ends in the source. */
export function endOf(view: PageView, index: number): number {
  return at(view.starts, index + 1) - view.gap;
}

/** Code points of the segments from `first` to before `end`, with one gap for each of them. */
export function pointsBetween(view: PageView, first: number, end: number): number {
  const units = at(view.starts, end) - at(view.starts, first);
  if (view.pairsBefore === null) return units;
  return units - (at(view.pairsBefore, end) - at(view.pairsBefore, first));
}

/** Where `points` code points after `from` end, in a source that has as many. */
export function advance(view: PageView, from: number, points: number): number {
  if (view.pairsBefore === null) return from + points;
  let position = from;
  for (let left = points; left > 0; left -= 1) position += isHighSurrogate(view.source.charCodeAt(position)) ? 2 : 1;
  return position;
}

/** Code points between two positions, or `cap + 1` where there are more than `cap`; reads at most `2 * cap` units. */
export function pointsUpTo(view: PageView, from: number, end: number, cap: number): number {
  const units = end - from;
  if (view.pairsBefore === null || units <= 0) return Math.min(units, cap + 1);
  if (units > 2 * cap) return cap + 1;
  let points = units;
  for (let i = from; i < end; i += 1) if (isHighSurrogate(view.source.charCodeAt(i))) points -= 1;
  return Math.min(points, cap + 1);
}

function countPairs(source: string, starts: Int32Array): Int32Array | null {
  if (!/[\ud800-\udbff]/.test(source)) return null;
  const pairsBefore = new Int32Array(starts.length);
  let pairs = 0;
  let position = 0;
  for (const [i, start] of starts.entries()) {
    for (; position < start; position += 1) if (isHighSurrogate(source.charCodeAt(position))) pairs += 1;
    pairsBefore[i] = pairs;
  }
  return pairsBefore;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
