/**
 * The parameters of paths and queries. Each is declared once, with the words that document it and, in a query, the rule that
 * reads it and a sentence that says this rule (Q2: v1 corrects invalid numbers; Q3, Q4: v2 refuses a parameter that breaks its
 * rule, and names every fault). Only required parameters have examples, because a docs page fills examples in and sends them.
 */
import type { oas31 } from 'zod-openapi';
import { ID_LENGTH, ID_PATTERN, UUID_PATTERN } from '../domain/vocabulary.ts';
import { EXAMPLE_EVALUATION_ID, EXAMPLE_SCORECARD_ID, EXAMPLE_WORKSPACE_ID } from './openapi/examples.ts';
import { ErrorText, forbidden, notFound, Problem } from './problem.ts';
import type { RequestInput } from './state.ts';

const UUID = { type: 'string', format: 'uuid' } as const;
const ID = { type: 'string', pattern: ID_PATTERN.source, ...ID_LENGTH } as const;
const ID_RULE = '1 to 64 letters, digits, hyphens and underscores';

export const workspaceParameter = inPath(
  'workspaceId',
  'The workspace. Must be a UUID, of a workspace that the key may see; otherwise 403.',
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
  return inPath(name, `${description} Must be ${ID_RULE}; otherwise 404.`, ID, EXAMPLES[name]);
}

function inPath(name: string, description: string, schema: oas31.SchemaObject, example: string): oas31.ParameterObject {
  return { name, in: 'path', required: true, description, schema, example };
}

/** Reads an id of the path: the route's 404 for one that no record can have (Q7: nothing is sent to the store). */
export function parseId({ params }: RequestInput, name: IdName): string | Problem {
  const id = params[name] ?? '';
  return ID_PATTERN.test(id) ? id : notFound(`The ${name} of the path is no id: ${ID_RULE}.`);
}

type Parsed<T> = { readonly value: T } | { readonly fault: string };

export interface Parameter<T> {
  readonly openapi: oas31.ParameterObject;
  /** Used if the parameter is absent or breaks its rule. */
  readonly fallback: T;
  /** Whether a repeated one counts as absent. */
  readonly isLenient?: boolean;
  /** Reads a value that was given once. */
  readonly parse: (text: string) => Parsed<T>;
}

/** Q1: an integer is written with up to nine digits. */
const INTEGER = /^-?[0-9]{1,9}$/;
const MAX_INTEGER = 999_999_999;
const INTEGER_TYPE = { type: 'integer', format: 'int32' } as const;
/** How much of what was given an error repeats. */
const MAX_ECHO_LENGTH = 40;

/** In v1. */
const EMPTY_IS_ABSENT = ' Empty counts as absent.';

/** The rule as a sentence, for people. */
function withRule(description: string, rule: string): string {
  return `${description} Must be ${rule}, given once; otherwise 400.`;
}

interface IntegerRule {
  readonly min: number;
  readonly max?: number;
  readonly fallback: number;
}

/** v2: an integer within its bounds, or a fault. */
export function strictInteger(name: string, description: string, rule: IntegerRule): Parameter<number> {
  const { min, max = MAX_INTEGER, fallback } = rule;
  const schema = { ...INTEGER_TYPE, minimum: min, maximum: max, default: fallback } as const;
  const allowed = `an integer from ${min} to ${max}`;
  return declared({ name, description: withRule(description, allowed), schema }, fallback, (text) => {
    const value = INTEGER.test(text) ? Number(text) : null;
    if (value !== null && value >= min && value <= max) return { value };
    return { fault: `The query parameter ${name} must be ${allowed}${butGiven(text)}.` };
  });
}

