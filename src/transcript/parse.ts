/**
 * From an upstream body to its turns: the forms that can be read (T10: JSON, cues, columns, spoken lines), and how one is
 * chosen (T11: by the lines that it explains).
 */
import type { TranscriptFormat } from '../domain/vocabulary.ts';
import { readColumns } from './columns.ts';
import { readCues } from './cues.ts';
import { type Body, bodyOf, explainsMost, type Reading } from './form.ts';
import { readJson } from './json-utterances.ts';
import { readParagraphs } from './paragraphs.ts';
import { Lines } from './lines.ts';
import type { Slices } from './slices.ts';
import { readSpokenLines } from './spoken-lines.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';

/** A body of more lines, and of shorter ones on average, in UTF-16 units, is no speech, and would take long to read. */
const MAX_SHORT_LINES = 160_000;
const MIN_LINE_UNITS = 12;

/** Forms that are harder to mistake come first. */
const FORMS: readonly ((body: Body) => Slices<Reading | null>)[] = [readCues, readColumns, readSpokenLines];

/**
 * Reads a body of any content; never throws. `declared` is what the store says; null if it doesn't know. The first form
 * that explains more than half of the lines wins (T11); otherwise paragraphs are the turns (T9: a body in no known form).
 * In slices, because 2 MB take some tens of milliseconds.
 */
export function* parseSlices(written: string, declared: TranscriptFormat | null): Slices<ParsedTranscript> {
  const text = written.toWellFormed();
  const json = yield* readJson(text);
  if (json !== null) return json;
  const forms = (yield* hasShortLines(text)) ? [] : FORMS;
  const body = yield* bodyOf(text, declared);
  for (const readForm of forms) {
    const reading = yield* readForm(body);
    if (reading !== null && explainsMost(reading)) return reading.transcript;
    yield;
  }
  const paragraphs = yield* readParagraphs(text);
  // Nothing was said, which any form can say.
  return paragraphs.turnCount === 0 ? new TurnWriter(text).finish('spoken lines', null) : paragraphs;
}

function* hasShortLines(text: string): Slices<boolean> {
  const most = Math.max(MAX_SHORT_LINES, text.length / MIN_LINE_UNITS);
  const lines = new Lines(text);
  let count = 0;
  while (count <= most && lines.advance()) {
    if (lines.isDue) yield;
    if (!lines.isBlank) count += 1;
  }
  return count > most;
}
