/** The source that pages are cut from: the turns' texts or the raw slices of the body. Every page's text is one range of it. */
import { Column } from './column.ts';
import { Graphemes } from './graphemes.ts';
import { Pace, type Slices } from './slices.ts';
import type { ParsedTranscript } from './turn-writer.ts';

/** Segment i is `source.slice(startOf(i), endOf(i))`. */
export class PageView {
  readonly source: string;
  readonly count: number;
  /** How many units part two segments: one line feed between texts, nothing between raw slices. */
  readonly gap: 0 | 1;
  /** Code points of the longest segment. */
  longest = 0;
  readonly #starts: Column;
  /** How many surrogate pairs stand before each start; null if the source has none at all. */
  #pairsBefore: Column | null = null;
  #graphemes: Graphemes | null = null;

  private constructor(parsed: ParsedTranscript, raw: boolean) {
    this.source = raw ? parsed.body : parsed.text;
    this.gap = raw ? 0 : 1;
    this.#starts = raw ? parsed.sliceStarts : parsed.textStarts;
    this.count = this.#starts.length - 1;
  }

  /** Costs one pass over the text. */
  static *of(parsed: ParsedTranscript, raw: boolean): Slices<PageView> {
    const view = new PageView(parsed, raw);
    if (/[\ud800-\udbff]/.test(view.source)) view.#pairsBefore = yield* countPairs(view.source, view.#starts);
    const pace = new Pace();
    for (let i = 0; i < view.count; i += 1) {
      if (pace.isDue(i)) yield;
      view.longest = Math.max(view.longest, view.pointsBetween(i, i + 1) - view.gap);
    }
    return view;
  }

  /** Beside the source and the starts. */
  get weightBytes(): number {
    return (this.#pairsBefore?.byteLength ?? 0) + (this.#graphemes?.weightBytes ?? 0);
  }

  /** Finds the grapheme boundaries, before a segment is first cut. */
  *prepareCuts(): Slices<void> {
    this.#graphemes ??= yield* Graphemes.of(this.source);
  }

  /** Where segments may be cut. Throws an Error if `prepareCuts` has not run. */
  get graphemes(): Graphemes {
    if (this.#graphemes === null) throw new Error('the cuts of the view are not prepared');
    return this.#graphemes;
  }

  startOf(segment: number): number {
    return this.#starts.at(segment);
  }

  endOf(segment: number): number {
    return this.#starts.at(segment + 1) - this.gap;
  }

  /** Code points of the segments from `first` to before `end`, with one gap for each of them. */
  pointsBetween(first: number, end: number): number {
    const units = this.#starts.at(end) - this.#starts.at(first);
    if (this.#pairsBefore === null) return units;
    return units - (this.#pairsBefore.at(end) - this.#pairsBefore.at(first));
  }

  /** Where `points` code points after `from` end, in a source that has as many. */
  advance(from: number, points: number): number {
    if (this.#pairsBefore === null) return from + points;
    let position = from;
    for (let left = points; left > 0; left -= 1) position += isHighSurrogate(this.source.charCodeAt(position)) ? 2 : 1;
    return position;
  }

  /** Code points between two positions, or `cap + 1` if there are more than `cap`; reads at most `2 * cap` units. */
  pointsUpTo(from: number, end: number, cap: number): number {
    const units = end - from;
    if (this.#pairsBefore === null || units <= 0) return Math.min(units, cap + 1);
    if (units > 2 * cap) return cap + 1;
    let points = units;
    for (let i = from; i < end; i += 1) if (isHighSurrogate(this.source.charCodeAt(i))) points -= 1;
    return Math.min(points, cap + 1);
  }
}

function* countPairs(source: string, starts: Column): Slices<Column> {
  const pairsBefore = new Column();
  const pace = new Pace();
  let [pairs, position] = [0, 0];
  for (let segment = 0; segment < starts.length; segment += 1) {
    // The last start of texts lies behind a line feed that is not there.
    const start = Math.min(starts.at(segment), source.length);
    for (; position < start; position += 1) {
      if (pace.isDue(position)) yield;
      if (isHighSurrogate(source.charCodeAt(position))) pairs += 1;
    }
    pairsBefore.push(pairs);
  }
  return pairsBefore;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