/** v1: no integer counts as the fallback, one out of range as the nearest bound (Q2). */
export function lenientInteger(name: string, description: string, rule: IntegerRule): Parameter<number> {
  const { min, max, fallback } = rule;
  const bounds = max === undefined ? { minimum: min } : { minimum: min, maximum: max };
  const schema = { ...INTEGER_TYPE, ...bounds, default: fallback } as const;
  const allowed = max === undefined ? `an integer of at least ${min}` : `an integer from ${min} to ${max}`;
  const otherwise = `A number out of range counts as the nearest allowed one; anything else counts as ${fallback}.`;
  const described = `${description} Must be ${allowed}, given once. ${otherwise}`;
  const parameter = declared({ name, description: described, schema }, fallback, (text) => {
    const value = INTEGER.test(text) ? Number(text) : fallback;
    return { value: Math.min(max ?? Infinity, Math.max(min, value)) };
  });
  return { ...parameter, isLenient: true };
}

/** As JSON Schema has it; no store has a use for a control character. */
const TEXT_PATTERN = '^[^\\u0000-\\u001F\\u007F]*$';
const TEXT = new RegExp(TEXT_PATTERN, 'u');
const TEXT_RULE = ' (Unicode code points), none of them a control character';

/** v2: 1 to `maxLength` characters, in Unicode code points (Q1), and no control characters (Q4). */
export function strictText(name: string, description: string, maxLength: number): Parameter<string | null> {
  return textParameter(name, withRule(description, `1 to ${maxLength} characters${TEXT_RULE}`), maxLength, (value) => {
    const { length } = Array.from(value);
    if (length >= 1 && length <= maxLength) return { value };
    return { fault: `The query parameter ${name} must hold 1 to ${maxLength} characters; ${length} were given.` };
  });
}

