/**
 * From the bytes of a store that cannot be trusted to a record: what the interface lists, of the right type, and nothing
 * else. One pass over the bytes refuses nesting (a parsed value of depth 5,000 can no longer be walked or written) and
 * sheer number of values, before anything is parsed.
 */
import { setImmediate } from 'node:timers/promises';
import type { z } from 'zod';
import { openObjectSchema, UUID_PATTERN } from '../domain/records.ts';
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

function membersToWellFormed(object: JsonObject): JsonObject {
  let hasWellFormedNames = true;
  for (const name of Object.keys(object)) {
    object[name] = toWellFormed(object[name]);
    hasWellFormedNames &&= name.isWellFormed();
  }
  if (hasWellFormedNames) return object;
  // fromEntries defines members, so that one named __proto__ stays a member.
  return Object.fromEntries(Object.entries(object).map(([name, member]) => [name.toWellFormed(), member]));
}

/** Internal members of the store. They are dropped from open objects too, at any depth. */
const INTERNAL_MEMBERS: ReadonlySet<string> = new Set(['modelRun', 'reviewerNotes', 'costCents', 'internalFlags']);

/**
 * Most values within one member that is validated. A schema goes on to the last fault, at some 5 microseconds each, so
 * an array of a million wrong elements would hold the event loop for seconds.
 */
const MAX_MEMBER_VALUES = 20_000;

/** Stands for the record itself if there is no member to name. */
export const RECORD_PATH = '(record)';

export type Validation<T> =
  | { readonly ok: true; readonly record: T }
  /** `path` leads to the first faulty member: `evaluatee.email`, `people.0.spoke`. */
  | { readonly ok: false; readonly path: string };

/** A function that checks values against the schema. It never throws. */
export function validatorOf<S extends z.ZodObject>(schema: S): (value: unknown) => Validation<z.output<S>> {
  // Open objects cost the schema nothing, whatever they hold.
  const bounded = Object.entries(schema.shape)
    .filter(([, member]) => member !== openObjectSchema)
    .map(([name]) => name);
  return (value) => {
    if (!isObject(value)) return { ok: false, path: RECORD_PATH };
    const oversized = bounded.find((name) => spend(MAX_MEMBER_VALUES, value[name]) < 0);
    if (oversized !== undefined) return { ok: false, path: oversized };
    const result = schema.safeParse(value);
    if (result.success) return { ok: true, record: result.data };
    const path = result.error.issues[0]?.path ?? [];
    return { ok: false, path: path.length === 0 ? RECORD_PATH : path.map(String).join('.') };
  };
}

/** The workspace that a record says it is of, whatever else is wrong with it, in lower case; null if it says none. */
export function workspaceIdOf(value: unknown): string | null {
  const id = isObject(value) ? value['workspaceId'] : null;
  return typeof id === 'string' && UUID_PATTERN.test(id) ? id.toLowerCase() : null;
}

/** What is left of a budget of values after this one, below zero as soon as it is spent. For values of bounded depth. */
function spend(budget: number, value: unknown): number {
  let left = budget - 1;
  if (typeof value !== 'object' || value === null) return left;
  for (const [name, member] of Object.entries(value)) {
    if (left < 0) return left;
    if (!INTERNAL_MEMBERS.has(name)) left = spend(left, member);
  }
  return left;
}

/** A copy of the object without the internal members. For objects of bounded depth. */
export function withoutInternalMembers(object: Readonly<JsonObject>): JsonObject {
  // fromEntries defines members, so that one named __proto__ stays a member.
  return Object.fromEntries(
    Object.entries(object)
      .filter(([name]) => !INTERNAL_MEMBERS.has(name))
      .map(([name, member]) => [name, cleaned(member)]),
  );
}

function cleaned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((element: unknown) => cleaned(element));
  return isObject(value) ? withoutInternalMembers(value) : value;
}

/** Work that has held the event loop this long lets other requests in before it goes on. */
const SLICE_MS = 20;

/** Called between the steps of a long piece of work: gives the event loop a turn if the work since the last one took long. */
export function createYield(): () => Promise<void> {
  let sinceMs = performance.now();
  return async () => {
    if (performance.now() - sinceMs < SLICE_MS) return;
    await setImmediate();
    sinceMs = performance.now();
  };
}

type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null;
}
