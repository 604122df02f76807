/**
 * The parameters of paths and queries. Each is declared once, with the words that document it and, in a query, the rule that
 * reads it (Q2: v1 corrects invalid numbers; Q3, Q4: v2 refuses a parameter that breaks its rule, and names every fault). Only
 * required parameters have examples, because a docs page fills examples in and then sends them.
 */
import type { oas31 } from 'zod-openapi';
import { ID_PATTERN, UUID_PATTERN } from '../domain/records.ts';
import { EXAMPLE_EVALUATION_ID, EXAMPLE_SCORECARD_ID, EXAMPLE_WORKSPACE_ID } from './openapi/examples.ts';
import { notFound, Problem } from './problem.ts';
import type { RequestView } from './state.ts';

const UUID = { type: 'string', format: 'uuid' } as const;
const ID = { type: 'string', pattern: ID_PATTERN.source } as const;
const ID_RULE = '1 to 64 letters, digits, hyphens and underscores';

export const workspaceParameter = inPath(
  'workspaceId',
  'The workspace. Anything that is no UUID is a workspace that the key may not see: 403.',
  UUID,
  EXAMPLE_WORKSPACE_ID,
);

const EXAMPLES = {
  reportId: EXAMPLE_EVALUATION_ID,
  callId: EXAMPLE_EVALUATION_ID,
  scorecardId: EXAMPLE_SCORECARD_ID,
} as const;
type IdName = keyof typeof EXAMPLES;

/** An id of the store in the path. */
export function pathId(name: IdName, description: string): oas31.ParameterObject {
  return inPath(name, `${description} Against the pattern: 404.`, ID, EXAMPLES[name]);
}

function inPath(name: string, description: string, schema: oas31.SchemaObject, example: string): oas31.ParameterObject {
  return { name, in: 'path', required: true, description, schema, example };
}

/** Reads an id of the path. Throws the route's 404 for one that no record can have (Q7: nothing is sent to the store). */
export function parseId({ params }: RequestView, name: IdName): string {
  const id = params[name] ?? '';
  if (ID_PATTERN.test(id)) return id;
  throw notFound(`The ${name} of the path is no id: ${ID_RULE}.`);
}

type Parsed<T> = { readonly value: T } | { readonly fault: string };

export interface Parameter<T> {
  readonly openapi: oas31.ParameterObject;
  /** Used if the parameter is absent or breaks its rule. */
  readonly fallback: T;
  /** Reads a value that was given once. */
  readonly parse: (text: string) => Parsed<T>;
}

/** Q1: an integer is written with up to nine digits. */
const INTEGER = /^-?[0-9]{1,9}$/;
const MAX_INTEGER = 999_999_999;
/** How much of what was given an error repeats. */
const MAX_ECHO_LENGTH = 40;

interface IntegerRule {
  readonly min: number;
  readonly max?: number;
  readonly fallback: number;
}

/** v2: an integer within its bounds, or a fault. */
export function strictInteger(name: string, description: string, rule: IntegerRule): Parameter<number> {
  const { min, max, fallback } = rule;
  const schema = { type: 'integer', minimum: min, maximum: max ?? MAX_INTEGER, default: fallback } as const;
  return declared({ name, description, schema }, fallback, (text) => {
    const value = INTEGER.test(text) ? Number(text) : null;
    if (value !== null && value >= min && (max === undefined || value <= max)) return { value };
    const allowed = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
    return { fault: `The query parameter ${name} must be an integer ${allowed}${butGiven(text)}.` };
  });
}

/** v1: no integer counts as the fallback, one out of range as the nearest bound (Q2). */
export function lenientInteger(name: string, description: string, rule: IntegerRule): Parameter<number> {
  const { min, max, fallback } = rule;
  const bounds = max === undefined ? { minimum: min } : { minimum: min, maximum: max };
  const schema = { type: 'integer', ...bounds, default: fallback } as const;
  return declared({ name, description, schema }, fallback, (text) => {
    const value = INTEGER.test(text) ? Number(text) : fallback;
    return { value: Math.min(max ?? Infinity, Math.max(min, value)) };
  });
}

/** As JSON Schema has it; no store has a use for a control character. */
const TEXT_PATTERN = '^[^\\u0000-\\u001F\\u007F]*$';
const TEXT = new RegExp(TEXT_PATTERN, 'u');

/** v2: 1 to `maxLength` characters, in Unicode code points (Q1), and no control characters (Q4). */
export function strictText(name: string, description: string, maxLength: number): Parameter<string | null> {
  return textParameter(name, description, maxLength, (value) => {
    const { length } = Array.from(value);
    if (length >= 1 && length <= maxLength) return { value };
    return { fault: `The query parameter ${name} must hold 1 to ${maxLength} characters; ${length} were given.` };
  });
}

