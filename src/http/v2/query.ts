/** The queries of v2: strict, and every fault is named with its rule (Q3, Q4). */
import { ID_PATTERN, UUID_PATTERN } from '../../domain/records.ts';
import { Problem } from '../problem.ts';
import { codePointLength, integerOf, parameter } from '../query.ts';

export interface CallsQuery {
  readonly page: number;
  readonly pageSize: number;
  readonly search: string | null;
  readonly scorecardId: string | null;
}

export interface CallTranscriptQuery {
  readonly page: number;
  readonly pageSize: number;
  readonly maxChars: number;
  readonly raw: boolean;
}

const CALLS_PARAMETERS = ['workspaceId', 'page', 'pageSize', 'search', 'scorecardId'] as const;
const TRANSCRIPT_PARAMETERS = ['page', 'pageSize', 'maxChars', 'raw'] as const;
const MAX_SEARCH_LENGTH = 200;
/** How much of what was given an error repeats. */
const MAX_ECHO_LENGTH = 40;

/**
 * The workspace that a list is narrowed to, lower case; null where it is not. It is read before the rest of the query,
 * because a foreign workspace is refused before any other fault is told (K6). Throws a Problem of status 400.
 */
export function parseWorkspaceId(query: URLSearchParams): string | null {
  const given = parameter(query, 'workspaceId');
  if (given.kind === 'absent') return null;
  if (given.kind === 'repeated') throw new Problem(400, onlyOnce('workspaceId'));
  if (!UUID_PATTERN.test(given.value)) {
    throw new Problem(400, `The query parameter workspaceId must be a UUID${butGiven(given.value)}.`);
  }
  return given.value.toLowerCase();
}

/** Everything but `workspaceId`. Throws a Problem of status 400 that names every fault. */
export function parseCallsQuery(query: URLSearchParams): CallsQuery {
  return collectFaults(query, CALLS_PARAMETERS, (faults) => ({
    page: integerIn(query, { name: 'page', min: 1, max: null, byDefault: 1 }, faults),
    pageSize: integerIn(query, { name: 'pageSize', min: 1, max: 100, byDefault: 50 }, faults),
    search: searchIn(query, faults),
    scorecardId: scorecardIdIn(query, faults),
  }));
}

/** Throws a Problem of status 400 that names every fault. */
export function parseCallTranscriptQuery(query: URLSearchParams): CallTranscriptQuery {
  return collectFaults(query, TRANSCRIPT_PARAMETERS, (faults) => ({
    page: integerIn(query, { name: 'page', min: 1, max: null, byDefault: 1 }, faults),
    pageSize: integerIn(query, { name: 'pageSize', min: 1, max: 200, byDefault: 100 }, faults),
    maxChars: integerIn(query, { name: 'maxChars', min: 1, max: 50_000, byDefault: 50_000 }, faults),
    raw: flagIn(query, 'raw', faults),
  }));
}

/** For the reads that take no parameters. Throws a Problem of status 400 where one was given. */
export function refuseParameters(query: URLSearchParams): void {
  collectFaults(query, [], () => null);
}

function collectFaults<T>(query: URLSearchParams, known: readonly string[], read: (faults: string[]) => T): T {
  const faults: string[] = [];
  for (const name of new Set(query.keys())) {
    if (!known.includes(name)) faults.push(unknownParameter(name, known));
  }
  const result = read(faults);
  if (faults.length > 0) throw new Problem(400, faults.join(' '));
  return result;
}

interface IntegerRule {
  readonly name: string;
  readonly min: number;
  readonly max: number | null;
  readonly byDefault: number;
}

function integerIn(query: URLSearchParams, rule: IntegerRule, faults: string[]): number {
  const given = singleIn(query, rule.name, faults);
  if (given === null) return rule.byDefault;
  const value = integerOf(given);
  if (value !== null && value >= rule.min && (rule.max === null || value <= rule.max)) return value;
  const allowed = rule.max === null ? `of at least ${rule.min}` : `from ${rule.min} to ${rule.max}`;
  faults.push(`The query parameter ${rule.name} must be an integer ${allowed}${butGiven(given)}.`);
  return rule.byDefault;
}

function searchIn(query: URLSearchParams, faults: string[]): string | null {
  const given = singleIn(query, 'search', faults);
  if (given === null) return null;
  const length = codePointLength(given);
  if (length >= 1 && length <= MAX_SEARCH_LENGTH) return given;
  faults.push(`The query parameter search must hold 1 to ${MAX_SEARCH_LENGTH} characters; ${length} were given.`);
  return null;
}

function scorecardIdIn(query: URLSearchParams, faults: string[]): string | null {
  const given = singleIn(query, 'scorecardId', faults);
  if (given === null || ID_PATTERN.test(given)) return given;
  const rule = '1 to 64 letters, digits, hyphens and underscores';
  faults.push(`The query parameter scorecardId must be made of ${rule}${butGiven(given)}.`);
  return null;
}

/** Any value but `false` is true, the empty one too (Q3). */
function flagIn(query: URLSearchParams, name: string, faults: string[]): boolean {
  const given = singleIn(query, name, faults);
  return given !== null && given !== 'false';
}

/** The parameter's one value, or null where it is absent or, which is a fault, repeated. */
function singleIn(query: URLSearchParams, name: string, faults: string[]): string | null {
  const given = parameter(query, name);
  if (given.kind === 'repeated') faults.push(onlyOnce(name));
  return given.kind === 'one' ? given.value : null;
}

function onlyOnce(name: string): string {
  return `The query parameter ${name} may be given only once.`;
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
