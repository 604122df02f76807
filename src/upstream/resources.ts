/**
 * The table of the store's resources. Each is declared once: where it is fetched, how its record is checked, whose it is,
 * and what its copies are found and purged by. Client, guard, cache, purges and the format in Redis all go by the table.
 *
 * A new resource is a name in `RESOURCE_KINDS` (and another `VERSION` in `cache/what-if/sharing.ts`), in `EVALUATION_KINDS` if it
 * is a part of an evaluation, and a declaration in `RESOURCES`. Beside the table it needs, in this order:
 * - the schema of its record in `domain/records.ts`, and its public form in another file of `domain/`; its name in `json-schema.ts`
 * - its TTLs and its `outdatedLimit` in `config/config.ts`, and both in the root's `config/default.yaml`
 * - the ids of its operations in `domain/operations.ts`, its routes in `http/v1.ts` or `http/v2.ts`, and an example body in
 *   `http/openapi/examples.ts`
 * - for the demo, its path in `sample/routes.ts`, records in `sample/data.ts`, and a line of `curl` in
 *   `backend/demo-store.ts`
 * - the colour of its line in the dashboard's charts, `.line-<kind>` in `admin/dashboard/page/style.css`, and its dashes in
 *   `health.js` beside it
 * - for the team that owns the store, its check in `cli/doctor/store-records.ts` and a section in `docs/store-interface.md`
 * - for operators, its class in `docs/configuration.md` and in rule C1, and its span in `docs/tracing.md`
 * - for a new kind of purge tag, `TAG_NAMES` in `cache/purge-log.ts`
 * - if the store announces its changes, its kind in the `etags` of `changes/announcement.ts`, and in `EVENT_KINDS`
 *   (`changes/events.ts`) if consumers of calls read it
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { SurfaceName } from '../domain/operations.ts';
import { ID_PATTERN } from '../domain/vocabulary.ts';
import {
  dealInsightsSchema,
  type EvaluationPage,
  type EvaluationRecord,
  evaluationSchema,
  scorecardSchema,
  scoredCardSchema,
  transcriptSchema,
} from '../domain/records.ts';
import { hasReport, REPORT_EMAIL_PATH } from '../domain/report.ts';
import { createYield } from '../time/turns.ts';
import { garbled, malformed } from './store-error.ts';
import { faultyMember, hasOpenObject, memberOf, type Validation, validatorOf, workspaceIdOf } from './validation.ts';

/** The resources that are cached, each with TTLs of its own. */
export const RESOURCE_KINDS = ['list', 'evaluation', 'transcript', 'scorecard', 'rubric', 'dealInsights'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];
/** Those that are single records, by id. */
export type RecordKind = Exclude<ResourceKind, 'list'>;
export const RECORD_KINDS = RESOURCE_KINDS.filter((kind) => kind !== 'list');
/** Those of an evaluation, by its id: itself, which is the call of the API, and its parts. */
export const EVALUATION_KINDS = [
  'evaluation',
  'transcript',
  'scorecard',
  'dealInsights',
] as const satisfies readonly RecordKind[];

/** All that a list depends on: two equal queries have equal answers. Only completed evaluations are listed. */
export interface ListQuery {
  /** Lower-case UUIDs, sorted, without repeats; at least one. */
  readonly workspaceIds: readonly string[];
  /** Not empty; ASCII letters in lower case. */
  readonly search: string | null;
  readonly scorecardId: string | null;
  readonly offset: number;
  /** 1 to 100. */
  readonly limit: number;
}

/** The codes of a 404 or 410 that is an answer: the store has no such record, or not yet. */
export type AbsentCode = 'NOT_FOUND' | 'NOT_READY';

/** `P`: what identifies a record; `R`: the record. */
export interface Resource<P, R> {
  /** Names it in logs, metrics and spans. */
  readonly name: ResourceKind;
  /** In place of the path, which holds ids: what spans show. */
  readonly template: string;
  /** The codes with which a 404 is an answer; any other is a failure (Q9: only those count). */
  readonly absentCodes: readonly AbsentCode[];
  /** Whether the record has an object that is published as it is, so that its numbers keep their text. */
  readonly isExact: boolean;
  /** The name of the record in messages: `evaluation ev_1`. */
  title(params: P): string;
  /** Path and query below the store's base address. Throws a TypeError for parameters that the interface does not allow. */
  path(params: P): string;
  /**
   * The record in a 200's JSON. Throws a StoreError, or rejects with one: `malformed` if the record is at fault,
   * `garbled` if it is not what was asked for.
   */
  parse(value: unknown, params: P, onListed: (listed: Listed) => void): R | Promise<R>;
}

