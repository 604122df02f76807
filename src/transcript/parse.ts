/**
 * From an upstream body to its turns: the table of forms (T10: those that can be read), and how one is chosen (T11: by lines
 * explained). To teach the gateway another vendor's form, write a file with a `Form`, put it into the table, and describe it
 * in docs/transcripts.md.
 */
import type { TranscriptFormat } from '../domain/records.ts';
import type { Form, Reading } from './form.ts';
import { headedTurns } from './headed-turns.ts';
import { jsonUtterances } from './json-utterances.ts';
import { LineTable } from './lines.ts';
import { plainSlices } from './plain.ts';
import { sbv } from './sbv.ts';
import type { Slices } from './slices.ts';
import { spokenLines } from './spoken-lines.ts';
import { subRip } from './subrip.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';
import { webVtt } from './webvtt.ts';

/** Of two forms that explain as many lines, the first wins: it is harder to take for another. */
const FORMS: readonly Form[] = [jsonUtterances, webVtt, subRip, sbv, headedTurns, spokenLines];

/**
 * Reads a body of any content; never throws. `declared` is what the store says; null if it doesn't know. The form that
 * explains most of the lines wins, if it explains more than half (T11); otherwise paragraphs are the turns (T9: a body in no
 * known form). In slices, because 2 MB take some tens of milliseconds.
 */
export function* parseSlices(body: string, declared: TranscriptFormat | null): Slices<ParsedTranscript> {
  const text = body.toWellFormed();
  const lines = yield* LineTable.of(text);
  const lineCount = lines.filledCount;
  // Nothing was said, which any form can say.
  if (lineCount === 0) return new TurnWriter(text).finish('spoken lines');
  let best: Reading | null = null;
  for (const form of FORMS) {
    const reading = yield* form.recognise({ text, lines, declared });
    if (reading !== null && reading.explained > (best?.explained ?? lineCount / 2)) best = reading;
    if (best?.explained === lineCount) break;
    yield;
  }
  if (best === null) return yield* plainSlices(lines);
  return typeof best.turns === 'function' ? yield* best.turns() : best.turns;
}
