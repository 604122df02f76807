/** The line above a cue that says from when to when it is shown. */
import { skipBlanks, skipDigits } from './ascii.ts';

export const ARROW = '-->';

/**
 * Whether the line is a cue's timing: two timestamps around an arrow; what follows (settings, coordinates) is free.
 * One rule for WebVTT and SubRip, with hours or without, with `.` or `,` or no fraction: the times are not published,
 * so a cue with a sloppy one keeps its words rather than losing them.
 */
export function isTimingLine(text: string, start: number, end: number): boolean {
  const from = skipTimestamp(text, skipBlanks(text, start, end), end);
  if (from === -1) return false;
  const arrow = skipBlanks(text, from, end);
  if (!text.startsWith(ARROW, arrow)) return false;
  return skipTimestamp(text, skipBlanks(text, arrow + ARROW.length, end), end) !== -1;
}

/** Where `h:mm:ss.ttt`, `mm:ss` and the like end; -1 where there is none at `start`. */
function skipTimestamp(text: string, start: number, end: number): number {
  let groups = 0;
  let position = start;
  for (;;) {
    const groupEnd = skipDigits(text, position, end);
    if (groupEnd === position) return -1;
    groups += 1;
    position = groupEnd;
    if (groups === 3 || text[position] !== ':') break;
    position += 1;
  }
  if (groups < 2) return -1;
  if (text[position] !== '.' && text[position] !== ',') return position;
  return Math.max(position, skipDigits(text, position + 1, end));
}
