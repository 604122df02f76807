/** The surroundings of the lines of speech: front matter, line numbers, and signs that a text is of another format. */
import { isBlank, Lines, skipFormatCharacters } from './lines.ts';
import type { Slices } from './slices.ts';

/** The first line that opens a block of front matter, and the one that closes it. */
const FENCE = /^(?:---|\+\+\+)[ \t]*$/;
const MAX_FENCE_UNITS = 20;
const MAX_FRONT_MATTER_LINES = 400;
const MAX_FRONT_MATTER_UNITS = 50_000;

/** Where the text goes on behind its front matter; 0 if it has none. */
export function frontMatterEnd(text: string): number {
  const lines = new Lines(text);
  let count = 0;
  while (lines.advance() && count < MAX_FRONT_MATTER_LINES && lines.start < MAX_FRONT_MATTER_UNITS) {
    if (lines.isBlank) continue;
    const isFence = lines.end - lines.start < MAX_FENCE_UNITS && FENCE.test(text.slice(lines.start, lines.end));
    if (count === 0 && !isFence) return 0;
    if (count > 0 && isFence) return lines.end;
    count += 1;
  }
  return 0;
}

/** Behind the number of a numbered line; `start` if it has none. */
export function lineNumberEnd(text: string, start: number, end: number): number {
  LINE_NUMBER.lastIndex = start;
  return LINE_NUMBER.test(text) && LINE_NUMBER.lastIndex <= end ? LINE_NUMBER.lastIndex : start;
}

const LINE_NUMBER = /[ \t]{0,20}\d{1,3}(?=[ \t\r\n]|$)/y;
const SAMPLE_LINES = 2000;
const MIN_NUMBERED_LINES = 3;

/** Whether nearly all lines begin with a number that counts them, from 1 on again on every page. */
export function* isNumbered(text: string): Slices<boolean> {
  const lines = new Lines(text);
  let [count, numbered, inOrder, last] = [0, 0, 0, 0];
  while (count < SAMPLE_LINES && lines.advance()) {
    if (lines.isDue) yield;
    if (isBlank(text, lines.start, lines.end)) continue;
    count += 1;
    const end = lineNumberEnd(text, lines.start, lines.end);
    if (end === lines.start) continue;
    const number = Number(text.slice(lines.start, end));
    numbered += 1;
    if (number === last + 1 || number === 1) inOrder += 1;
    last = number;
  }
  return numbered >= MIN_NUMBERED_LINES && numbered * 10 >= count * 8 && inOrder * 10 >= numbered * 9;
}

const MAX_TOP_UNITS = 2000;
/** JSON and Python's `repr`, also cut off; XML; and the tags and sections of lyrics and subtitles that are no cues. */
const FOREIGN = [
  /^\s{0,99}(?:\{\s{0,99}["'{}\]]|\[\s{0,99}["'{\]])/,
  /^\s{0,99}<(?:[?!]|(?:html|tt|transcript|timedtext|xml)[\s>])/i,
  /^(?:\[(?:ar|ti|al|au|by|la|re|ve|length|offset|tool):[^\r\n]{0,200}\][ \t]*(?:\r?\n|\r)){1}/m,
  /^[^\r\n]{0,40}\d\d:\d\d:\d\d[^\r\n]{0,20}\b(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE)\b/m,
  /^(?:import \S|from \S{1,60} import |def \w{1,60}\(|class \w{1,60}[:({ ]|#include |function \w{1,60}\(|export (?:default|const|function|interface|type|class) |declare (?:module|namespace|class|function) |diff --git |#!\/|(?:const|let|var) \w{1,60} =)/m,
  /^\[(?:Script Info|V4\+? Styles|Events)\][ \t]*$/m,
];

/** Whether the text begins like one of another format, whatever its lines look like. */
export function isForeign(text: string): boolean {
  const start = skipFormatCharacters(text, 0, text.length);
  const top = text.slice(start, start + MAX_TOP_UNITS);
  return FOREIGN.some((sign) => sign.test(top));
}
