/**
 * The store's resources: where each is fetched, and how its record is checked before it gets past here. A new one is
 * declared here and in `RESOURCE_KINDS`; the compiler then asks for its TTLs, its tags and its request to the cache.
 */
import {
  type ApiKeyRecord,
  apiKeySchema,
  type DealInsightsRecord,
  dealInsightsSchema,
  type EvaluationPage,
  type EvaluationRecord,
  evaluationSchema,
  ID_PATTERN,
  type ScorecardRecord,
  scorecardSchema,
  scoredCardSchema,
  transcriptSchema,
} from '../domain/records.ts';
import { type Absent, type ListQuery, StoreError } from './store.ts';
import {
  createYield,
  RECORD_PATH,
  type Validation,
  validatorOf,
  withoutInternalMembers,
  workspaceIdOf,
} from './validation.ts';

/** The resources that are cached, each with TTLs of its own. Their order is part of the what-if messages: append only. */
export const RESOURCE_KINDS = ['list', 'evaluation', 'transcript', 'scorecard', 'rubric', 'dealInsights'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];
/** Names a resource in logs, metrics and spans. */
export type ResourceName = ResourceKind | 'apiKey';

/** `P`: what identifies a record; `R`: the record. */
export interface Resource<P, R> {
  readonly name: ResourceName;
  /** In place of the path, which holds ids: what spans show. */
  readonly template: string;
  /** Path and query below the store's base address. Throws a TypeError for parameters that the interface does not allow. */
  readonly path: (params: P) => string;
  /** The codes with which a 404 is an answer; any other 404 is a failure of the store (Q9). */
  readonly absentCodes: readonly Absent['code'][];
  /** The record in a 200's JSON. Throws a StoreError of kind `malformed`, or rejects with one. */
  readonly parse: (value: unknown, params: P, onLeftOut: (leftOut: LeftOut) => void) => R | Promise<R>;
}

/** A record of a list that is not served, because it is not what was asked for, or not whole. */
export interface LeftOut {
  /** Null if the record has no valid id. */
  readonly id: string | null;
  /** The faulty member: `evaluatee.email`, `state`; `_id` for a record that the page holds already. Never its value. */
  readonly path: string;
}

const ROOT = '/internal/v1';
const MAX_LIST_LIMIT = 100;
const KEY_HASH_PATTERN = /^[0-9a-f]{64}$/;

/** One faulty record costs itself, never the page; a foreign one costs the page. */
export const list: Resource<ListQuery, EvaluationPage> = {
  name: 'list',
  template: `${ROOT}/evaluations`,
  path: (query) => `${ROOT}/evaluations?${listParameters(query)}`,
  // A list that matches nothing is an empty one, so a 404 is a failure whatever its code.
  absentCodes: [],
  parse: parseList,
};

export const evaluation = defineRecord({
  name: 'evaluation',
  template: '/evaluations/{id}',
  validate: validatorOf(evaluationSchema),
  idMember: '_id',
});

export const transcript = defineRecord({
  name: 'transcript',
  template: '/evaluations/{id}/transcript',
  validate: validatorOf(transcriptSchema),
  idMember: 'evaluationId',
});

export const scorecard = defineRecord({
  name: 'scorecard',
  template: '/evaluations/{id}/scorecard',
  validate: validatorOf(scoredCardSchema),
  idMember: 'evaluationId',
});

export const dealInsights = defineRecord({
  name: 'dealInsights',
  template: '/evaluations/{id}/deal-insights',
  validate: validatorOf(dealInsightsSchema),
  idMember: 'evaluationId',
  clean: (record: DealInsightsRecord) => ({ ...record, insights: withoutInternalMembers(record.insights) }),
});

export const rubric = defineRecord({
  name: 'rubric',
  template: '/scorecards/{id}',
  validate: validatorOf(scorecardSchema),
  idMember: '_id',
  clean: (record: ScorecardRecord) => ({ ...record, rubric: withoutInternalMembers(record.rubric) }),
});

const validateApiKey = validatorOf(apiKeySchema);

/** By the lower-case hex SHA-256 of the key, which no record repeats and no message shows. */
export const apiKey: Resource<{ readonly hash: string }, ApiKeyRecord> = {
  name: 'apiKey',
  template: `${ROOT}/api-keys/{hash}`,
  path: ({ hash }) => {
    if (!KEY_HASH_PATTERN.test(hash)) throw new TypeError('an API key is fetched by its lower-case hex SHA-256');
    return `${ROOT}/api-keys/${hash}`;
  },
  absentCodes: ['NOT_FOUND'],
  parse: (value) => {
    const validation = validateApiKey(value);
    if (!validation.ok) throw malformed(`the store's API key is malformed at ${validation.path}`);
    return validation.record;
  },
};

interface RecordDefinition<K extends string, R extends Readonly<Record<K, string>>> {
  readonly name: Exclude<ResourceName, 'list' | 'apiKey'>;
  readonly template: string;
  readonly validate: (value: unknown) => Validation<R>;
  /** The member that holds the id asked for. */
  readonly idMember: K;
  /** What is done to a valid record before it is passed on. */
  readonly clean?: (record: R) => R;
}

