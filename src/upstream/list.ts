/** The list of evaluations: one faulty record costs itself, never the page. */
import { evaluationSchema, ID_PATTERN, type EvaluationPage, type EvaluationRecord } from '../domain/records.ts';
import { createBreather } from './breather.ts';
import { ROOT_PATH, type Question } from './question.ts';
import { StoreError, type ListQuery } from './store.ts';
import { RECORD_PATH, validatorOf } from './validate.ts';

const MAX_LIMIT = 100;

/** A record of a page that is not served. */
export interface LeftOut {
  /** Its id, where it has a valid one. */
  readonly id: string | null;
  /** The member that is why: `evaluatee.email`, `workspaceId`, `state`; `_id` for one that the page holds already. */
  readonly path: string;
}

const validateEvaluation = validatorOf(evaluationSchema);

/** Throws a TypeError for a query that the store's interface does not allow; nothing is sent then. */
export function listQuestion(query: ListQuery, onLeftOut: (leftOut: LeftOut) => void): Question<EvaluationPage> {
  if (query.workspaceIds.length === 0) throw new TypeError('a list needs at least one workspace');
  if (!Number.isInteger(query.limit) || query.limit < 1 || query.limit > MAX_LIMIT) {
    throw new TypeError(`the limit of a list is an integer from 1 to ${MAX_LIMIT}`);
  }
  if (!Number.isSafeInteger(query.offset) || query.offset < 0)
    throw new TypeError('the offset is an integer from 0 on');
  return {
    resource: 'list',
    path: `${ROOT_PATH}/evaluations?${searchOf(query)}`,
    // A list that matches nothing is an empty one, so a 404 is a failure whatever its code.
    absentCodes: [],
    read: (value) => readPage(value, query, onLeftOut),
  };
}

function searchOf(query: ListQuery): string {
  const parameters = new URLSearchParams();
  for (const id of query.workspaceIds) parameters.append('workspaceId', id);
  parameters.set('state', 'COMPLETED');
  if (query.search !== null) parameters.set('q', query.search);
  if (query.scorecardId !== null) parameters.set('scorecardId', query.scorecardId);
  parameters.set('offset', String(query.offset));
  parameters.set('limit', String(query.limit));
  return parameters.toString();
}

async function readPage(
  value: unknown,
  query: ListQuery,
  onLeftOut: (leftOut: LeftOut) => void,
): Promise<EvaluationPage> {
  const { items, total } = pageOf(value);
  const workspaceIds = new Set(query.workspaceIds.map((id) => id.toLowerCase()));
  const kept = new Map<string, EvaluationRecord>();
  const breather = createBreather();
  // Cut first: what the store sends too much costs nothing.
  for (const item of items.slice(0, query.limit)) {
    await breather.pause();
    const validation = validateEvaluation(item);
    if (!validation.ok) {
      onLeftOut({ id: idOf(item), path: validation.path });
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
  if (typeof value !== 'object' || value === null) throw malformed(RECORD_PATH);
  const items: unknown = 'items' in value ? value.items : undefined;
  const total: unknown = 'total' in value ? value.total : undefined;
  if (!Array.isArray(items)) throw malformed('items');
  if (typeof total !== 'number' || !Number.isSafeInteger(total) || total < 0) throw malformed('total');
  return { items, total };
}

/** The member for which a whole record does not belong on the page; null where it does. */
function faultOf(
  record: EvaluationRecord,
  workspaceIds: ReadonlySet<string>,
  kept: ReadonlyMap<string, EvaluationRecord>,
): string | null {
  if (!workspaceIds.has(record.workspaceId)) return 'workspaceId';
  if (record.state !== 'COMPLETED') return 'state';
  return kept.has(record['_id']) ? '_id' : null;
}

function idOf(item: unknown): string | null {
  if (typeof item !== 'object' || item === null || !('_id' in item)) return null;
  const id: unknown = item['_id'];
  return typeof id === 'string' && ID_PATTERN.test(id) ? id : null;
}

/** The interface's order, which is also the public one: newest first, then by id, descending by code unit. */
function newestFirst(a: EvaluationRecord, b: EvaluationRecord): number {
  if (a.createdAtMs !== b.createdAtMs) return b.createdAtMs - a.createdAtMs;
  return b['_id'] > a['_id'] ? 1 : -1;
}

function malformed(path: string): StoreError {
  return new StoreError('malformed', `the store's list is malformed at ${path}`, { status: 200 });
}
