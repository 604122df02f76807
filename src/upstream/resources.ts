/**
 * The table of the store's resources. Each is declared once: where it is fetched, how its record is checked, whose it is,
 * and what its copies are found and purged by. Client, guard, cache, purges and the format in Redis all go by the table.
 *
 * A new resource is a name in `RESOURCE_KINDS` and a declaration in `RESOURCES`. Beside the table it needs:
 * - the schema of its record in `domain/records.ts`, and its public form in another file of `domain/`
 * - its TTLs and its limit of stale answers in `config/config.ts`, and both in the root's `config/default.yaml`
 * - the ids of its operations in `domain/operations.ts`, its routes in `http/v1.ts` or `http/v2.ts`, and an example body in
 *   `http/openapi/examples.ts`
 * - its name in `CLASSES` of `admin/dashboard/page/api.js`
 */
import type { z } from 'zod';
import {
  type ApiKeyRecord,
  apiKeySchema,
  dealInsightsSchema,
  evaluationSchema,
  ID_PATTERN,
  scorecardSchema,
  scoredCardSchema,
  transcriptSchema,
} from '../domain/records.ts';
import { list } from './evaluation-list.ts';
import { type Absent, malformed } from './store.ts';
import { validatorOf, withoutInternalMembers, workspaceIdOf } from './validation.ts';

/** The resources that are cached, each with TTLs of its own. Their order is part of the what-if messages: append only. */
export const RESOURCE_KINDS = ['list', 'evaluation', 'transcript', 'scorecard', 'rubric', 'dealInsights'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];
/** Those that are single records, by id. */
export type RecordKind = Exclude<ResourceKind, 'list'>;

/** Names a resource in logs, metrics and spans. */
export type ResourceName = ResourceKind | 'apiKey';

/** `P`: what identifies a record; `R`: the record. */
export interface Resource<P, R> {
  readonly name: ResourceName;
  /** In place of the path, which holds ids: what spans show. */
  readonly template: string;
  /** The codes with which a 404 is an answer; any other 404 is a failure of the store (Q9). */
  readonly absentCodes: readonly Absent['code'][];
  /** Path and query below the store's base address. Throws a TypeError for parameters that the interface does not allow. */
  path(params: P): string;
  /** The record in a 200's JSON. Throws a StoreError of kind `malformed`, or rejects with one. */
  parse(value: unknown, params: P, onLeftOut: (leftOut: LeftOut) => void): R | Promise<R>;
}

/** A resource whose answers are cached. */
export interface CachedResource<P, R> extends Resource<P, R> {
  readonly name: ResourceKind;
  /** A record as it was parsed, to check what is read back from Redis. */
  readonly schema: z.ZodType<R>;
  /** The bytes that a record takes in memory, for each byte of its JSON. */
  readonly memoryFactor: number;
  /** The tag of the id, which copies are purged by; null for what has no id. */
  readonly idTag: IdTag | null;
  /** One form for all parameters that ask for the same. */
  normalise(params: P): P;
  /** Names an answer among all that are cached: equal for equal parameters, which are normalised. */
  cacheName(params: P): string;
  /** Whether the record is of the id, or of the workspaces, asked for. One that is not is never stored or served (C4). */
  isAnsweredBy(record: R, params: P): boolean;
  /** The workspace of a single record, which decides who may see it; null for a list, whose workspaces are its parameters. */
  workspaceOf(record: R): string | null;
  /** What copies are purged by (C6); `record` is null for an absent one. */
  tags(params: P, record: R | null): readonly RecordTag[];
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
  /** The faulty member: `evaluatee.email`, `state`; `_id` for a record that the page holds already. Never its value. */
  readonly path: string;
}

export interface RecordParams {
  readonly id: string;
}

const ROOT = '/internal/v1';
const KEY_HASH_PATTERN = /^[0-9a-f]{64}$/;
/** How much more memory a record takes as objects than as text: well above what the heap holds, room around it included. */
const AS_OBJECTS = 2;

export const RESOURCES = {
  list,
  evaluation: defineRecord({
    name: 'evaluation',
    template: '/evaluations/{id}',
    schema: evaluationSchema,
    idMember: '_id',
    idTag: 'evaluation',
    otherTags: ({ scorecardRef: { id } }) => (id === null ? [] : [`scorecard:${id}`]),
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
    clean: (record) => ({ ...record, rubric: withoutInternalMembers(record.rubric) }),
  }),
  dealInsights: defineRecord({
    name: 'dealInsights',
    template: '/evaluations/{id}/deal-insights',
    schema: dealInsightsSchema,
    idMember: 'evaluationId',
    idTag: 'evaluation',
    clean: (record) => ({ ...record, insights: withoutInternalMembers(record.insights) }),
  }),
} satisfies Record<ResourceKind, unknown>;

const validateApiKey = validatorOf(apiKeySchema);

/** By the lower-case hex SHA-256 of the key, which no record repeats and no message shows. It is not cached here. */
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
  /** What is done to a valid record before it is passed on. */
  readonly clean?: (record: R) => R;
  readonly memoryFactor?: number;
}

/** A record that is fetched by id. It is checked to be of that id. */
function defineRecord<K extends '_id' | 'evaluationId', R extends Readonly<Record<K | 'workspaceId', string>>>(
  definition: RecordDefinition<K, R>,
): CachedResource<RecordParams, R> {
  const { name, schema, idMember, idTag, memoryFactor = AS_OBJECTS } = definition;
  const template = ROOT + definition.template;
  const validate = validatorOf(schema);
  return {
    name,
    template,
    schema,
    memoryFactor,
    idTag,
    absentCodes: ['NOT_FOUND', 'NOT_READY'],
    path: ({ id }) => {
      if (!ID_PATTERN.test(id)) throw new TypeError(`not an id of the store's ${name} resource`);
      return template.replace('{id}', id);
    },
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
      return definition.clean?.(record) ?? record;
    },
    normalise: (params) => params,
    cacheName: ({ id }) => `${name}:${id}`,
    isAnsweredBy: (record, { id }) => record[idMember] === id,
    workspaceOf: ({ workspaceId }) => workspaceId,
    tags: ({ id }, record) => {
      const known: readonly RecordTag[] = [`${idTag}:${id}`];
      if (record === null) return known;
      return [...known, `workspace:${record.workspaceId}`, ...(definition.otherTags?.(record) ?? [])];
    },
    backfills: () => [],
  };
}
