/** The time ranges of a file of cues: where they stand, how sure they are, and where the words behind them begin. */
import { Column } from './column.ts';
import type { CueRange, RangeQuality } from './times.ts';

const QUALITIES: readonly RangeQuality[] = ['exact', 'loose', 'damaged'];

/** Found in one look at the file and used in the next, so that no line is tried twice. */
export class CueRanges {
  readonly #lineStarts = new Column();
  readonly #ends = new Column();
  readonly #kinds = new Column();
  #index = 0;

  get length(): number {
    return this.#lineStarts.length;
  }

  /** Adds the range of the line that begins at `lineStart`; lines come in order. */
  add(lineStart: number, { quality, hasHours, end }: CueRange): void {
    this.#lineStarts.push(lineStart);
    this.#ends.push(end);
    this.#kinds.push(QUALITIES.indexOf(quality) * 2 + Number(hasHours));
  }

  /** The range of the line that begins at `lineStart`; null if it has none. Quick if asked for lines nearly in order. */
  at(lineStart: number): CueRange | null {
    if (this.next(lineStart) !== lineStart) return null;
    const kind = this.#kinds.at(this.#index);
    const quality = QUALITIES[Math.floor(kind / 2)] ?? 'damaged';
    return { quality, hasHours: kind % 2 === 1, end: this.#ends.at(this.#index) };
  }

  /** Where the first line with a range begins, at or after the position; Infinity if there is none. */
  next(position: number): number {
    const starts = this.#lineStarts;
    let i = this.#index;
    while (i > 0 && starts.at(i - 1) >= position) i -= 1;
    while (i < starts.length && starts.at(i) < position) i += 1;
    this.#index = i;
    return i < starts.length ? starts.at(i) : Infinity;
  }
}
