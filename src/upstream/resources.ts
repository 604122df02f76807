/** The store's resources in one table: where each is fetched, and how its record is checked before it gets past here. */
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
  type ScoredCardRecord,
  scoredCardSchema,
  type TranscriptRecord,
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

/** Names a resource in logs, metrics and spans; all but `apiKey` are TTL classes too. */
export type ResourceName = 'list' | 'evaluation' | 'transcript' | 'scorecard' | 'dealInsights' | 'rubric' | 'apiKey';
export type ResourceKind = Exclude<ResourceName, 'apiKey'>;

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
  /** The faulty member: `evaluatee.email`, `workspaceId`; `_id` for a record that the page holds already. Never its value. */
  readonly path: string;
}

const ROOT = '/internal/v1';
const MAX_LIST_LIMIT = 100;
const KEY_HASH_PATTERN = /^[0-9a-f]{64}$/;

/** One faulty record costs itself, never the page. */
export const list: Resource<ListQuery, EvaluationPage> = {
  name: 'list',
  template: `${ROOT}/evaluations`,
  path: (query) => `${ROOT}/evaluations?${listParameters(query)}`,
  // A list that matches nothing is an empty one, so a 404 is a failure whatever its code.
  absentCodes: [],
  parse: parseList,
};

export const evaluation = defineRecord<EvaluationRecord>({
  name: 'evaluation',
  template: '/evaluations/{id}',
  validate: validatorOf(evaluationSchema),
  idMember: '_id',
  idOf: (record) => record['_id'],
});

export const transcript = defineRecord<TranscriptRecord>({
  name: 'transcript',
  template: '/evaluations/{id}/transcript',
  validate: validatorOf(transcriptSchema),
  idMember: 'evaluationId',
  idOf: (record) => record.evaluationId,
});

export const scorecard = defineRecord<ScoredCardRecord>({
  name: 'scorecard',
  template: '/evaluations/{id}/scorecard',
  validate: validatorOf(scoredCardSchema),
  idMember: 'evaluationId',
  idOf: (record) => record.evaluationId,
});

export const dealInsights = defineRecord<DealInsightsRecord>({
  name: 'dealInsights',
  template: '/evaluations/{id}/deal-insights',
  validate: validatorOf(dealInsightsSchema),
  idMember: 'evaluationId',
  idOf: (record) => record.evaluationId,
  clean: (record) => ({ ...record, insights: withoutInternalMembers(record.insights) }),
});

export const rubric = defineRecord<ScorecardRecord>({
  name: 'rubric',
  template: '/scorecards/{id}',
  validate: validatorOf(scorecardSchema),
  idMember: '_id',
  idOf: (record) => record['_id'],
  clean: (record) => ({ ...record, rubric: withoutInternalMembers(record.rubric) }),
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

interface RecordDefinition<R> {
  readonly name: Exclude<ResourceName, 'list' | 'apiKey'>;
  readonly template: string;
  readonly validate: (value: unknown) => Validation<R>;
  /** The member that holds the id asked for. */
  readonly idMember: string;
  readonly idOf: (record: R) => string;
  /** What is done to a valid record before it is passed on. */
  readonly clean?: (record: R) => R;
}

/** A record that is fetched by id. It is checked to be of that id. */
function defineRecord<R>({
  name,
  template,
  validate,
  idMember,
  idOf,
  clean,
}: RecordDefinition<R>): Resource<{ readonly id: string }, R> {
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
      if (idOf(record) !== id) throw malformed(`the store answered for another id than ${name} ${id} (at ${idMember})`);
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

async function parseList(
  value: unknown,
  query: ListQuery,
  onLeftOut: (leftOut: LeftOut) => void,
): Promise<EvaluationPage> {
  const { items, total } = pageOf(value);
  const workspaceIds = new Set(query.workspaceIds.map((id) => id.toLowerCase()));
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
    const fault = faultOf(record, workspaceIds, kept);
    if (fault === null) kept.set(record['_id'], record);
    else onLeftOut({ id: record['_id'], path: fault });
  }
  return { items: [...kept.values()].toSorted(newestFirst), total };
}

function pageOf(value: unknown): { readonly items: readonly unknown[]; readonly total: number } {
  if (typeof value !== 'object' || value === null) throw malformedList(RECORD_PATH);
  const items: unknown = 'items' in value ? value.items : undefined;
  const total: unknown = 'total' in value ? value.total : undefined;
  if (!Array.isArray(items)) throw malformedList('items');
  if (typeof total !== 'number' || !Number.isSafeInteger(total) || total < 0) throw malformedList('total');
  return { items, total };
}

/** The member for which a valid record does not belong on the page; null if it does. */
function faultOf(
  record: EvaluationRecord,
  workspaceIds: ReadonlySet<string>,
  kept: ReadonlyMap<string, EvaluationRecord>,
): string | null {
  if (!workspaceIds.has(record.workspaceId)) return 'workspaceId';
  if (record.state !== 'COMPLETED') return 'state';
  return kept.has(record['_id']) ? '_id' : null;
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
