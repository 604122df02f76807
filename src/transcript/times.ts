/** Times as transcripts write them. All patterns have bounds, so that none costs more than the time itself would. */
import { isDigit, skipBlanks, skipFormatCharacters } from './lines.ts';

const DATE = String.raw`(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})(?:T|,? )`;
const TIME = String.raw`(?:${DATE})?\d{1,3}(?::\d{1,2}){1,3}(?:[.,]\d{1,9})?(?:Z| ?[AaPp]\.?[Mm]\b\.?)?`;

/** One time, with its day or not, or a range of two: for patterns of lines that hold one. */
export const TIME_SPAN = String.raw`${TIME}(?:[ \t]{0,4}(?:-{1,2}>|[-–—]|→|to)[ \t]{0,4}${TIME})?`;
export const TIME_IN_BRACKETS = String.raw`[\[(（【] ?${TIME_SPAN} ?[\])）】]`;

const TIME_BEFORE = new RegExp(
  String.raw`(?:${TIME_IN_BRACKETS}|${TIME_SPAN}(?=[ \t]))[ \t]{0,16}(?:[-–—|][ \t]{1,16})?`,
  'y',
);
const TIME_AFTER = new RegExp(String.raw`[ \t]{0,8}${TIME_IN_BRACKETS}[ \t]{0,8}$`);
const ONLY_TIME = new RegExp(String.raw`(?:#{1,6} )?[ \t]{0,16}(?:${TIME_IN_BRACKETS}|${TIME_SPAN})[ \t]{0,16}`, 'y');
const MAX_ONLY_TIME_UNITS = 100;

/** Where the line goes on after a time and what sets it off from a name; `start` if it does not begin with a time. */
export function skipTimeBefore(text: string, start: number, end: number): number {
  if (!isDigit(text.charCodeAt(start)) && !'[(（【'.includes(text.charAt(start))) return start;
  return matchEnd(TIME_BEFORE, text, start, end) ?? start;
}

/** Where a name ends that a time in brackets follows (`Mara (0:03): words`); `end` if there is no time. */
export function nameEndBeforeTime(text: string, start: number, end: number): number {
  if (!'])）】'.includes(text.charAt(end - 1))) return end;
  return start + (TIME_AFTER.exec(text.slice(start, end))?.index ?? end - start);
}

/** Whether there is a time between the two positions, as a heading of Markdown or not, and nothing else but blanks. */
export function isOnlyTime(text: string, start: number, end: number): boolean {
  if (end - start > MAX_ONLY_TIME_UNITS) return false;
  return matchEnd(ONLY_TIME, text, start, end) === end;
}

/** Where a match at `start` ends; null if there is none before `end`. The pattern must be sticky. */
export function matchEnd(pattern: RegExp, text: string, start: number, end: number): number | null {
  pattern.lastIndex = start;
  if (!pattern.test(text) || pattern.lastIndex > end) return null;
  return pattern.lastIndex;
}

/** How sure a time range is: `loose` has no fractions, `damaged` is like a range but for an error in it. */
export type RangeQuality = 'exact' | 'loose' | 'damaged';

/** A time range on a line of a cue. */
export interface TimeRange {
  readonly quality: RangeQuality;
  /** Whether its times have three parts. */
  readonly hasHours: boolean;
  /** Where the line goes on after the range. */
  readonly end: number;
}

export const AFTER_RANGE = String.raw`[\u200e\u200f\u202c\u2069]{0,4}(?=[ \t\r\n]|$)`;
const CUE_TIME = String.raw`\d{1,3}(?::\d{1,3}){1,2}(?:[.,]\d{0,9})?`;
const ARROW_RANGE = new RegExp(String.raw`${CUE_TIME}[ \t]{0,16}-->[ \t]{0,16}${CUE_TIME}${AFTER_RANGE}`, 'y');
const BAD_TIME = String.raw`-?(?:\d{1,3}(?::\d{1,3}){1,2}[.,] ?\d{1,9}|\d{1,3}(?::\d{1,3}){3})`;
const BAD_RANGE = new RegExp(
  String.raw`${BAD_TIME}[ \t]{0,16}(?:-{1,3}>|-- >|[–—]>|→)[ \t]{0,16}${BAD_TIME}${AFTER_RANGE}`,
  'y',
);
/** The range of WebVTT and SubRip, `00:01.000 --> 00:02.000`, that begins the line; null if it begins otherwise. */
export function arrowRangeAt(text: string, lineStart: number): TimeRange | null {
  const start = rangeStart(text, lineStart);
  const sound = matchEnd(ARROW_RANGE, text, start, text.length);
  if (sound === null) {
    const damaged = matchEnd(BAD_RANGE, text, start, text.length);
    return damaged === null ? null : { quality: 'damaged', hasHours: true, end: damaged };
  }
  const range = text.slice(start, sound);
  return { quality: /[.,]\d/.test(range) ? 'exact' : 'loose', hasHours: /:\d+:/.test(range), end: sound };
}

/** Where a range may begin on the line, after format characters and blanks. */
export function rangeStart(text: string, lineStart: number): number {
  return skipBlanks(text, skipFormatCharacters(text, lineStart, text.length), text.length);
}
