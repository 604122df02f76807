/** `utterances_json`: a JSON array of `{speaker: string or null, startMs, text}`. */
import { ElementScanner } from './json-elements.ts';
import type { Steps } from './steps.ts';
import { TurnWriter } from './turn-writer.ts';
import type { ParsedTranscript } from './types.ts';

/** How much of the body is handed to JSON.parse at once; a call for every utterance would cost twice as much. */
const BATCH_UNITS = 16_384;

/** Parses utterances; null where the body isn't JSON or one element is no utterance. Only speaker and text are looked at. */
export function* utterancesSteps(body: string): Steps<ParsedTranscript | null> {
  const scanner = new ElementScanner(body);
  const writer = new TurnWriter(body);
  let starts: number[] = [];
  let batchEnd = 0;
  for (;;) {
    const found = scanner.advance();
    if (found === 'invalid') return null;
    if (found === 'element') {
      starts.push(scanner.start);
      batchEnd = scanner.end;
    }
    const batchStart = starts[0] ?? batchEnd;
    if (found === 'end' || batchEnd - batchStart >= BATCH_UNITS) {
      const utterances = parseUtterances(body.slice(batchStart, batchEnd));
      if (utterances === null || !addUtterances(writer, utterances, starts)) return null;
      starts = [];
      yield;
    }
    if (found === 'end') return writer.finish('utterances_json');
  }
}

interface Utterance {
  readonly speaker: string | null;
  readonly text: string;
}

/** Some elements of the array, with the commas between them; null where they are not JSON or not utterances. */
function parseUtterances(elements: string): readonly Utterance[] | null {
  const utterances: Utterance[] = [];
  for (const value of parseList(`[${elements}]`)) {
    const utterance = toUtterance(value);
    if (utterance === null) return null;
    utterances.push(utterance);
  }
  return utterances;
}

/** The values of a JSON array; one `undefined`, which no JSON holds, where it is none. */
function parseList(json: string): readonly unknown[] {
  try {
    const values: unknown = JSON.parse(json);
    return Array.isArray(values) ? values : [undefined];
  } catch {
    return [undefined];
  }
}

/** Escapes in JSON can make lone surrogates even in a well-formed body; they become U+FFFD as everywhere. */
function toUtterance(value: unknown): Utterance | null {
  if (typeof value !== 'object' || value === null || !('text' in value) || typeof value.text !== 'string') return null;
  const speaker = 'speaker' in value ? value.speaker : null;
  if (speaker !== null && typeof speaker !== 'string') return null;
  return { speaker: speaker === null ? null : speaker.toWellFormed(), text: value.text.toWellFormed() };
}

/** Writes one turn an utterance; false where there are fewer than were found in the body. */
function addUtterances(writer: TurnWriter, utterances: readonly Utterance[], starts: readonly number[]): boolean {
  for (const [i, start] of starts.entries()) {
    const utterance = utterances[i];
    if (utterance === undefined) return false;
    writer.beginTurn(start);
    if (utterance.speaker !== null && utterance.speaker.trim() !== '') writer.addString(`${utterance.speaker}: `);
    writer.addString(utterance.text);
  }
  return true;
}