/** v1: up to `maxLength` characters and no control characters (Q2); an empty text counts as absent. */
export function lenientText(name: string, description: string, maxLength: number): Parameter<string | null> {
  const described = withRule(description, `at most ${maxLength} characters${TEXT_RULE}`) + EMPTY_IS_ABSENT;
  return textParameter(name, described, maxLength, (value) => {
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
  return declared({ name, description: withRule(description, ID_RULE), schema: ID }, null, (text) => {
    if (ID_PATTERN.test(text)) return { value: text };
    return { fault: `The query parameter ${name} must be made of ${ID_RULE}${butGiven(text)}.` };
  });
}

/** No cursor that the API gives is longer. */
const MAX_CURSOR_LENGTH = 1024;

/** v2: a place that the API has given, or empty. Its contents are not looked at here. */
export function cursor(name: string, description: string): Parameter<string | null> {
  const schema = { type: 'string', maxLength: MAX_CURSOR_LENGTH } as const;
  return declared({ name, description, schema, allowEmptyValue: true }, null, (text) => {
    if (text.length <= MAX_CURSOR_LENGTH) return { value: text };
    return { fault: `The query parameter ${name} may hold at most ${MAX_CURSOR_LENGTH} characters.` };
  });
}

/** v2: the same, never empty. */
export function givenCursor(name: string, description: string): Parameter<string | null> {
  const schema = { type: 'string', minLength: 1, maxLength: MAX_CURSOR_LENGTH } as const;
  return declared({ name, description, schema }, null, (text) => {
    if (text !== '' && text.length <= MAX_CURSOR_LENGTH) return { value: text };
    return { fault: `The query parameter ${name} must hold 1 to ${MAX_CURSOR_LENGTH} characters.` };
  });
}

/** v1: a UUID; an empty text counts as absent. */
export function lenientUuid(name: string, description: string): Parameter<string | null> {
  return declared(
    { name, description: withRule(description, 'a UUID') + EMPTY_IS_ABSENT, schema: UUID },
    null,
    (text) => {
      if (text === '') return { value: null };
      return UUID_PATTERN.test(text) ? { value: text } : { fault: `The query parameter ${name} must be a UUID.` };
    },
  );
}

/** v2: a UUID, in lower case. */
export function strictUuid(name: string, description: string): Parameter<string | null> {
  return declared({ name, description: withRule(description, 'a UUID'), schema: UUID }, null, (text) => {
    if (UUID_PATTERN.test(text)) return { value: text.toLowerCase() };
    return { fault: `The query parameter ${name} must be a UUID${butGiven(text)}.` };
  });
}

/** The refusal of a query that `asksForForeign`. */
export const WORKSPACE_FORBIDDEN = forbidden('workspace_forbidden', "workspaceId is not among the key's");

/** Whether the query asks for a workspace, by that parameter, which is none of the reader's. */
export function asksForForeign(
  { query, ownWorkspaceIds }: Pick<RequestInput, 'query' | 'ownWorkspaceIds'>,
  parameter: Parameter<string | null>,
): boolean {
  const narrowedTo = getParameter(query, parameter);
  return typeof narrowedTo === 'string' && ownWorkspaceIds?.includes(narrowedTo) === false;
}

/** Any value but `false` is true, the empty one too (Q3). */
export function flag(name: string, description: string): Parameter<boolean> {
  const schema = { type: 'boolean', default: false } as const;
  const rule = 'Must be given once; otherwise 400. Any value but `false` counts as true, the empty one too.';
  return declared({ name, description: `${description} ${rule}`, schema, allowEmptyValue: true }, false, (text) => ({
    value: text !== 'false',
  }));
}

function declared<T>(
  { name, ...about }: Omit<oas31.ParameterObject, 'in'>,
  fallback: T,
  parse: Parameter<T>['parse'],
): Parameter<T> {
  return { openapi: { name, in: 'query', ...about }, fallback, parse };
}

/**
 * Reads parameters with `get`, one by one. A Problem of status 400 names every fault (Q4); any parameter but `known` is one,
 * too.
 */
export function strictQuery<T>(
  query: URLSearchParams,
  known: readonly Parameter<unknown>[],
  read: (get: Get) => T,
): T | Problem {
  const names = known.map(({ openapi }) => openapi.name);
  const unknown = [...new Set(query.keys())].filter((name) => !names.includes(name));
  const faults = unknown.map((name) => unknownParameter(name, names));
  const values = read(getFrom(query, faults));
  return faults.length > 0 ? parameterInvalid(faults.join(' ')) : values;
}

/** The same, but parameters that are not asked for are ignored, and the first fault is the only one named (Q2). */
export function lenientQuery<T>(query: URLSearchParams, read: (get: Get) => T): T | Problem {
  const faults: string[] = [];
  const values = read(getFrom(query, faults));
  return faults[0] === undefined ? values : parameterInvalid(faults[0]);
}

type Get = <V>(parameter: Parameter<V>) => V;

/** Adds what is wrong to `faults`. */
function getFrom(query: URLSearchParams, faults: string[]): Get {
  return (parameter) => {
    const parsed = parseOnce(query, parameter);
    if (!('fault' in parsed)) return parsed.value;
    faults.push(parsed.fault);
    return parameter.fallback;
  };
}

/** For reads that take no parameters: a Problem of status 400 if one was given. */
export function refuseParameters(query: URLSearchParams): Problem | null {
  return strictQuery(query, [], () => null);
}

/** Reads one parameter by itself. A Problem of status 400 if it is repeated or breaks its rule. */
function getParameter<T>(query: URLSearchParams, parameter: Parameter<T>): T | Problem {
  const parsed = parseOnce(query, parameter);
  return 'fault' in parsed ? parameterInvalid(parsed.fault) : parsed.value;
}

function parseOnce<T>(query: URLSearchParams, parameter: Parameter<T>): Parsed<T> {
  const { fallback, parse, openapi, isLenient = false } = parameter;
  const [text, ...more] = query.getAll(openapi.name);
  if (text === undefined || (isLenient && more.length > 0)) return { value: fallback };
  return more.length > 0 ? { fault: `The query parameter ${openapi.name} may be given only once.` } : parse(text);
}

function parameterInvalid(faults: string): Problem {
  return new Problem('parameter_invalid', new ErrorText(faults));
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
