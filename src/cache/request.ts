/** A request to the store as a value: all that the cache needs to know of it, from the table of resources. Pure. */
import type { EvaluationRecord } from '../domain/records.ts';
import type { Address } from './address.ts';
import {
  type Backfill,
  type CachedResource,
  EVALUATION_KINDS,
  type RecordKind,
  type RecordParams,
  type RecordTag,
  type ResourceKind,
  RESOURCES,
  SEARCH_PREFIX,
} from '../upstream/resources.ts';
import type { Fetch, FetchOptions, StoreAnswer } from '../upstream/store.ts';

/** Goes up with ENTRY_VERSION in redis/entry-format.ts, so that two releases can run side by side over one Redis. */
export const KEY_VERSION = 'v3';

export interface CacheRequest<T> {
  readonly kind: ResourceKind;
  /** Such as `v3:{evaluation:ID}`: the version of the format, not of the API. */
  readonly key: string;
  /** `hash32` of the key. */
  readonly keyHash: number;
  /** Rejects as the store's `Fetch` does. */
  send(fetch: Fetch, options: FetchOptions): Promise<StoreAnswer<T>>;
  // As `CachedResource` says, for these parameters.
  isAnsweredBy(record: T): boolean;
  workspaceOf(record: T): string | null;
  tags(record: T | null): readonly RecordTag[];
  createdAtMs(record: T): number | null;
  itemIds(record: T): readonly string[];
  evaluations(record: T): readonly EvaluationRecord[];
  backfills(record: T): readonly Backfill[];
}

/** The request for these parameters; equal questions have equal keys. */
export function cacheRequest<P, R>(resource: CachedResource<P, R>, params: P): CacheRequest<R> {
  const key = keyOf(resource, params);
  return {
    kind: resource.name,
    key,
    keyHash: hash32(key),
    send: (fetch, options) => fetch(resource, params, options),
    isAnsweredBy: (record) => resource.isAnsweredBy(record, params),
    workspaceOf: (record) => resource.workspaceOf(record),
    tags: (record) => resource.tags(params, record),
    createdAtMs: (record) => resource.createdAtMs(record),
    itemIds: (record) => resource.itemIds(record),
    evaluations: (record) => resource.evaluations(record),
    backfills: (record) => resource.backfills(record, params),
  };
}

/** The key of that request. Its name in Redis, and the hash tag in it, are made in redis/names.ts. */
function keyOf<P>(resource: Pick<CachedResource<P, unknown>, 'cacheName'>, params: P): string {
  return `${KEY_VERSION}:{${resource.cacheName(params)}}`;
}

export function recordKey(kind: RecordKind, id: string): string {
  return keyOf(RESOURCES[kind], { id });
}

/** The request of a single record whose type does not matter, or is checked by the caller. */
export function recordRequest(kind: RecordKind, id: string): CacheRequest<unknown> {
  const resource: CachedResource<RecordParams, unknown> = RESOURCES[kind];
  return cacheRequest(resource, { id });
}

/** The keys of all records that belong to an evaluation. */
export function keysOfEvaluation(id: string): readonly string[] {
  return EVALUATION_KINDS.map((kind) => recordKey(kind, id));
}

/** Whether the record is of the id in the key, and of the workspace that it is filed under. A list has neither. */
export function isOfAddress(kind: ResourceKind, { key, owner }: Address, record: unknown): boolean {
  if (kind === 'list') return true;
  const id = idIn(kind, key);
  const resource: CachedResource<RecordParams, unknown> = RESOURCES[kind];
  return resource.isAnsweredBy(record, { id }) && resource.workspaceOf(record) === owner;
}

/** The request of the evaluation that a record is a part of; null for what is no part of one. */
export function evaluationOf({ kind, key }: Pick<CacheRequest<unknown>, 'kind' | 'key'>): CacheRequest<unknown> | null {
  if (kind === 'list' || kind === 'evaluation' || RESOURCES[kind].idTag !== 'evaluation') return null;
  return recordRequest('evaluation', idIn(kind, key));
}

/** The id in the key of a record. */
export function idIn(kind: RecordKind, key: string): string {
  return key.slice(`${KEY_VERSION}:{${kind}:`.length, -1);
}

/** Whether the key is that of a searched list. */
export function isSearchKey(key: string): boolean {
  return key.startsWith(`${KEY_VERSION}:{${SEARCH_PREFIX}`);
}

/**
 * A 32-bit hash of a string, not cryptographic, as an unsigned integer: FNV-1a, then `mix32`, because FNV's high bits hardly
 * differ for strings that differ only at their ends.
 */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return mix32(hash);
}

/**
 * MurmurHash3's finalizer, not cryptographic: each bit of what goes in changes about half of those that come out, an unsigned
 * integer.
 */
export function mix32(bits: number): number {
  let hash = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
