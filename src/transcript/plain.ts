/** A body in none of the formats: cut at blank lines, else at lines. */
import { isBlank, LineScanner } from './lines.ts';
import { Pace, type Steps } from './steps.ts';
import { TurnWriter } from './turn-writer.ts';
import type { ParsedTranscript } from './types.ts';

/** Takes any body. Paragraphs are the turns where blank lines part at least two, otherwise the lines are. */
export function* plainSteps(body: string): Steps<ParsedTranscript> {
  const hasParagraphs = yield* hasParagraphsSteps(body);
  const lines = new LineScanner(body);
  const writer = new TurnWriter(body);
  const pace = new Pace();
  let isFirstLine = true;
  while (lines.advance()) {
    if (pace.isDue(lines.start)) yield;
    if (isBlank(body, lines.start, lines.end)) {
      isFirstLine = true;
      continue;
    }
    if (isFirstLine || !hasParagraphs) writer.beginTurn(lines.start);
    writer.addLine(lines.start, lines.end);
    isFirstLine = false;
  }
  return writer.finish(null);
}

/** Whether a blank line stands between two that are not. */
function* hasParagraphsSteps(body: string): Steps<boolean> {
  const lines = new LineScanner(body);
  const pace = new Pace();
  let hasWords = false;
  let hasBreak = false;
  while (lines.advance()) {
    if (pace.isDue(lines.start)) yield;
    if (isBlank(body, lines.start, lines.end)) hasBreak = hasWords;
    else if (hasBreak) return true;
    else hasWords = true;
  }
  return false;
}
