/**
 * From the bytes of a store that cannot be trusted to a value. One pass over the bytes refuses nesting (a parsed value of
 * depth 5,000 can no longer be walked or written) and sheer number of values, before anything is parsed. It holds the event
 * loop no longer than `createYield` allows, but for the one `JSON.parse`.
 */
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { createYield, nextTurn } from '../time/turns.ts';
import { JsonScanner } from '../transcript/json-scanner.ts';

/** The interface's deepest record has 6 levels; the rest is for the objects that it leaves open. */
const MAX_DEPTH = 64;
/** Takes some 50 ms to parse and check; a full list page holds some 20,000. */
const MAX_VALUES = 250_000;
/** Member names, equal ones too. If all differ, so many take `JSON.parse` some 100 ms. */
const MAX_NAMES = 100_000;
/** Numbers that a double cannot hold. No record is known to have a hundred; so many take `JSON.stringify` some 20 ms. */
const MAX_LONG_NUMBERS = 20_000;
const UTF8_BYTE_ORDER_MARK = '\u00ef\u00bb\u00bf';

/** The bytes are no JSON that can be used: the message says why, as what follows "the answer". */
export class JsonError extends Error {
  override readonly name = 'JsonError';
  /** Whether it is JSON, and what it holds is the trouble (S2: a record's trouble is its own). */
  readonly isRecords: boolean;

  constructor(why: string, isRecords: boolean) {
    super(why);
    this.isRecords = isRecords;
  }
}

interface ParseOptions {
  /**
   * Whether numbers that a double cannot hold become the objects of `JSON.rawJSON`, which `JSON.stringify` writes as they
   * were in the text. Else they become the nearest double, as everywhere.
   */
  readonly isExact: boolean;
}

/**
 * The value of a JSON text in UTF-8, with every lone surrogate, in member names too, replaced by U+FFFD, which changes the
 * bytes. Rejects with a JsonError if the bytes are no such text, or are deeper or hold more than allowed.
 */
export async function parseJson(bytes: Buffer, { isExact }: ParseOptions): Promise<unknown> {
  if (/^[\uFEFF\s]*</.test(bytes.toString('utf8', 0, 100))) throw new JsonError('is markup, not JSON', false);
  // Many long answers may arrive in one turn of the event loop. Each step takes about a millisecond.
  if (bytes.length > STEP_BYTES) await nextTurn(bytes.length / STEP_BYTES);
  const yieldToEventLoop = createYield();
  const { depth, values, names, numbers } = await scan(bytes, isExact, yieldToEventLoop);
  if (depth > MAX_DEPTH) throw new JsonError(`is nested deeper than ${MAX_DEPTH} levels`, true);
  if (values > MAX_VALUES) throw new JsonError(`has more than ${MAX_VALUES} values`, true);
  if (names > MAX_NAMES) throw new JsonError(`has more than ${MAX_NAMES} members`, true);
  if (numbers.length > MAX_LONG_NUMBERS) {
    throw new JsonError(`has more than ${MAX_LONG_NUMBERS} numbers that a double cannot hold`, true);
  }
  await yieldToEventLoop();
  const isText = isUtf8(bytes);
  const marked = await markedText(bytes, numbers, yieldToEventLoop);
  await yieldToEventLoop();
  const root = [];
  try {
    const value: unknown = JSON.parse(marked.text);
    root.push(value);
  } catch {
    // V8's message quotes the text, so it is not passed on.
    throw new JsonError(await syntaxFault(bytes), false);
  }
  await yieldToEventLoop();
  // Thrown only now, because text that is no JSON at all is a failure of the store, not of the record.
  if (!isText) throw new JsonError(`holds bytes that are not UTF-8 (at byte ${firstFaultyByte(bytes)})`, true);
  if (numbers.length > 0) await restoreNumbers(root, marked);
  return root[0];
}

/** Tokens that are read between two looks at the time. */
const STEP_TOKENS = 1000;