/** A record that is fetched by id. It is checked to be of that id. */
function defineRecord<K extends string, R extends Readonly<Record<K, string>>>(
  definition: RecordDefinition<K, R>,
): Resource<{ readonly id: string }, R> {
  const { name, template, validate, idMember, clean } = definition;
  return {
    name,
    template: ROOT + template,
    path: ({ id }) => {
      if (!ID_PATTERN.test(id)) throw new TypeError(`not an id of the store's ${name} resource`);
      return ROOT + template.replace('{id}', id);
    },
    absentCodes: ['NOT_FOUND', 'NOT_READY'],
    parse: (value, { id }) => {
      const validation = validate(value);
      if (!validation.ok) {
        throw malformed(`the store's ${name} ${id} is malformed at ${validation.path}`, workspaceIdOf(value));
      }
      const { record } = validation;
      // A record of another id tells nothing of the one asked for, its workspace included.
      if (record[idMember] !== id) {
        throw malformed(`the store answered for another id than ${name} ${id} (at ${idMember})`);
      }
      return clean?.(record) ?? record;
    },
  };
}

function listParameters(query: ListQuery): string {
  const { workspaceIds, search, scorecardId, offset, limit } = query;
  if (workspaceIds.length === 0) throw new TypeError('a list needs at least one workspace');
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIST_LIMIT) {
    throw new TypeError(`the limit of a list is an integer from 1 to ${MAX_LIST_LIMIT}`);
  }
  if (!Number.isSafeInteger(offset) || offset < 0) throw new TypeError('the offset is an integer from 0 on');
  const parameters = new URLSearchParams();
  for (const id of workspaceIds) parameters.append('workspaceId', id);
  parameters.set('state', 'COMPLETED');
  if (search !== null) parameters.set('q', search);
  if (scorecardId !== null) parameters.set('scorecardId', scorecardId);
  parameters.set('offset', String(offset));
  parameters.set('limit', String(limit));
  return parameters.toString();
}

const validateEvaluation = validatorOf(evaluationSchema);

/**
 * A record of another workspace shows that the store ignored the filter. Its total then counts foreign records too, so
 * nothing of such an answer is used (C4).
 */
async function parseList(
  value: unknown,
  query: ListQuery,
  onLeftOut: (leftOut: LeftOut) => void,
): Promise<EvaluationPage> {
  const { items, total } = pageOf(value);
  const foreign = items.find((item) => isForeign(item, query.workspaceIds));
  if (foreign !== undefined) {
    const which = idOfItem(foreign) ?? 'a record without an id';
    throw malformed(`the store ignored the workspaces asked for: its list holds ${which} of another workspace`);
  }
  const kept = new Map<string, EvaluationRecord>();
  const yieldToEventLoop = createYield();
  // Cut first: what the store sends too much costs nothing.
  for (const item of items.slice(0, query.limit)) {
    await yieldToEventLoop();
    const validation = validateEvaluation(item);
    if (!validation.ok) {
      onLeftOut({ id: idOfItem(item), path: validation.path });
      continue;
    }
    const { record } = validation;
    if (record.state !== 'COMPLETED') onLeftOut({ id: record['_id'], path: 'state' });
    else if (kept.has(record['_id'])) onLeftOut({ id: record['_id'], path: '_id' });
    else kept.set(record['_id'], record);
  }
  return { items: [...kept.values()].toSorted(newestFirst), total };
}

function isForeign(item: unknown, workspaceIds: readonly string[]): boolean {
  const workspaceId = workspaceIdOf(item);
  return workspaceId !== null && !workspaceIds.includes(workspaceId);
}

function pageOf(value: unknown): { readonly items: readonly unknown[]; readonly total: number } {
  if (typeof value !== 'object' || value === null) throw malformedList(RECORD_PATH);
  const items: unknown = 'items' in value ? value.items : undefined;
  const total: unknown = 'total' in value ? value.total : undefined;
  if (!Array.isArray(items)) throw malformedList('items');
  if (typeof total !== 'number' || !Number.isSafeInteger(total) || total < 0) throw malformedList('total');
  return { items, total };
}

function idOfItem(item: unknown): string | null {
  if (typeof item !== 'object' || item === null || !('_id' in item)) return null;
  const id: unknown = item['_id'];
  return typeof id === 'string' && ID_PATTERN.test(id) ? id : null;
}

/** The interface's order, which is also the public one: newest first, then by id, descending by code unit (Q5). */
function newestFirst(a: EvaluationRecord, b: EvaluationRecord): number {
  if (a.createdAtMs !== b.createdAtMs) return b.createdAtMs - a.createdAtMs;
  return b['_id'] > a['_id'] ? 1 : -1;
}

function malformedList(path: string): StoreError {
  return malformed(`the store's list is malformed at ${path}`);
}

function malformed(privateMessage: string, workspaceId: string | null = null): StoreError {
  return new StoreError('malformed', privateMessage, { status: 200, workspaceId });
}
