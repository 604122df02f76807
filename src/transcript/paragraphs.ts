/** Bodies in no known form (T9: cut at blank lines). */
import { Lines } from './lines.ts';
import type { Slices } from './slices.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';

/** A longer paragraph, in code points, is cut at its lines. */
const MAX_PARAGRAPH_POINTS = 4000;

/** Cuts a body at blank lines, and a long paragraph at all lines. */
export function* readParagraphs(body: string): Slices<ParsedTranscript> {
  const lines = new Lines(body);
  const writer = new TurnWriter(body);
  /** Where the lines of a paragraph that may yet become too long begin and end: the first `held` of these. */
  const [starts, ends]: [number[], number[]] = [[], []];
  let held = 0;
  let points = 0;
  const writeHeld = (areTurns: boolean): void => {
    for (let i = 0; i < held; i += 1) {
      const start = starts[i] ?? 0;
      if (i === 0 || areTurns) writer.beginTurn(start);
      writer.words(start, ends[i] ?? start);
    }
    held = 0;
  };
  while (lines.advance()) {
    const { start, end } = lines;
    if (lines.isDue) yield;
    if (lines.isBlank) {
      writeHeld(false);
      points = 0;
      continue;
    }
    starts[held] = start;
    ends[held] = end;
    held += 1;
    points += (points === 0 ? 0 : 1) + pointsOf(body, start, end, MAX_PARAGRAPH_POINTS);
    if (points > MAX_PARAGRAPH_POINTS) writeHeld(true);
  }
  writeHeld(false);
  return writer.finish(null, null);
}

/** Code points between two positions; some number over `cap` if there are more. */
function pointsOf(text: string, start: number, end: number, cap: number): number {
  if (end - start > 2 * cap) return cap + 1;
  let points = end - start;
  for (let i = start; i < end; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xdc00 && unit <= 0xdfff) points -= 1;
  }
  return points;
}