/** Why the bytes are not JSON, and where the token or the string begins that does not fit, if the scanner sees it. */
async function syntaxFault(bytes: Buffer): Promise<string> {
  const yieldToEventLoop = createYield();
  // One character per byte, so that its places are those of bytes.
  const text = bytes.toString('latin1');
  const scanner = new JsonScanner(text, text.startsWith(UTF8_BYTE_ORDER_MARK) ? UTF8_BYTE_ORDER_MARK.length : 0);
  for (let tokens = 1; scanner.next() !== null; tokens += 1) {
    if (tokens % STEP_TOKENS === 0) await yieldToEventLoop();
  }
  if (scanner.isComplete) return 'is not JSON';
  return text.trim() === '' ? 'is empty' : `is not JSON (at byte ${scanner.start} of ${bytes.length})`;
}

/** The first byte that decoding replaces. Compares in steps, which costs little for the largest answer. */
function firstFaultyByte(bytes: Buffer): number {
  const decoded = Buffer.from(bytes.toString());
  let from = 0;
  while (decoded.subarray(from, from + STEP_BYTES).equals(bytes.subarray(from, from + STEP_BYTES))) from += STEP_BYTES;
  return from + decoded.subarray(from).findIndex((byte, at) => byte !== bytes[from + at]);
}

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const UPPER_E = 0x45;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const LOWER_E = 0x65;
const LOWER_U = 0x75;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/** Bytes that are looked at between two looks at the time: about a millisecond's. */
const STEP_BYTES = 256 * 1024;

interface Shape {
  /** How deep the value is. */
  readonly depth: number;
  /** At most how many values it has, scalars included. */
  readonly values: number;
  /** How many members all its objects have together. */
  readonly names: number;
  /** Where the numbers are that a double cannot hold. */
  readonly numbers: readonly Range[];
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Linear, without recursion; exact for valid JSON, and harmless for anything else, which the parser then refuses. It reads
 * bytes because no byte of a longer UTF-8 sequence looks like one of JSON's own characters. Ends as soon as it is too much.
 */
async function scan(bytes: Buffer, isExact: boolean, yieldToEventLoop: () => Promise<void>): Promise<Shape> {
  const numbers: Range[] = [];
  let [depth, deepest, values, names, isInString, at] = [0, 0, 1, 0, false, 0];
  while (
    at < bytes.length &&
    deepest <= MAX_DEPTH &&
    values <= MAX_VALUES &&
    names <= MAX_NAMES &&
    numbers.length <= MAX_LONG_NUMBERS
  ) {
    const end = Math.min(bytes.length, at + STEP_BYTES);
    for (; at < end; at += 1) {
      const byte = bytes[at] ?? 0;
      if (isInString) {
        if (byte === QUOTE) isInString = false;
        else if (byte === BACKSLASH) at = mendEscape(bytes, at + 1);
      } else if (byte === QUOTE) isInString = true;
      else if (byte === COMMA) values += 1;
      else if (byte === COLON) names += 1;
      else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
        values += 1;
        depth += 1;
        if (depth > deepest) deepest = depth;
      } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) depth -= 1;
      else if (isExact && (byte === MINUS || (byte >= ZERO && byte <= NINE))) {
        const to = endOfNumber(bytes, at);
        if (!isDouble(bytes, at, to)) numbers.push({ from: at, to });
        at = to - 1;
      }
    }
    await yieldToEventLoop();
  }
  return { depth: deepest, values, names, numbers };
}

/** U+FFFD in an escape. */
const REPLACEMENT = 'fffd';
const ESCAPE_BYTES = 4;

/**
 * Replaces the escape whose letter is at that place by U+FFFD if it is one half of a surrogate pair without the other.
 * Returns where it ends. An escape of the same length takes its place, so nothing else moves.
 */
function mendEscape(bytes: Buffer, at: number): number {
  if (bytes[at] !== LOWER_U) return at;
  const unit = codeUnitAt(bytes, at + 1);
  if (unit < 0xd800 || unit > 0xdfff) return at;
  const next = at + 1 + ESCAPE_BYTES;
  if (unit < 0xdc00 && bytes[next] === BACKSLASH && bytes[next + 1] === LOWER_U) {
    const low = codeUnitAt(bytes, next + 2);
    if (low >= 0xdc00 && low <= 0xdfff) return next + 1 + ESCAPE_BYTES;
  }
  bytes.write(REPLACEMENT, at + 1, 'latin1');
  return at + ESCAPE_BYTES;
}

