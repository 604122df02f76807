/** The store's records and addresses, and the answer of each address from the records. Pure: no sockets. */
import { z } from 'zod';
import { EVALUATION_STATES, ID_PATTERN, UUID_PATTERN } from '../domain/vocabulary.ts';

/** A record as it goes over the wire, with any members. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Records by id, valid or not. A record that is missing can be made when it is read, unless it was deleted. */
export class RecordTable extends Map<string, unknown> {
  /** Makes the record of an id that is not in the table; undefined if there is none. */
  make: (id: string) => unknown = () => undefined;
  readonly #deleted = new Set<string>();

  override get(id: string): unknown {
    return super.get(id) ?? (this.#deleted.has(id) ? undefined : this.make(id));
  }

  override set(id: string, record: unknown): this {
    this.#deleted.delete(id);
    return super.set(id, record);
  }

  override delete(id: string): boolean {
    this.#deleted.add(id);
    return super.delete(id);
  }
}

/** One table per resource, to be filled. */
export class StoreRecords {
  readonly evaluations = new RecordTable();
  /** These three by the id of their evaluation. */
  readonly transcripts = new RecordTable();
  readonly scoredCards = new RecordTable();
  readonly dealInsights = new RecordTable();
  /** Scorecards with their rubrics. */
  readonly scorecards = new RecordTable();
}

const EVALUATION = '/internal/v1/evaluations/([^/]+)';
const ROUTES = [
  { resource: 'evaluation', table: 'evaluations', path: new RegExp(`^${EVALUATION}$`) },
  { resource: 'transcript', table: 'transcripts', path: new RegExp(`^${EVALUATION}/transcript$`) },
  { resource: 'scorecard', table: 'scoredCards', path: new RegExp(`^${EVALUATION}/scorecard$`) },
  { resource: 'dealInsights', table: 'dealInsights', path: new RegExp(`^${EVALUATION}/deal-insights$`) },
  { resource: 'rubric', table: 'scorecards', path: /^\/internal\/v1\/scorecards\/([^/]+)$/ },
] as const;

type RecordRoute = (typeof ROUTES)[number];

/** The resource that a call is about; `other` is no address of the interface. */
export type SampleResource = 'list' | RecordRoute['resource'] | 'other';

export interface Route {
  readonly resource: SampleResource;
  /** Empty for the list and for `other`. */
  readonly id: string;
  /** Where the record is; null for the list and for `other`. */
  readonly table: RecordRoute['table'] | null;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Finds the resource that a path names. Ids never need percent-encoding, so they are taken as they are. */
export function findRoute(path: string): Route {
  if (path === '/internal/v1/evaluations') return { resource: 'list', id: '', table: null };
  for (const { resource, table, path: pattern } of ROUTES) {
    const id = pattern.exec(path)?.[1];
    if (id !== undefined) return { resource, id, table };
  }
  return { resource: 'other', id: '', table: null };
}

/** An error as the interface writes it. */
export function errorAnswer(status: number, code: string, message: string): Answer {
  return { status, body: { code, message } };
}

/** The store's answer to a call that is allowed. */
export function answerFrom(records: StoreRecords, { resource, id, table }: Route, query: URLSearchParams): Answer {
  if (resource === 'list') return answerList(records, query);
  // Not NOT_FOUND: a wrong address must not look like a record that doesn't exist.
  if (table === null) return errorAnswer(404, 'UNKNOWN_ROUTE', 'there is no such address');
  const record = records[table].get(id);
  if (record !== undefined) return { status: 200, body: record };
  const isPart = resource === 'transcript' || resource === 'scorecard' || resource === 'dealInsights';
  return isPart && records.evaluations.has(id)
    ? errorAnswer(404, 'NOT_READY', 'this part is not there yet')
    : errorAnswer(404, 'NOT_FOUND', 'there is no such record');
}

/** Unknown and repeated parameters are refused, so that a caller's mistake shows. */
const querySchema = z.strictObject({
  workspaceId: z.array(z.string().regex(UUID_PATTERN).toLowerCase()).min(1),
  state: z.enum(EVALUATION_STATES).optional(),
  q: z.string().toLowerCase().default(''),
  scorecardId: z.string().regex(ID_PATTERN).optional(),
  offset: integer(0, Number.MAX_SAFE_INTEGER).default(0),
  limit: integer(1, 100).default(50),
});
type ListQuery = z.output<typeof querySchema>;

function integer(min: number, max: number) {
  const digits = z.string().regex(/^\d{1,15}$/);
  return digits.transform(Number).pipe(z.number().min(min).max(max));
}

function answerList({ evaluations }: StoreRecords, params: URLSearchParams): Answer {
  const given = [...new Set(params.keys())].map((name) => {
    const values = params.getAll(name);
    return [name, name === 'workspaceId' || values.length > 1 ? values : values[0]] as const;
  });
  const parsed = querySchema.safeParse(Object.fromEntries(given));
  if (!parsed.success) return errorAnswer(400, 'BAD_REQUEST', z.prettifyError(parsed.error));
  const { data: query } = parsed;
  const found = [...evaluations.values()]
    .filter((record) => isJsonObject(record))
    .filter((record) => matches(record, query))
    .toSorted(compareNewestFirst);
  return { status: 200, body: { items: found.slice(query.offset, query.offset + query.limit), total: found.length } };
}

/** Newest first; of two from the same millisecond the one with the greater id, by code units, comes first. */
export function compareNewestFirst(a: JsonObject, b: JsonObject): number {
  // A record without its time comes last.
  const timeOf = ({ createdAtMs }: JsonObject): number => (typeof createdAtMs === 'number' ? createdAtMs : 0);
  const byTime = timeOf(b) - timeOf(a);
  if (byTime !== 0 || a['_id'] === b['_id']) return byTime;
  return String(a['_id']) < String(b['_id']) ? 1 : -1;
}

function matches(record: JsonObject, { workspaceId, state, scorecardId, q }: ListQuery): boolean {
  return (
    workspaceId.includes(String(record['workspaceId']).toLowerCase()) &&
    (state === undefined || record['state'] === state) &&
    (scorecardId === undefined || objectIn(record, 'scorecardRef')['id'] === scorecardId) &&
    (q === '' || searchedTexts(record).some((text) => text.includes(q)))
  );
}

/** Exactly the texts that the interface searches, in lower case. */
function searchedTexts(record: JsonObject): readonly string[] {
  const evaluatee = objectIn(record, 'evaluatee');
  const deals = objectsIn(record, 'crmLinks').filter(({ objectType }) => objectType === 'deal');
  return [
    record['title'],
    evaluatee['displayName'],
    evaluatee['email'],
    ...objectsIn(record, 'people').map(({ email }) => email),
    ...deals.map(({ label }) => label),
  ].flatMap((text) => (typeof text === 'string' ? [text.toLowerCase()] : []));
}

function objectIn(record: JsonObject, name: string): JsonObject {
  const member = record[name];
  return isJsonObject(member) ? member : {};
}

function objectsIn(record: JsonObject, name: string): readonly JsonObject[] {
  const member: unknown = record[name];
  return Array.isArray(member) ? member.filter((item) => isJsonObject(item)) : [];
}

const ANOTHER_WORKSPACE = '0ddba11e-0000-4000-8000-000000000000';

const FAULTS_OF_A_RECORD = 100_000;

/** The answer of a store that mixes things up: each record claims another id, or another workspace, or has people that are none. */
export function falsified({ status, body }: Answer, wrong: 'id' | 'workspace' | 'people'): Answer {
  const people = wrong === 'people' ? Array.from({ length: FAULTS_OF_A_RECORD }, () => ({})) : [];
  const falsify = (record: unknown): JsonObject => {
    const members = isJsonObject(record) ? record : {};
    if (wrong === 'people') return { ...members, people };
    if (wrong === 'workspace') return { ...members, workspaceId: ANOTHER_WORKSPACE };
    return { ...members, ['evaluationId' in members ? 'evaluationId' : '_id']: 'ev_another' };
  };
  if (status !== 200 || !isJsonObject(body)) return { status, body };
  const { items } = body;
  return { status, body: Array.isArray(items) ? { ...body, items: items.map(falsify) } : falsify(body) };
}
