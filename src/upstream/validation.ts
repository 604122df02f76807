/**
 * From the bytes of a store that cannot be trusted to a record: what the interface lists, of the right type, and nothing
 * else. One pass over the bytes refuses nesting (a parsed value of depth 5,000 can no longer be walked or written) and
 * sheer number of values, before anything is parsed.
 */
import { setImmediate } from 'node:timers/promises';
import type { z } from 'zod';
import { openObjectSchema, UUID_PATTERN } from '../domain/records.ts';
import { StoreError } from './store-error.ts';

/** The interface's deepest record has 6 levels; the rest is for the objects that it leaves open. */
const MAX_DEPTH = 64;
/** Takes some 50 ms to parse and check; a full list page holds some 20,000. */
const MAX_VALUES = 250_000;

/** One half of a surrogate pair as an escape; a backslash before it may make it text, which costs only time. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/**
 * The value of a JSON text in UTF-8, with every lone surrogate, in member names too, replaced by U+FFFD. Throws a StoreError
 * of kind `invalidResponse` if the bytes are no such text, or are deeper or have more values than allowed.
 */
export function parseJson(bytes: Uint8Array): unknown {
  const { depth, values } = shapeOf(bytes);
  if (depth > MAX_DEPTH) throw unreadable(`is nested deeper than ${MAX_DEPTH} levels`);
  if (values > MAX_VALUES) throw unreadable(`has more than ${MAX_VALUES} values`);
  const text = new TextDecoder().decode(bytes);
  try {
    const value: unknown = JSON.parse(text, SURROGATE_ESCAPE.test(text) ? toWellFormed : undefined);
    return value;
  } catch {
    // V8's message quotes the text, so it is not passed on.
    if (text.trim() === '') throw unreadable('is empty');
    throw unreadable(/^\s*</.test(text) ? 'is markup, not JSON' : 'is not JSON');
  }
}

function toWellFormed(_name: string, value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (!isObject(value) || Array.isArray(value) || Object.keys(value).every((name) => name.isWellFormed())) return value;
  // fromEntries defines members, so that one named __proto__ stays a member.
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name.toWellFormed(), member]));
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
 * How deep the value is, and at most how many values it has, scalars included. Linear, without recursion or allocation;
 * exact for valid JSON, and harmless for anything else, which the parser then refuses. It reads bytes because no byte of a
 * longer UTF-8 sequence looks like one of JSON's own characters.
 */
function shapeOf(bytes: Uint8Array): { readonly depth: number; readonly values: number } {
  let depth = 0;
  let deepest = 0;
  let values = 1;
  let isInString = false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    if (isInString) {
      if (byte === QUOTE) isInString = false;
      else if (byte === BACKSLASH) i += 1;
    } else if (byte === QUOTE) isInString = true;
    else if (byte === COMMA) values += 1;
    else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      values += 1;
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) depth -= 1;
  }
  return { depth: deepest, values };
}

/** Internal members of the store. They are dropped from open objects too, at any depth. */
const INTERNAL_MEMBERS: ReadonlySet<string> = new Set(['modelRun', 'reviewerNotes', 'costCents', 'internalFlags']);

/**
 * Most values within one member that is validated. A schema goes on to the last fault, at some 5 microseconds each, so
 * an array of a million wrong elements would hold the event loop for seconds.
 */
const MAX_MEMBER_VALUES = 20_000;

export type Validation<T> =
  | { readonly ok: true; readonly record: T }
  /** `path` leads to the first faulty member: `evaluatee.email`, `people.0.spoke`. */
  | { readonly ok: false; readonly path: string };

/**
 * A function that checks values against the schema, and takes internal members out of open objects, to which the schema
 * does nothing. It never throws. For values of bounded depth.
 */
export function validatorOf<S extends z.ZodObject>(schema: S): (value: unknown) => Validation<z.output<S>> {
  const names = Object.keys(schema.shape);
  const open = names.filter((name) => schema.shape[name] === openObjectSchema);
  const bounded = names.filter((name) => !open.includes(name));
  return (value) => {
    const members = isObject(value) ? value : {};
    const oversized = bounded.find((name) => spend(MAX_MEMBER_VALUES, members[name]) < 0);
    if (oversized !== undefined) return { ok: false, path: oversized };
    const cleaned = Object.fromEntries(open.map((name) => [name, withoutInternalMembers(members[name])]));
    const result = schema.safeParse(isObject(value) && open.length > 0 ? { ...members, ...cleaned } : value);
    return result.success ? { ok: true, record: result.data } : { ok: false, path: faultyMember(result.error) };
  };
}

/** Leads to the first faulty member; stands for the record itself if there is no member to name. */
export function faultyMember({ issues }: z.ZodError): string {
  const path = issues[0]?.path ?? [];
  return path.length === 0 ? '(record)' : path.map(String).join('.');
}

/** The workspace that a record says it is of, whatever else is wrong with it, in lower case; null if it says none. */
export function workspaceIdOf(value: unknown): string | null {
  const id = isObject(value) ? value['workspaceId'] : null;
  return typeof id === 'string' && UUID_PATTERN.test(id) ? id.toLowerCase() : null;
}

/** The rest of a budget of values after this one, below zero as soon as it is spent. */
function spend(budget: number, value: unknown): number {
  let left = budget - 1;
  if (!isObject(value)) return left;
  for (const [name, member] of Object.entries(value)) {
    if (left < 0) return left;
    if (!INTERNAL_MEMBERS.has(name)) left = spend(left, member);
  }
  return left;
}

function withoutInternalMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutInternalMembers);
  if (!isObject(value)) return value;
  const members = Object.entries(value).filter(([name]) => !INTERNAL_MEMBERS.has(name));
  return Object.fromEntries(members.map(([name, member]) => [name, withoutInternalMembers(member)]));
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

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
