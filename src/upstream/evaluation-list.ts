/** The one resource that is a list: its query, the check of its records, the name of its copies. One page is one answer. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type EvaluationPage, type EvaluationRecord, evaluationSchema, ID_PATTERN } from '../domain/records.ts';
import type { CachedResource, LeftOut, RecordTag } from './resources.ts';
import { type ListQuery, malformed, type StoreError } from './store.ts';
import { createYield, RECORD_PATH, validatorOf, workspaceIdOf } from './validation.ts';

const PATH = '/internal/v1/evaluations';
const MAX_LIST_LIMIT = 100;
/** Beyond this a list is named by its hash: a list of 50 workspaces would otherwise have a key of 2 kB. */
const MAX_PLAIN_LENGTH = 200;
/** With it begin the names of searched lists, which are hashes: what people search for is nobody else's business. */
export const SEARCH_PREFIX = 'search:';

/** One faulty record costs itself, never the page; a foreign one costs the page. */
export const list: CachedResource<ListQuery, EvaluationPage> = {
  name: 'list',
  template: PATH,
  schema: z.object({ items: z.array(evaluationSchema), total: z.int().nonnegative() }),
  memoryFactor: 2,
  idTag: null,
  // A list that matches nothing is an empty one, so a 404 is a failure whatever its code.
  absentCodes: [],
  path: (query) => `${PATH}?${listParameters(query)}`,
  parse: parseList,
  normalise,
  cacheName,
  // A list with a record of another workspace is not trusted at all.
  isAnsweredBy: ({ items }, query) => items.every(({ workspaceId }) => query.workspaceIds.includes(workspaceId)),
  workspaceOf: () => null,
  tags,
  // A searched list backfills nothing, because searches vary without end.
  backfills: ({ items }, { search }) =>
    search === null ? items.map((record) => ({ kind: 'evaluation', id: record['_id'], record })) : [],
};

/**
 * Brings a query into the one form that all equal questions share.
 *
 * The store searches case-insensitively, so the case of ASCII letters can't change the answer and is dropped. Nothing
 * else is touched: beyond ASCII the rules of case differ between implementations, a space may be what is searched for,
 * and composed and decomposed characters are different strings to a substring search.
 */
function normalise(query: ListQuery): ListQuery {
  const workspaceIds = [...new Set(query.workspaceIds.map((id) => id.toLowerCase()))].toSorted();
  const search = query.search === null || query.search === '' ? null : lowerAscii(query.search);
  return { workspaceIds, search, scorecardId: query.scorecardId, offset: query.offset, limit: query.limit };
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function cacheName({ workspaceIds, search, scorecardId, offset, limit }: ListQuery): string {
  const parts = [workspaceIds.join(','), scorecardId, offset, limit];
  if (search !== null) return SEARCH_PREFIX + digest([...parts, search]);
  const plain = parts.join('/');
  return `list:${plain.length <= MAX_PLAIN_LENGTH ? plain : digest(parts)}`;
}

/** JSON keeps the parts apart whatever they hold. */
function digest(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}

/** A page is tagged with the scorecards of its items too: it shows their names. */
function tags({ workspaceIds, scorecardId }: ListQuery, page: EvaluationPage | null): readonly RecordTag[] {
  const scorecardIds = new Set((page?.items ?? []).map((item) => item.scorecardRef.id)).add(scorecardId);
  return [
    ...workspaceIds.flatMap((id): readonly RecordTag[] => [`workspace:${id}`, `lists-of:${id}`]),
    ...[...scorecardIds].flatMap((id): readonly RecordTag[] => (id === null ? [] : [`scorecard:${id}`])),
  ];
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