/** The four hexadecimal digits at that place as a number; -1 if they are none. */
function codeUnitAt(bytes: Buffer, at: number): number {
  let unit = 0;
  for (let index = at; index < at + ESCAPE_BYTES; index += 1) {
    const byte = bytes[index] ?? 0;
    // A letter is the same in both cases but for one bit.
    const letter = (byte | 0x20) - 0x61;
    if (byte >= ZERO && byte <= NINE) unit = unit * 16 + byte - ZERO;
    else if (letter >= 0 && letter < 6) unit = unit * 16 + letter + 10;
    else return -1;
  }
  return unit;
}

function endOfNumber(bytes: Buffer, from: number): number {
  let to = from + 1;
  while (isOfNumber(bytes[to] ?? 0)) to += 1;
  return to;
}

function isOfNumber(byte: number): boolean {
  return (byte >= ZERO && byte <= NINE) || byte === DOT || byte === MINUS || byte === PLUS || isExponent(byte);
}

function isExponent(byte: number): boolean {
  return byte === LOWER_E || byte === UPPER_E;
}

/** A double holds any number of so many decimal digits (C's DBL_DIG), unless it has an exponent. */
const MAX_SAFE_DIGITS = 15;

/** No double is written with more. */
const MAX_WRITTEN_DIGITS = 30;

/** Whether a double holds the number, and is written just so. Text that is not a number is left to the parser. */
function isDouble(bytes: Buffer, from: number, to: number): boolean {
  const length = to - from;
  if (length > MAX_WRITTEN_DIGITS) return false;
  if (length <= MAX_SAFE_DIGITS && !bytes.subarray(from, to).some(isExponent)) return true;
  const source = bytes.toString('latin1', from, to);
  return String(Number(source)) === source;
}

interface MarkedText {
  readonly text: string;
  /** With it begin the texts that stand for numbers; then comes an index of `sources`. */
  readonly mark: string;
  readonly sources: readonly string[];
}

/** The text without a byte order mark, and with a text in place of each of those numbers. */
async function markedText(
  bytes: Buffer,
  numbers: readonly Range[],
  yieldToEventLoop: () => Promise<void>,
): Promise<MarkedText> {
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  const sources: string[] = [];
  // Random, so that no text of the store begins with it.
  const mark = randomBytes(12).toString('base64url');
  let at = 0;
  for (const { from, to } of numbers) {
    pieces.push(decoder.decode(bytes.subarray(at, from)), `"${mark}${sources.length}"`);
    sources.push(bytes.toString('latin1', from, to));
    at = to;
    await yieldToEventLoop();
  }
  pieces.push(decoder.decode(bytes.subarray(at)));
  return { text: pieces.join(''), mark, sources };
}

async function restoreNumbers(value: unknown, { mark, sources }: MarkedText): Promise<void> {
  await eachMember(value, (members, name) => {
    const member = members[name];
    if (typeof member !== 'string' || !member.startsWith(mark)) return;
    // Its own member, so one named __proto__ is set like any other.
    members[name] = rawNumber(sources[Number(member.slice(mark.length))] ?? '');
  });
}

function rawNumber(source: string): object {
  try {
    return JSON.rawJSON(source);
  } catch {
    throw new JsonError('is not JSON', false);
  }
}

export type Members = Record<string | number, unknown>;

/** True for objects and arrays. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null;
}

/** Members that are visited between two looks at the time. */
const STEP_MEMBERS = 1000;

/**
 * Calls `visit` for all members and elements in the value, and in those that are there after the visit, at any depth, in no
 * order. `visit` may change or delete that member.
 */
export async function eachMember(
  value: unknown,
  visit: (members: Members, name: string | number) => void,
): Promise<void> {
  const yieldToEventLoop = createYield();
  const left = [value].filter(isObject);
  let visited = 0;
  for (let members = left.pop(); members !== undefined; members = left.pop()) {
    for (const name of Array.isArray(members) ? members.keys() : Object.keys(members)) {
      visit(members, name);
      const member = members[name];
      if (isObject(member)) left.push(member);
      visited += 1;
      if (visited % STEP_MEMBERS === 0) await yieldToEventLoop();
    }
  }
}
