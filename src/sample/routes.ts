/** The interface's addresses, and what each answers from the store's records. Pure: no sockets. */
import { BadQueryError, findEvaluations, parseListQuery } from './query.ts';
import { isJsonObject, type JsonObject, type StoreRecords } from './records.ts';

/** What a call is about; `other` is no address of the interface. */
export type SampleResource =
  | 'list'
  | 'evaluation'
  | 'transcript'
  | 'scorecard'
  | 'dealInsights'
  | 'rubric'
  | 'apiKey'
  | 'other';

export interface Route {
  readonly resource: SampleResource;
  /** Empty for the list and for `other`. */
  readonly id: string;
}
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const EVALUATION = '/internal/v1/evaluations/([^/]+)';
const ROUTES: readonly (readonly [RegExp, SampleResource])[] = [
  [/^\/internal\/v1\/evaluations$/, 'list'],
  [new RegExp(`^${EVALUATION}$`), 'evaluation'],
  [new RegExp(`^${EVALUATION}/transcript$`), 'transcript'],
  [new RegExp(`^${EVALUATION}/scorecard$`), 'scorecard'],
  [new RegExp(`^${EVALUATION}/deal-insights$`), 'dealInsights'],
  [/^\/internal\/v1\/scorecards\/([^/]+)$/, 'rubric'],
  [/^\/internal\/v1\/api-keys\/([^/]+)$/, 'apiKey'],
];

const TABLES = {
  evaluation: 'evaluations',
  transcript: 'transcripts',
  scorecard: 'scoredCards',
  dealInsights: 'dealInsights',
  rubric: 'scorecards',
  apiKey: 'apiKeys',
} as const;
/** A part can be missing while its evaluation is there: then it is not ready. */
const PARTS: ReadonlySet<SampleResource> = new Set(['transcript', 'scorecard', 'dealInsights']);

/** Which resource a path names. Ids never need percent-encoding, so they are taken as they are. */
export function findRoute(path: string): Route {
  for (const [pattern, resource] of ROUTES) {
    const match = pattern.exec(path);
    if (match !== null) return { resource, id: match[1] ?? '' };
  }
  return { resource: 'other', id: '' };
}

/** An error as the interface writes it. */
export function errorAnswer(status: number, code: string, message: string): Answer {
  return { status, body: { code, message } };
}

/** What the store says to a call that is allowed. */
export function answerFrom(records: StoreRecords, { resource, id }: Route, query: URLSearchParams): Answer {
  if (resource === 'list') return answerList(records, query);
  // Not NOT_FOUND: a wrong address must not look like a record that doesn't exist.
  if (resource === 'other') return errorAnswer(404, 'UNKNOWN_ROUTE', 'there is no such address');
  const record = records[TABLES[resource]].get(id);
  if (record !== undefined) return { status: 200, body: record };
  const isPending = PARTS.has(resource) && records.evaluations.has(id);
  return isPending
    ? errorAnswer(404, 'NOT_READY', 'this part is not there yet')
    : errorAnswer(404, 'NOT_FOUND', 'there is no such record');
}

function answerList({ evaluations }: StoreRecords, params: URLSearchParams): Answer {
  try {
    const query = parseListQuery(params);
    const found = findEvaluations(evaluations.values(), query);
    const items = found.slice(query.offset, query.offset + query.limit);
    return { status: 200, body: { items, total: found.length } };
  } catch (error) {
    if (error instanceof BadQueryError) return errorAnswer(400, 'BAD_REQUEST', error.message);
    throw error;
  }
}

const ANOTHER_WORKSPACE = '0ddba11e-0000-4000-8000-000000000000';

/** The answer of a store that mixes things up: a record that claims another id, or another workspace. */
export function falsified({ status, body }: Answer, wrong: 'id' | 'workspace'): Answer {
  if (status !== 200 || !isJsonObject(body)) return { status, body };
  const { items } = body;
  if (Array.isArray(items)) {
    return { status, body: { ...body, items: items.map((item: unknown) => falsifiedRecord(item, wrong)) } };
  }
  return { status, body: falsifiedRecord(body, wrong) };
}

function falsifiedRecord(record: unknown, wrong: 'id' | 'workspace'): JsonObject {
  const members = isJsonObject(record) ? record : {};
  if (wrong === 'workspace') return { ...members, workspaceId: ANOTHER_WORKSPACE };
  return { ...members, ['evaluationId' in members ? 'evaluationId' : '_id']: 'ev_another' };
}
