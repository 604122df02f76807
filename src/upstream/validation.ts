/** A record of the store against its schema: what the interface lists, of the right type, and nothing else. */
import { setImmediate } from 'node:timers/promises';
import type { z } from 'zod';
import { openObjectSchema, UUID_PATTERN } from '../domain/records.ts';

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
export function withoutInternalMembers(object: JsonObject): JsonObject {
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

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null;
}
