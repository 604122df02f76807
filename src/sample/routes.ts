/** The interface's addresses, and what each answers from the sample's records. Pure: no sockets. */
import type { FaultPlan } from './faults.ts';
import type { SampleData, SamplePart } from './data.ts';
import { BadQueryError, parseListQuery } from './query.ts';
import type { JsonObject } from './traps.ts';

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
  readonly body: JsonObject;
}

const ROUTES: readonly (readonly [RegExp, SampleResource])[] = [
  [/^\/internal\/v1\/evaluations$/, 'list'],
  [/^\/internal\/v1\/evaluations\/([^/]+)$/, 'evaluation'],
  [/^\/internal\/v1\/evaluations\/([^/]+)\/transcript$/, 'transcript'],
  [/^\/internal\/v1\/evaluations\/([^/]+)\/scorecard$/, 'scorecard'],
  [/^\/internal\/v1\/evaluations\/([^/]+)\/deal-insights$/, 'dealInsights'],
  [/^\/internal\/v1\/scorecards\/([^/]+)$/, 'rubric'],
  [/^\/internal\/v1\/api-keys\/([^/]+)$/, 'apiKey'],
];

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

/** What the store says to a call that is allowed and that no fault keeps from being answered. */
export function answer(data: SampleData, { resource, id }: Route, query: URLSearchParams): Answer {
  if (resource === 'list') return answerList(data, query);
  if (resource !== 'other') return answerPart(data[resource](id));
  // Not NOT_FOUND: a wrong address must not look like a record that doesn't exist.
  return errorAnswer(404, 'UNKNOWN_ROUTE', 'there is no such address');
}

function answerList(data: SampleData, query: URLSearchParams): Answer {
  try {
    const { items, total } = data.list(parseListQuery(query));
    return { status: 200, body: { items, total } };
  } catch (error) {
    if (error instanceof BadQueryError) return errorAnswer(400, 'BAD_REQUEST', error.message);
    throw error;
  }
}

function answerPart(part: SamplePart): Answer {
  if (part === 'NOT_FOUND') return errorAnswer(404, part, 'there is no such record');
  if (part === 'NOT_READY') return errorAnswer(404, part, 'this part is not there yet');
  return { status: 200, body: part };
}

/** The answer of a store that mixes things up: the record of another id, or one that claims another workspace. */
export function falsified(data: SampleData, route: Route, { status, body }: Answer, wrong: FaultPlan['wrong']): Answer {
  if (wrong === 'none' || status !== 200 || route.resource === 'apiKey') return { status, body };
  if (route.resource === 'list') return { status, body: falsifiedList(data, body, wrong) };
  return { status, body: wrong === 'id' ? withOtherId(data, body) : withOtherWorkspace(data, body) };
}

/** A list holds no id that was asked for, so only its workspaces can be wrong: the first record claims another one. */
function falsifiedList(data: SampleData, body: JsonObject, wrong: FaultPlan['wrong']): JsonObject {
  const { items } = body;
  if (wrong === 'id' || !Array.isArray(items)) return body;
  return {
    ...body,
    items: items.map((item: JsonObject, index) => (index === 0 ? withOtherWorkspace(data, item) : item)),
  };
}

function withOtherId(data: SampleData, body: JsonObject): JsonObject {
  const member = '_id' in body ? '_id' : 'evaluationId';
  const other = data.evaluations.find(({ _id }) => _id !== body[member])?._id ?? 'ev_another';
  return { ...body, [member]: other };
}

function withOtherWorkspace(data: SampleData, body: JsonObject): JsonObject {
  return { ...body, workspaceId: data.workspaceIds.find((id) => id !== body['workspaceId']) ?? '' };
}
