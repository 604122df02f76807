/** The grapheme cluster boundaries of a text, found once in one walk and kept as one bit per UTF-16 unit. */
import { Finder } from './lines.ts';
import { STRIDE, type Slices } from './slices.ts';

/**
 * Characters next to which the rules of UAX #29 have to be asked. Any two of the others (Latin, Greek, Cyrillic, Armenian,
 * Hebrew and Arabic letters, kana, Han) have a boundary between them, except CR and LF.
 */
const RISKY =
  /[^\0-\u02ff\u0370-\u0482\u048a-\u058f\u05d0-\u05f4\u0621-\u063a\u0641-\u064a\u2010-\u2027\u2030-\u205e\u3000-\u3029\u3041-\u3096\u309b-\u30ff\u4e00-\u9fff]/g;
/** Made by the first text that needs it, because ICU's rules take 8 ms to read. */
let segmenter: Intl.Segmenter | null = null;
/** So much is segmented at once. ICU's memory for it is freed by the garbage collector, which does not see it. */
const WINDOW_UNITS = 4096;
const CONTEXT_UNITS = 64;

export class Graphemes {
  readonly #source: string;
  /** Bit `i & 7` of byte `i >> 3` is set if there is a boundary before unit i; null if only CR LF has none inside. */
  readonly #bits: Uint8Array | null;

  private constructor(source: string, bits: Uint8Array | null) {
    this.#source = source;
    this.#bits = bits;
  }

  static *of(source: string): Slices<Graphemes> {
    RISKY.lastIndex = 0;
    if (!RISKY.test(source)) return new Graphemes(source, null);
    const bits = new Uint8Array((source.length >> 3) + 1);
    yield* markBoundaries(source, bits);
    return new Graphemes(source, bits);
  }

  get weightBytes(): number {
    return this.#bits?.byteLength ?? 0;
  }

  /** The last boundary from `from`, which is one, to `limit`. */
  last(from: number, limit: number): number {
    let position = limit;
    while (position > from && !this.#isBoundary(position)) position -= 1;
    return position;
  }

  /** The first boundary after `from`, or `end`. */
  next(from: number, end: number): number {
    let position = from + 1;
    while (position < end && !this.#isBoundary(position)) position += 1;
    return position;
  }

  #isBoundary(position: number): boolean {
    if (this.#bits === null) return !this.#source.startsWith('\r\n', position - 1);
    return ((this.#bits[position >> 3] ?? 0) & (1 << (position & 7))) !== 0;
  }
}

/**
 * Alternates between runs of characters that need no thought and windows that ICU looks at. A window begins at a boundary:
 * what stands before one has no influence on what follows (UAX #29). In a cluster longer than a window, the next window
 * begins within it, and what ICU finds near that beginning is not believed.
 */
function* markBoundaries(source: string, bits: Uint8Array): Slices<void> {
  const lineEnds = new Finder(source, '\r\n');
  let [position, disbelieved, risky] = [0, 0, -1];
  while (position < source.length) {
    if (risky < position) {
      RISKY.lastIndex = position;
      risky = RISKY.exec(source)?.index ?? source.length;
    }
    const runEnd = Math.min(risky, position + STRIDE);
    for (let i = position; i < runEnd; i += 1) if (lineEnds.next(i - 1) !== i - 1) mark(bits, i);
    if (runEnd < risky || risky === source.length) {
      position = runEnd;
    } else {
      // The character before a risky one may be joined by it.
      const start = Math.max(position, risky - 1);
      const window = windowAt(source, start);
      let last = 0;
      segmenter ??= new Intl.Segmenter('und', { granularity: 'grapheme' });
      for (const { index } of segmenter.segment(window)) {
        if (index <= disbelieved) continue;
        mark(bits, start + index);
        last = index;
      }
      const isEnd = start + window.length === source.length;
      disbelieved = last === 0 ? CONTEXT_UNITS : 0;
      position = isEnd ? source.length : start + (last === 0 ? window.length - CONTEXT_UNITS : last);
    }
    yield;
  }
}

/** The characters from a position on. It ends within no surrogate pair. */
function windowAt(source: string, start: number): string {
  const window = source.slice(start, start + WINDOW_UNITS);
  const isHalf = start + window.length < source.length && /[\ud800-\udbff]$/.test(window);
  return isHalf ? window.slice(0, -1) : window;
}

function mark(bits: Uint8Array, position: number): void {
  const byte = position >> 3;
  bits[byte] = (bits[byte] ?? 0) | (1 << (position & 7));
}
