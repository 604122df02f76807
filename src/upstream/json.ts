/**
 * JSON from a store that cannot be trusted. One pass over the bytes refuses nesting (a parsed value of depth 5,000 can
 * no longer be walked or written) and sheer number of values, before anything is parsed.
 */

import { StoreError } from './store.ts';

/** The interface's deepest record has 6 levels; the rest is for the objects that it leaves open. */
const MAX_DEPTH = 64;
/** Takes some 50 ms to parse and check; a full list page holds some 20,000. */
const MAX_VALUES = 250_000;

interface JsonShape {
  readonly depth: number;
  /** Upper bound of the number of values, scalars included. */
  readonly values: number;
  /** Whether an escape stands for one half of a surrogate pair. */
  readonly hasSurrogateEscape: boolean;
}

/**
 * Throws a StoreError of kind `invalidResponse` if the bytes are no JSON text in UTF-8, or are deeper or have more values
 * than allowed.
 */
export function parseJson(bytes: Uint8Array): unknown {
  const shape = shapeOf(bytes);
  if (shape.depth > MAX_DEPTH) throw unreadable(`is nested deeper than ${MAX_DEPTH} levels`);
  if (shape.values > MAX_VALUES) throw unreadable(`has more than ${MAX_VALUES} values`);
  const value = parseText(new TextDecoder().decode(bytes));
  return shape.hasSurrogateEscape ? toWellFormed(value) : value;
}

/** V8's message quotes the text, so it is not passed on. */
function parseText(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    if (text.trim() === '') throw unreadable('is empty');
    throw unreadable(/^\s*</.test(text) ? 'is markup, not JSON' : 'is not JSON');
  }
}

function unreadable(why: string): StoreError {
  return new StoreError('invalidResponse', `the store's answer ${why}`, { status: 200 });
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * Linear, without recursion or allocation; exact for valid JSON, and harmless for anything else, which the parser then
 * refuses. It reads bytes because no byte of a longer UTF-8 sequence looks like one of JSON's own characters.
 */
function shapeOf(bytes: Uint8Array): JsonShape {
  let depth = 0;
  let deepest = 0;
  let values = 1;
  let hasSurrogateEscape = false;
  let isInString = false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (isInString) {
      if (byte === QUOTE) isInString = false;
      else if (byte === BACKSLASH) {
        if (!hasSurrogateEscape) hasSurrogateEscape = isSurrogateEscape(bytes, i);
        i += 1;
      }
    } else if (byte === QUOTE) isInString = true;
    else if (byte === COMMA) values += 1;
    else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      values += 1;
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) depth -= 1;
  }
  return { depth: deepest, values, hasSurrogateEscape };
}

/** `\uD800` to `\uDFFF`, in any case, at the backslash. */
function isSurrogateEscape(bytes: Uint8Array, at: number): boolean {
  const first = bytes[at + 2];
  const second = bytes[at + 3];
  if (bytes[at + 1] !== 0x75 || (first !== 0x64 && first !== 0x44) || second === undefined) return false;
  return second === 0x38 || second === 0x39 || (second >= 0x41 && second <= 0x46) || (second >= 0x61 && second <= 0x66);
}

/**
 * The value with every lone surrogate, in member names too, replaced by U+FFFD. It changes the value in place, which
 * nobody else holds yet: a copy of everything would cost more than the parsing did. For values of bounded depth.
 */
function toWellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) {
    const elements: unknown[] = value;
    for (const [index, element] of elements.entries()) elements[index] = toWellFormed(element);
    return elements;
  }
  return isObject(value) ? membersToWellFormed(value) : value;
}

function membersToWellFormed(object: Record<string, unknown>): Record<string, unknown> {
  let hasWellFormedNames = true;
  for (const name of Object.keys(object)) {
    object[name] = toWellFormed(object[name]);
    hasWellFormedNames &&= name.isWellFormed();
  }
  if (hasWellFormedNames) return object;
  // fromEntries defines members, so that one named __proto__ stays a member.
  return Object.fromEntries(Object.entries(object).map(([name, member]) => [name.toWellFormed(), member]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
