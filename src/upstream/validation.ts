/** From a value of the store to a record: what the interface lists, of the right type, and nothing else. */
import { z } from 'zod';
import { UUID_PATTERN } from '../domain/vocabulary.ts';
import { openObjectSchema } from '../domain/records.ts';
import { createYield } from '../time/turns.ts';
import { eachMember, isObject, type Members } from './json.ts';

/** Internal members of the store. They are dropped from open objects too, at any depth. */
const INTERNAL_MEMBERS: ReadonlySet<string> = new Set(['modelRun', 'reviewerNotes', 'costCents', 'internalFlags']);

/**
 * Most values within one member that is validated. A schema goes on to the last fault, at some 5 microseconds each, so
 * an array of a million wrong elements would hold the event loop for seconds.
 */
const MAX_MEMBER_VALUES = 20_000;
/** A member with more values is checked by itself first, so that faults in several of them are not all searched in one go. */
const LARGE_MEMBER_VALUES = 1000;

export type Validation<T> =
  | { readonly ok: true; readonly record: T }
  /** `path` leads to the first faulty member: `evaluatee.email`, `people.0.spoke`. */
  | { readonly ok: false; readonly path: string };

/**
 * A function that checks values against the schema, and takes internal members out of their open objects, to which the
 * schema does nothing. It never rejects. For values of bounded depth.
 */
export function validatorOf<S extends z.ZodObject<z.ZodRawShape>>(
  schema: S,
): (value: unknown) => Promise<Validation<z.output<S>>> {
  const names = Object.keys(schema.shape);
  const open = names.filter((name) => schema.shape[name] === openObjectSchema);
  const bounded = names.filter((name) => !open.includes(name));
  return async (value) => {
    const yieldToEventLoop = createYield();
    const members = isObject(value) ? value : {};
    for (const name of bounded) {
      const left = spend(MAX_MEMBER_VALUES, members[name]);
      if (left < 0) return { ok: false, path: name };
      if (left > MAX_MEMBER_VALUES - LARGE_MEMBER_VALUES) continue;
      const result = z.object({ [name]: schema.shape[name] ?? z.never() }).safeParse(members);
      if (!result.success) return { ok: false, path: faultyMember(result.error) };
      await yieldToEventLoop();
    }
    for (const name of open) await eachMember(members[name], deleteInternalMember);
    const result = schema.safeParse(value);
    return result.success ? { ok: true, record: result.data } : { ok: false, path: faultyMember(result.error) };
  };
}

/** Whether records of that schema have an object whose members the interface leaves open. */
export function hasOpenObject(schema: z.ZodObject): boolean {
  return Object.values(schema.shape).includes(openObjectSchema);
}

/** Leads to the first faulty member; stands for the record itself if there is no member to name. */
export function faultyMember({ issues }: z.ZodError): string {
  const path = issues[0]?.path ?? [];
  return path.length === 0 ? '(record)' : path.map(String).join('.');
}

/** The workspace that a record says it is of, whatever else is wrong with it, in lower case; null if it says none. */
export function workspaceIdOf(value: unknown): string | null {
  const id = memberOf(value, 'workspaceId');
  return typeof id === 'string' && UUID_PATTERN.test(id) ? id.toLowerCase() : null;
}

/** Undefined if the value is no object, or has no such member. */
export function memberOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** The rest of a budget of values after this one, below zero as soon as it is spent. */
function spend(budget: number, value: unknown): number {
  let left = budget - 1;
  if (!isObject(value)) return left;
  if (Array.isArray(value) && value.length > left) return -1;
  for (const name of Object.keys(value)) {
    if (left < 0) return left;
    if (!INTERNAL_MEMBERS.has(name)) left = spend(left, value[name]);
  }
  return left;
}

function deleteInternalMember(members: Members, name: string | number): void {
  if (typeof name === 'string' && INTERNAL_MEMBERS.has(name)) delete members[name];
}
