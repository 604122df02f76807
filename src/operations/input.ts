/** Checks what an operator gives. A refusal names every fault: what was given, and what is allowed. */
import { z } from 'zod';
import { AdminError } from './errors.ts';

/** More would be no help to anyone, and the answer has to stay of bounded size. */
const MAX_FAULTS = 1000;
const MAX_VALUE_LENGTH = 60;
const MAX_PARAMETER_LENGTH = 100;

/** A value as the schema defines it. Throws AdminError 400 with every fault. */
export function mustBe<T>(schema: z.ZodType<T>, value: unknown): T {
  const checked = check(schema, value);
  if (checked.faults !== null) throw faulty(checked.faults);
  return checked.value;
}

/** The refusal of a body with these faults. */
export function faulty(faults: readonly string[]): AdminError {
  const count = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
  const listed = faults.slice(0, MAX_FAULTS).map((fault) => `\n- ${fault}`);
  const left = faults.length - listed.length;
  const more = left > 0 ? `\n- and ${left} more` : '';
  return new AdminError(400, `The body has ${count}; nothing was changed.${listed.join('')}${more}`, {
    privateMessage: 'faulty body',
  });
}

type Checked<T> =
  | { readonly value: T; readonly faults: null }
  | { readonly value: null; readonly faults: readonly string[] };

/** The value as the schema defines it, or every fault of it. `at` is where it stands in the body: `keys[3]`. */
export function check<T>(schema: z.ZodType<T>, value: unknown, at: string = ''): Checked<T> {
  const result = schema.safeParse(value);
  if (result.success) return { value: result.data, faults: null };
  const described = z.toJSONSchema(schema, { io: 'input' });
  return { value: null, faults: result.error.issues.flatMap((issue) => faultsOf(issue, { described, value, at })) };
}

function faultsOf(
  issue: z.core.$ZodIssue,
  { described, value, at }: { readonly described: Described; readonly value: unknown; readonly at: string },
): readonly string[] {
  const path = pathText(issue.path, at);
  const member = issue.path.reduce<Described | undefined>(memberOf, described);
  if (issue.code === 'unrecognized_keys') {
    const members = Object.keys(objectOf(member)?.properties ?? {});
    return issue.keys.map((key) => {
      const plain = /^[A-Za-z0-9_-]{1,60}$/.test(key) ? key : shown(key);
      return `${path === '' ? plain : `${path}.${plain}`}: unknown; allowed members: ${members.join(', ')}`;
    });
  }
  const allowed = member?.description ?? 'a JSON object';
  const given = valueAt(value, issue.path);
  if (given === undefined) return [`${path}: missing; allowed: ${allowed}`];
  const isSecret = member?.writeOnly === true && typeof given === 'string';
  const text = isSecret ? `a text of ${given.length} characters` : shown(given);
  return [`${path === '' ? 'the body' : path}: given ${text}; allowed: ${allowed}`];
}

/** A schema as JSON Schema: it has the descriptions of all members. */
export type Described = z.core.JSONSchema.BaseSchema;

export function memberOf(schema: Described | undefined, step: PropertyKey): Described | undefined {
  const inner = typeof step === 'number' ? arrayOf(schema)?.items : objectOf(schema)?.properties?.[String(step)];
  return typeof inner === 'object' && !Array.isArray(inner) ? inner : undefined;
}

/** A member that may be null has its properties one step further in. */
function objectOf(schema: Described | undefined): Described | undefined {
  return schema?.anyOf?.find(({ properties }) => properties !== undefined) ?? schema;
}

/** The same for the elements of an array. */
function arrayOf(schema: Described | undefined): Described | undefined {
  return schema?.anyOf?.find(({ items }) => items !== undefined) ?? schema;
}

/** `['keys', 0, 'name']` as `keys[0].name`; `from` is what the path begins at. */
function pathText(path: readonly PropertyKey[], from: string = ''): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, from);
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let reached = value;
  for (const step of path) {
    if (typeof reached !== 'object' || reached === null) return undefined;
    reached = Object.getOwnPropertyDescriptor(reached, step)?.value;
  }
  return reached;
}

/** A value in a few words; text is cut, so that an answer never grows with what was sent. */
function shown(value: unknown): string {
  if (typeof value === 'string') return quoted(value, MAX_VALUE_LENGTH);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  return String(value);
}

/** In quotes, and never longer than a line; `(none)` for nothing. */
export function quoted(text: string | undefined, most: number = MAX_PARAMETER_LENGTH): string {
  if (text === undefined) return '(none)';
  return JSON.stringify(text.length > most ? `${text.slice(0, most)}...` : text);
}
