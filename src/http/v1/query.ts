/** The query of v1's list: lenient with numbers, strict with text (Q2). */
import { UUID_PATTERN } from '../../domain/records.ts';
import { Problem } from '../problem.ts';
import { codePointLength, integerOf, parameter } from '../query.ts';

export interface ReportsQuery {
  readonly page: number;
  readonly limit: number;
  readonly search: string | null;
  readonly scorecardId: string | null;
}

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 50;
const MAX_SEARCH_LENGTH = 100;

/** Throws a Problem of status 400 for a search or a scorecardId that can't be meant. Unknown parameters are ignored. */
export function parseReportsQuery(query: URLSearchParams): ReportsQuery {
  return {
    page: Math.max(1, integerParameter(query, 'page') ?? 1),
    limit: Math.min(MAX_LIMIT, Math.max(1, integerParameter(query, 'limit') ?? DEFAULT_LIMIT)),
    search: parseSearch(query),
    scorecardId: parseScorecardId(query),
  };
}

function integerParameter(query: URLSearchParams, name: string): number | null {
  const given = parameter(query, name);
  return given.kind === 'one' ? integerOf(given.value) : null;
}

function parseSearch(query: URLSearchParams): string | null {
  const given = parameter(query, 'search');
  if (given.kind === 'absent') return null;
  if (given.kind === 'repeated') throw new Problem(400, 'The query parameter search may be given only once.');
  const length = codePointLength(given.value);
  if (length > MAX_SEARCH_LENGTH) {
    throw new Problem(
      400,
      `The query parameter search may hold at most ${MAX_SEARCH_LENGTH} characters; ${length} were given.`,
    );
  }
  return given.value === '' ? null : given.value;
}

function parseScorecardId(query: URLSearchParams): string | null {
  const given = parameter(query, 'scorecardId');
  if (given.kind === 'absent' || (given.kind === 'one' && given.value === '')) return null;
  if (given.kind === 'repeated') throw new Problem(400, 'The query parameter scorecardId may be given only once.');
  if (!UUID_PATTERN.test(given.value)) throw new Problem(400, 'The query parameter scorecardId must be a UUID.');
  return given.value;
}
