/** Telling everything that is wrong with a body at once: each member with what was given and what is allowed. */
import type { z } from 'zod';
import { AdminError } from './errors.ts';

/** More would be no help to anyone, and the answer has to stay of bounded size. */
const MOST_FAULTS_LISTED = 1000;
const LONGEST_VALUE_SHOWN = 60;

/**
 * Allowed values, by member: the empty name for the body, `workspaceIds` for the member itself, `workspaceIds[]` for an element of it,
 * `limits.perMinute` within another.
 */
export type AllowedValues = Readonly<Record<string, string>>;

export interface BodyRules<T> {
  readonly schema: z.ZodType<T>;
  readonly allowed: AllowedValues;
  /** Members whose value is never repeated, since a secret may have been put there by mistake. */
  readonly secret?: ReadonlySet<string>;
}

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];
type Checked<T> = { readonly value: T; readonly faults: null } | { readonly faults: readonly string[] };

/** The value as the rules define it, or every fault of it. `at` is where it stands in the body: `keys[3]`. */
export function check<T>(rules: BodyRules<T>, value: unknown, at: string = ''): Checked<T> {
  const result = rules.schema.safeParse(value);
  if (result.success) return { value: result.data, faults: null };
  return { faults: result.error.issues.flatMap((issue) => faultsOf(issue, { rules, value, at })) };
}

/** The same, with AdminError 400 in place of faults. */
export function mustBe<T>(rules: BodyRules<T>, value: unknown): T {
  const checked = check(rules, value);
  if (checked.faults !== null) throw faulty(checked.faults);
  return checked.value;
}

/** The refusal of a body with these faults. */
export function faulty(faults: readonly string[]): AdminError {
  const count = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
  const listed = faults.slice(0, MOST_FAULTS_LISTED).map((fault) => `\n- ${fault}`);
  const left = faults.length - listed.length;
  const more = left > 0 ? `\n- and ${left} more` : '';
  return new AdminError(400, `The body has ${count}; nothing was changed.${listed.join('')}${more}`, {
    privateMessage: 'faulty body',
  });
}

interface Subject {
  readonly rules: BodyRules<unknown>;
  readonly value: unknown;
  readonly at: string;
}

function faultsOf(issue: Issue, { rules, value, at }: Subject): readonly string[] {
  const where = written(issue.path, at);
  if (issue.code === 'unrecognized_keys') {
    const known = membersOf(rules.allowed, issue.path).join(', ');
    return issue.keys.map((key) => `${member(where, plain(key))}: unknown; allowed members: ${known}`);
  }
  const name = named(issue.path);
  const allowed = rules.allowed[name] ?? 'a JSON object';
  const given = valueAt(value, issue.path);
  if (given === undefined) return [`${where}: missing; allowed: ${allowed}`];
  const secret = rules.secret?.has(name) === true && typeof given === 'string';
  const text = secret ? `a text of ${given.length} characters` : shown(given);
  return [`${where === '' ? 'the body' : where}: given ${text}; allowed: ${allowed}`];
}

function member(of: string, name: string): string {
  return of === '' ? name : `${of}.${name}`;
}

/** `['keys', 0, 'name']` as `keys[0].name`; `from` is what the path begins at. */
function written(path: Path, from: string = ''): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return member(text, String(step));
  }, from);
}

/** The name of a member that a caller made up: as it is where it is a plain word. */
function plain(name: string): string {
  return /^[A-Za-z0-9_-]{1,60}$/.test(name) ? name : shown(name);
}

/** The path as the table of allowed values has it. */
function named(path: Path): string {
  return written(path).replace(/\[[0-9]+\]/g, '[]');
}

/** The members that an object at the path may have, from the table of allowed values. */
function membersOf(allowed: AllowedValues, path: Path): readonly string[] {
  const prefix = path.length === 0 ? '' : `${named(path)}.`;
  return Object.keys(allowed)
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter((name) => name !== '' && !/[.[]/.test(name));
}

function valueAt(value: unknown, path: Path): unknown {
  let reached = value;
  for (const step of path) {
    if (typeof reached !== 'object' || reached === null) return undefined;
    reached = Object.getOwnPropertyDescriptor(reached, step)?.value;
  }
  return reached;
}

/** A value in a few words; text is cut, so that an answer never grows with what was sent. */
function shown(value: unknown): string {
  if (typeof value === 'string') {
    const cut = value.length > LONGEST_VALUE_SHOWN;
    return JSON.stringify(cut ? `${value.slice(0, LONGEST_VALUE_SHOWN)}...` : value);
  }
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  return String(value);
}
