/**
 * From an upstream body to its turns: the table of forms (T10: those that can be read), and how one is chosen (T11: by lines
 * explained). To teach the gateway another vendor's form, write a file with a `Form`, put it into the table, and describe it
 * in docs/transcripts.md.
 */
import type { TranscriptFormat } from '../domain/records.ts';
import type { Form, Reading } from './form.ts';
import { headedTurns } from './headed-turns.ts';
import { readJson } from './json-utterances.ts';
import { Lines } from './lines.ts';
import { readParagraphs } from './paragraphs.ts';
import { sbv } from './sbv.ts';
import type { Slices } from './slices.ts';
import { spokenLines } from './spoken-lines.ts';
import { subRip } from './subrip.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';
import { webVtt } from './webvtt.ts';

/** If two forms explain as many lines, the first of them wins: it is harder to mistake for another. */
const FORMS: readonly Form[] = [webVtt, subRip, sbv, headedTurns, spokenLines];

/**
 * Reads a body of any content; never throws. `declared` is what the store says; null if it doesn't know. JSON is not made
 * of lines, so it is read before them. Else the form that explains most of the lines wins, if it explains more than half
 * (T11); otherwise paragraphs are the turns (T9: a body in no known form). In slices, because 2 MB take some tens of
 * milliseconds.
 */
export function* parseSlices(body: string, declared: TranscriptFormat | null): Slices<ParsedTranscript> {
  const text = body.toWellFormed();
  const json = yield* readJson(text);
  if (json !== null) return json;
  const lineCount = yield* countLines(text);
  // Nothing was said, which any form can say.
  if (lineCount === 0) return new TurnWriter(text).finish('spoken lines');
  let best: Reading | null = null;
  for (const form of FORMS) {
    const reading = yield* form.read({ text, lineCount, declared });
    if (reading !== null && reading.explained > (best?.explained ?? lineCount / 2)) best = reading;
    if (best?.explained === lineCount) break;
    yield;
  }
  return best?.transcript ?? (yield* readParagraphs(text));
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
