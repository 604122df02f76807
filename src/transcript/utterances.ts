/** `utterances_json`: a JSON array of `{speaker: string or null, startMs, text}`. */
import { contentStart, Finder } from './lines.ts';
import type { Steps } from './steps.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';

/** How much of the body is handed to JSON.parse at once; a call for every utterance would cost twice as much. */
const BATCH_UNITS = 16_384;
/** Deeper than any utterance is, and shallow enough that nothing downstream is at risk. */
const MAX_DEPTH = 64;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = '\\';
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

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

/**
 * Walks the objects of a JSON array. It checks what stands between them; what stands in them is for JSON.parse to
 * judge, whose grammar then makes sure that the bounds found here are right.
 */
class ElementScanner {
  readonly #body: string;
  readonly #quotes: Finder;
  readonly #backslashes: Finder;
  /** After the last element, or after the opening bracket before the first; -1 where there is no array. */
  #position: number;
  #count = 0;
  /** The current element is `body.slice(start, end)`. */
  start = 0;
  end = 0;

  constructor(body: string) {
    this.#body = body;
    this.#quotes = new Finder(body, '"');
    this.#backslashes = new Finder(body, BACKSLASH);
    const first = this.#skipSpace(contentStart(body));
    this.#position = body.charCodeAt(first) === BRACKET_OPEN ? first + 1 : -1;
  }

  /** Goes to the next element. `end`: the array is over and nothing follows it. `invalid`: this is no array of objects. */
  advance(): 'element' | 'end' | 'invalid' {
    if (this.#position === -1) return 'invalid';
    let position = this.#skipSpace(this.#position);
    if (this.#body.charCodeAt(position) === BRACKET_CLOSE) return this.#endsAfter(position + 1);
    if (this.#count > 0) {
      if (this.#body.charCodeAt(position) !== COMMA) return 'invalid';
      position = this.#skipSpace(position + 1);
    }
    if (this.#body.charCodeAt(position) !== BRACE_OPEN) return 'invalid';
    const end = this.#endOfObject(position);
    if (end === -1) return 'invalid';
    this.start = position;
    this.end = end;
    this.#position = end;
    this.#count += 1;
    return 'element';
  }

  #endsAfter(position: number): 'end' | 'invalid' {
    return this.#skipSpace(position) === this.#body.length ? 'end' : 'invalid';
  }

  /** Where the object that begins at `start` ends; -1 where it never does or goes too deep. */
  #endOfObject(start: number): number {
    let depth = 0;
    for (let i = start; i < this.#body.length; i += 1) {
      const unit = this.#body.charCodeAt(i);
      if (unit === QUOTE) {
        i = this.#closingQuote(i + 1);
      } else if (unit === BRACE_OPEN || unit === BRACKET_OPEN) {
        depth += 1;
        if (depth > MAX_DEPTH) return -1;
      } else if (unit === BRACE_CLOSE || unit === BRACKET_CLOSE) {
        depth -= 1;
        if (depth === 0) return i + 1;
      }
    }
    return -1;
  }

  /** Where the string that begins after a quote at `from - 1` is closed; the body's length where it is not. */
  #closingQuote(from: number): number {
    let position = from;
    for (;;) {
      const quote = this.#quotes.next(position);
      const backslash = this.#backslashes.next(position);
      if (quote <= backslash) return quote;
      position = backslash + 2;
    }
  }

  #skipSpace(from: number): number {
    let i = from;
    for (;;) {
      const unit = this.#body.charCodeAt(i);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return i;
      i += 1;
    }
  }
}