/** A resource whose answers are cached. */
export interface CachedResource<P, R> extends Resource<P, R> {
  /** A record as it was parsed. */
  readonly schema: z.ZodType<R>;
  /** Checks such a record in steps, when it is read back from Redis. */
  validate(value: unknown): Promise<Validation<R>>;
  /** The bytes that a record takes in memory, for each byte of its JSON. */
  readonly memoryFactor: number;
  /** The tag of the id, which copies are purged by; null for what has no id. */
  readonly idTag: IdTag | null;
  /** Names an answer among all that are cached: equal for equal parameters. */
  cacheName(params: P): string;
  /** Whether the record is of the id, or of the workspaces, asked for (C4: one that is not is never stored or served). */
  isAnsweredBy(record: R, params: P): boolean;
  /** The workspace of a single record, which decides who may see it; null for a list, whose workspaces are its parameters. */
  workspaceOf(record: R): string | null;
  /** The tags that copies are purged by (C6: by id, workspace, class); `record` is null for an absent one. */
  tags(params: P, record: R | null): readonly RecordTag[];
  /** When the record was made, Unix milliseconds; null if it does not say. */
  createdAtMs(record: R): number | null;
  /** The ids of the records in a list; none of a single record. */
  itemIds(record: R): readonly string[];
  /** The evaluations that the answer shows. */
  evaluations(record: R): readonly EvaluationRecord[];
  /** The single records that the answer holds, to be cached as well. */
  backfills(record: R, params: P): readonly Backfill[];
}

export interface Backfill {
  readonly kind: RecordKind;
  readonly id: string;
  readonly record: unknown;
}

type IdTag = 'evaluation' | 'scorecard';
/** `lists-of`: the lists over a workspace. */
export type RecordTag = `${IdTag | 'workspace' | 'lists-of'}:${string}`;

/** A record of a list that is not served, because it is not what was asked for, or not whole. */
export interface LeftOut {
  /** Null if the record has no valid id. */
  readonly id: string | null;
  /** The faulty member: `title`, `state`; `_id` for a record that the page holds already. Never its value. */
  readonly path: string;
  /** The only surface whose lists leave the record out; absent if all do. */
  readonly surface?: SurfaceName;
}

/** A list that the store sent. */
export interface Listed {
  /** How many records, with those that are left out. */
  readonly records: number;
  readonly leftOut: readonly LeftOut[];
}

export interface RecordParams {
  readonly id: string;
}

const ROOT = '/internal/v1';
/** How much more memory a record takes as objects than as text: well above what the heap holds, room around it included. */
const AS_OBJECTS = 2;
/** Its items are looked at one by one. */
const pageSchema = z.object({ items: z.custom<readonly unknown[]>(Array.isArray), total: z.int().nonnegative() });
const validateEvaluation = validatorOf(evaluationSchema);

/** A page as it was parsed. `omitted` and `sentIds` are missing in pages of older releases. */
const parsedPageSchema = pageSchema.extend({
  omitted: z.int().nonnegative().default(0),
  sentIds: z.array(z.string().nullable()).default([]),
});

/** One page is one answer. One faulty record costs itself, never the page; a foreign one costs the page. */
const list: CachedResource<ListQuery, EvaluationPage> = {
  name: 'list',
  template: `${ROOT}/evaluations`,
  schema: parsedPageSchema.extend({ items: z.array(evaluationSchema) }),
  validate: validatePage,
  memoryFactor: AS_OBJECTS,
  idTag: null,
  // A list that matches nothing is an empty one, so a 404 is a failure whatever its code.
  absentCodes: [],
  isExact: false,
  title: () => 'list',
  path: listPath,
  parse: parseList,
  cacheName: listCacheName,
  // A list with a record of another workspace is not trusted at all.
  isAnsweredBy: ({ items }, query) => items.every(({ workspaceId }) => query.workspaceIds.includes(workspaceId)),
  workspaceOf: () => null,
  tags: listTags,
  createdAtMs: () => null,
  itemIds: ({ items }) => items.map((record) => record['_id']),
  evaluations: ({ items }) => items,
  // A searched list backfills nothing, because searches vary without end.
  backfills: ({ items }, { search }) =>
    search === null ? items.map((record) => ({ kind: 'evaluation', id: record['_id'], record })) : [],
};

