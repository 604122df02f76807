/** The transcript room's interface: a body is parsed once, and any page of it can then be cut. Pure. */
import type { TranscriptFormat } from '../domain/records.ts';

/**
 * A parsed body. Turns are columns of numbers, not objects, because a 2 MB body may hold a million of them.
 * All positions are UTF-16 units; every string is well formed.
 */
export interface ParsedTranscript {
  /** The upstream body; lone surrogates have become U+FFFD. */
  readonly body: string;
  /** The format that the body is in, whatever the store declared; null where it is in none of the four. */
  readonly format: TranscriptFormat | null;
  readonly turnCount: number;
  /** The texts of all turns (`Name: words`, or just the words), joined by one line feed. */
  readonly text: string;
  /** `turnCount + 1` values: the text of turn i is `text.slice(textStarts[i], textStarts[i + 1] - 1)`. */
  readonly textStarts: Int32Array;
  /**
   * The slice of turn i is `body.slice(sliceStarts[i], sliceStarts[i + 1])`; the slices make up the body.
   * `turnCount + 1` values, except that a body that is not empty and has no turn is one slice.
   */
  readonly sliceStarts: Int32Array;
}

export interface PageRequest {
  /** From 1. */
  readonly page: number;
  /** At most so many segments a page: 1 to 200. */
  readonly pageSize: number;
  /** At most so many code points of text a page: 1 to 50,000. */
  readonly maxChars: number;
  /** Exact slices of the body instead of the turns' texts. */
  readonly raw: boolean;
}

export interface Segment {
  readonly index: number;
  readonly text: string;
}

export interface TranscriptPage {
  readonly text: string;
  readonly segments: readonly Segment[];
  readonly totalCount: number;
  readonly totalPages: number;
  readonly hasMore: boolean;
  /** The character cap, not the segment count, ended the page before the end of the transcript. */
  readonly truncated: boolean;
}
