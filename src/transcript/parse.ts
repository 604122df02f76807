/**
 * From an upstream body to its turns: the forms that can be read (T10: JSON, cues, columns, spoken lines), and how one is
 * chosen (T11: by the lines that it explains).
 */
import type { TranscriptFormat } from '../domain/records.ts';
import { readColumns } from './columns.ts';
import { readCues } from './cues.ts';
import type { Body, Reading } from './form.ts';
import { readJson } from './json-utterances.ts';
import { Lines } from './lines.ts';
import { readParagraphs } from './paragraphs.ts';
import type { Slices } from './slices.ts';
import { readSpokenLines } from './spoken-lines.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';

/** Forms that are harder to mistake come first. */
const FORMS: readonly ((body: Body) => Slices<Reading | null>)[] = [readCues, readColumns, readSpokenLines];

/**
 * Reads a body of any content; never throws. `declared` is what the store says; null if it doesn't know. The first form
 * that explains more than half of the lines wins (T11); otherwise paragraphs are the turns (T9: a body in no known form).
 * In slices, because 2 MB take some tens of milliseconds.
 */
export function* parseSlices(body: string, declared: TranscriptFormat | null): Slices<ParsedTranscript> {
  const text = body.toWellFormed();
  const json = yield* readJson(text);
  if (json !== null) return json;
  const lineCount = yield* countLines(text);
  // Nothing was said, which any form can say.
  if (lineCount === 0) return new TurnWriter(text).finish('spoken lines', null);
  for (const read of FORMS) {
    const reading = yield* read({ text, lineCount, declared });
    if (reading !== null && reading.explained * 2 > lineCount) return reading.transcript;
    yield;
  }
  return yield* readParagraphs(text);
}

/** How many lines are not blank. */
function* countLines(text: string): Slices<number> {
  const lines = new Lines(text);
  let count = 0;
  while (lines.advance()) {
    if (lines.isDue) yield;
    if (!lines.isBlank) count += 1;
  }
  return count;
}