export const RESOURCES = {
  list,
  evaluation: defineRecord({
    name: 'evaluation',
    template: '/evaluations/{id}',
    schema: evaluationSchema,
    idMember: '_id',
    idTag: 'evaluation',
    otherTags: ({ scorecardRef: { id } }) => (id === null ? [] : [`scorecard:${id}`]),
    createdAtMs: (record) => record.createdAtMs,
    evaluations: (record) => [record],
  }),
  transcript: defineRecord({
    name: 'transcript',
    template: '/evaluations/{id}/transcript',
    schema: transcriptSchema,
    idMember: 'evaluationId',
    idTag: 'evaluation',
    // It is one string.
    memoryFactor: 1,
  }),
  scorecard: defineRecord({
    name: 'scorecard',
    template: '/evaluations/{id}/scorecard',
    schema: scoredCardSchema,
    idMember: 'evaluationId',
    idTag: 'evaluation',
  }),
  rubric: defineRecord({
    name: 'rubric',
    template: '/scorecards/{id}',
    schema: scorecardSchema,
    idMember: '_id',
    idTag: 'scorecard',
  }),
  dealInsights: defineRecord({
    name: 'dealInsights',
    template: '/evaluations/{id}/deal-insights',
    schema: dealInsightsSchema,
    idMember: 'evaluationId',
    idTag: 'evaluation',
  }),
} satisfies Record<ResourceKind, unknown>;

interface RecordDefinition<K extends '_id' | 'evaluationId', R extends Readonly<Record<K | 'workspaceId', string>>> {
  readonly name: RecordKind;
  /** Below the root of the interface, with `{id}`. */
  readonly template: string;
  readonly schema: z.ZodObject & z.ZodType<R>;
  /** The member that holds the id asked for. */
  readonly idMember: K;
  readonly idTag: IdTag;
  /** Tags beside those of the id and of the workspace. */
  readonly otherTags?: (record: R) => readonly RecordTag[];
  readonly createdAtMs?: (record: R) => number;
  readonly evaluations?: (record: R) => readonly EvaluationRecord[];
  readonly memoryFactor?: number;
}

/** A record that is fetched by id. It is checked to be of that id. */
function defineRecord<K extends '_id' | 'evaluationId', R extends Readonly<Record<K | 'workspaceId', string>>>(
  definition: RecordDefinition<K, R>,
): CachedResource<RecordParams, R> {
  const { name, schema, idMember, idTag, otherTags = () => [], memoryFactor = AS_OBJECTS } = definition;
  const { createdAtMs = () => null, evaluations = () => [] } = definition;
  const template = ROOT + definition.template;
  const validate = validatorOf(schema);
  return {
    name,
    template,
    schema,
    validate,
    memoryFactor,
    idTag,
    absentCodes: ['NOT_FOUND', 'NOT_READY'],
    isExact: hasOpenObject(schema),
    title: ({ id }) => `${name} ${id}`,
    path: ({ id }) => {
      if (!ID_PATTERN.test(id)) throw new TypeError(`not an id of the store's ${name} resource`);
      return template.replace('{id}', id);
    },
    parse: async (value, { id }) => {
      // A record of another id tells nothing of the one asked for, its workspace included.
      const sentId = memberOf(value, idMember);
      if (typeof sentId === 'string' && sentId !== id) {
        throw garbled(`the store answered for another id than ${name} ${id} (at ${idMember})`);
      }
      const validation = await validate(value);
      if (validation.ok) return validation.record;
      throw malformed(`the store's ${name} ${id} is malformed at ${validation.path}`, workspaceIdOf(value));
    },
    cacheName: ({ id }) => `${name}:${id}`,
    isAnsweredBy: (record, { id }) => record[idMember] === id,
    workspaceOf: ({ workspaceId }) => workspaceId,
    tags: ({ id }, record) => {
      const known: readonly RecordTag[] = [`${idTag}:${id}`];
      return record === null ? known : [...known, `workspace:${record.workspaceId}`, ...otherTags(record)];
    },
    createdAtMs,
    itemIds: () => [],
    evaluations,
    backfills: () => [],
  };
}

/** Beyond this a list is named by its hash: a list of 50 workspaces would otherwise have a key of 2 kB. */
const MAX_PLAIN_LENGTH = 200;
/** With it begin the names of searched lists, which are hashes: what people search for is nobody else's business. */
export const SEARCH_PREFIX = 'search:';

