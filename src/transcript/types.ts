/** The transcript room's interface: a body is parsed once, and any page of it can then be cut. Pure. */
import type { TranscriptFormat } from '../domain/records.ts';

/** One turn of the conversation, or one slice of an unsupported body. */
export interface Turn {
  /** `Name: words`, or just the words. */
  readonly text: string;
  /** Where the turn's slice of the body begins and ends, in UTF-16 units; the slices of all turns make up the body. */
  readonly start: number;
  readonly end: number;
}

export interface ParsedTranscript {
  readonly body: string;
  /** Null where the body is in none of the four formats. */
  readonly format: TranscriptFormat | null;
  readonly turns: readonly Turn[];
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