/** v1: up to `maxLength` characters and no control characters (Q2); an empty text counts as absent. */
export function lenientText(name: string, description: string, maxLength: number): Parameter<string | null> {
  return textParameter(name, description, maxLength, (value) => {
    const { length } = Array.from(value);
    if (length <= maxLength) return { value: value === '' ? null : value };
    return { fault: `The query parameter ${name} may hold at most ${maxLength} characters; ${length} were given.` };
  });
}

function textParameter(
  name: string,
  description: string,
  maxLength: number,
  parse: Parameter<string | null>['parse'],
): Parameter<string | null> {
  const schema = { type: 'string', minLength: 1, maxLength, pattern: TEXT_PATTERN } as const;
  return declared({ name, description, schema }, null, (value) => {
    if (TEXT.test(value)) return parse(value);
    return { fault: `The query parameter ${name} must hold no control characters (U+0000 to U+001F, U+007F).` };
  });
}

/** v2: an id of the store. */
export function strictId(name: string, description: string): Parameter<string | null> {
  return declared({ name, description, schema: ID }, null, (text) => {
    if (ID_PATTERN.test(text)) return { value: text };
    return { fault: `The query parameter ${name} must be made of ${ID_RULE}${butGiven(text)}.` };
  });
}

/** v1: a UUID; an empty text counts as absent. */
export function lenientUuid(name: string, description: string): Parameter<string | null> {
  return declared({ name, description, schema: UUID }, null, (text) => {
    if (text === '') return { value: null };
    return UUID_PATTERN.test(text) ? { value: text } : { fault: `The query parameter ${name} must be a UUID.` };
  });
}

/** v2: a UUID, in lower case. */
export function strictUuid(name: string, description: string): Parameter<string | null> {
  return declared({ name, description, schema: UUID }, null, (text) => {
    if (UUID_PATTERN.test(text)) return { value: text.toLowerCase() };
    return { fault: `The query parameter ${name} must be a UUID${butGiven(text)}.` };
  });
}

/** Any value but `false` is true, the empty one too (Q3). */
export function flag(name: string, description: string): Parameter<boolean> {
  const schema = { type: 'boolean', default: false } as const;
  return declared({ name, description, schema, allowEmptyValue: true }, false, (text) => ({ value: text !== 'false' }));
}

function declared<T>(
  { name, ...about }: Omit<oas31.ParameterObject, 'in'>,
  fallback: T,
  parse: Parameter<T>['parse'],
): Parameter<T> {
  return { openapi: { name, in: 'query', ...about }, fallback, parse };
}

/**
 * Reads parameters with `get`, one by one. Throws one Problem of status 400 that names every fault (Q4); any parameter but
 * `known` is one, too.
 */
export function strictQuery<T>(
  query: URLSearchParams,
  known: readonly Parameter<unknown>[],
  read: (get: <V>(parameter: Parameter<V>) => V) => T,
): T {
  const names = known.map(({ openapi }) => openapi.name);
  const unknown = [...new Set(query.keys())].filter((name) => !names.includes(name));
  const faults = unknown.map((name) => unknownParameter(name, names));
  const values = read((parameter) => {
    const parsed = parseOnce(query, parameter);
    if (!('fault' in parsed)) return parsed.value;
    faults.push(parsed.fault);
    return parameter.fallback;
  });
  if (faults.length > 0) throw new Problem('parameter_invalid', faults.join(' '));
  return values;
}

/** For reads that take no parameters. Throws a Problem of status 400 if one was given. */
export function refuseParameters(query: URLSearchParams): void {
  strictQuery(query, [], () => null);
}

/** Reads one parameter by itself. Throws a Problem of status 400 if it is repeated or breaks its rule. */
export function getParameter<T>(query: URLSearchParams, parameter: Parameter<T>): T {
  const parsed = parseOnce(query, parameter);
  if ('fault' in parsed) throw new Problem('parameter_invalid', parsed.fault);
  return parsed.value;
}

/** v1's integers: a repeated one counts as absent (Q2). */
export function getLenient<T>(query: URLSearchParams, parameter: Parameter<T>): T {
  const values = query.getAll(parameter.openapi.name);
  return values.length > 1 ? parameter.fallback : getParameter(query, parameter);
}

function parseOnce<T>(query: URLSearchParams, { openapi: { name }, fallback, parse }: Parameter<T>): Parsed<T> {
  const [text, ...more] = query.getAll(name);
  if (text === undefined) return { value: fallback };
  return more.length > 0 ? { fault: `The query parameter ${name} may be given only once.` } : parse(text);
}

function butGiven(value: string): string {
  return value === '' ? '; it was empty' : `; '${shortened(value)}' was given`;
}

function unknownParameter(name: string, known: readonly string[]): string {
  const allowed = known.length === 0 ? 'This endpoint takes none.' : `Known here: ${known.join(', ')}.`;
  return `Unknown query parameter '${shortened(name)}'. ${allowed}`;
}

function shortened(text: string): string {
  const points = Array.from(text.slice(0, 2 * MAX_ECHO_LENGTH));
  return points.length <= MAX_ECHO_LENGTH ? text : `${points.slice(0, MAX_ECHO_LENGTH).join('')}…`;
}