function listCacheName({ workspaceIds, search, scorecardId, offset, limit }: ListQuery): string {
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
function listTags({ workspaceIds, scorecardId }: ListQuery, page: EvaluationPage | null): readonly RecordTag[] {
  const scorecardIds = new Set((page?.items ?? []).map((item) => item.scorecardRef.id)).add(scorecardId);
  return [
    ...workspaceIds.flatMap((id): readonly RecordTag[] => [`workspace:${id}`, `lists-of:${id}`]),
    ...[...scorecardIds].flatMap((id): readonly RecordTag[] => (id === null ? [] : [`scorecard:${id}`])),
  ];
}

function listPath({ workspaceIds, search, scorecardId, offset, limit }: ListQuery): string {
  const parameters = new URLSearchParams(workspaceIds.map((id): [string, string] => ['workspaceId', id]));
  parameters.set('state', 'COMPLETED');
  if (search !== null) parameters.set('q', search);
  if (scorecardId !== null) parameters.set('scorecardId', scorecardId);
  parameters.set('offset', String(offset));
  parameters.set('limit', String(limit));
  return `${ROOT}/evaluations?${parameters.toString()}`;
}

/**
 * A record of another workspace shows that the store ignored the filter. Its total then counts foreign records too, so
 * nothing of such an answer is used (C4).
 */
async function parseList(
  value: unknown,
  { workspaceIds, limit }: ListQuery,
  onListed: (listed: Listed) => void,
): Promise<EvaluationPage> {
  const page = pageSchema.safeParse(value);
  if (!page.success) throw malformed(`the store's list is malformed at ${faultyMember(page.error)}`);
  const { items, total } = page.data;
  const yieldToEventLoop = createYield();
  for (const item of items) {
    await yieldToEventLoop();
    const workspaceId = workspaceIdOf(item);
    if (workspaceId === null || workspaceIds.includes(workspaceId)) continue;
    const which = idOf(item) ?? 'a record without an id';
    throw garbled(`the store ignored the workspaces asked for: its list holds ${which} of another workspace`);
  }
  const kept = new Map<string, EvaluationRecord>();
  const leftOut: LeftOut[] = [];
  // Cut first: what the store sends too much costs nothing.
  const sent = items.slice(0, limit);
  for (const item of sent) {
    await yieldToEventLoop();
    const validation = await validateEvaluation(item);
    if (!validation.ok) {
      leftOut.push({ id: idOf(item), path: validation.path });
      continue;
    }
    const { record } = validation;
    if (record.state !== 'COMPLETED') leftOut.push({ id: record['_id'], path: 'state' });
    else if (kept.has(record['_id'])) leftOut.push({ id: record['_id'], path: '_id' });
    else {
      kept.set(record['_id'], record);
      if (!hasReport(record)) leftOut.push({ id: record['_id'], path: REPORT_EMAIL_PATH, surface: 'v1' });
    }
  }
  onListed({ records: sent.length, leftOut });
  const whole = [...kept.values()].toSorted(newestFirst);
  return { items: whole, omitted: sent.length - kept.size, sentIds: sent.map(idOf), total };
}

/** A page as it was parsed: one faulty record is the page's fault. */
async function validatePage(value: unknown): Promise<Validation<EvaluationPage>> {
  const page = parsedPageSchema.safeParse(value);
  if (!page.success) return { ok: false, path: faultyMember(page.error) };
  const yieldToEventLoop = createYield();
  const items: EvaluationRecord[] = [];
  for (const [index, item] of page.data.items.entries()) {
    await yieldToEventLoop();
    const validation = await validateEvaluation(item);
    if (!validation.ok) return { ok: false, path: `items.${index}.${validation.path}` };
    items.push(validation.record);
  }
  return { ok: true, record: { ...page.data, items } };
}

const identifiedSchema = z.object({ _id: z.string().regex(ID_PATTERN) });

function idOf(item: unknown): string | null {
  return identifiedSchema.safeParse(item).data?.['_id'] ?? null;
}

/** The interface's order, which is also the public one (Q5: newest first, then by id, descending by code unit). */
function newestFirst(a: EvaluationRecord, b: EvaluationRecord): number {
  if (a.createdAtMs !== b.createdAtMs) return b.createdAtMs - a.createdAtMs;
  return b['_id'] > a['_id'] ? 1 : -1;
}
