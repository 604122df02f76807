/** Requests to the store as values: everything that the cache needs to know of each, so that it treats all alike. */
import type {
  DealInsightsRecord,
  EvaluationPage,
  EvaluationRecord,
  ScorecardRecord,
  ScoredCardRecord,
  TranscriptRecord,
} from '../domain/records.ts';
import * as resources from '../upstream/resources.ts';
import type { Resource, ResourceKind } from '../upstream/resources.ts';
import type { Fetch, FetchOptions, ListQuery, StoreAnswer } from '../upstream/store.ts';
import { listKey, normaliseQuery, singleKey } from './cache-key.ts';
import { hash32 } from './hash.ts';
import { evaluationTags, listTags, partTags, rubricTags, type Tag } from './tags.ts';

export interface CacheRequest<T> {
  readonly kind: ResourceKind;
  readonly key: string;
  /** `hash32` of the key. */
  readonly keyHash: number;
  /** Rejects as the store's `Fetch` does. */
  fetch(send: Fetch, options: FetchOptions): Promise<StoreAnswer<T>>;
  /** Whether the record is of the id, or of the workspaces, asked for. One that is not is never stored or served (C4). */
  isAnsweredBy(record: T): boolean;
  /** The workspace of a single record, which decides who may see it; null for a list, whose workspaces are in its key. */
  workspaceOf(record: T): string | null;
  /** The tags of the answer beside those of its class; `record` is null for an absent one. */
  tags(record: T | null): readonly Tag[];
  /** The single evaluations that the answer holds, to be cached as well. */
  backfills(record: T): readonly EvaluationRecord[];
}

/** A searched list backfills nothing, because searches vary without end. */
export function listRequest(given: ListQuery): CacheRequest<EvaluationPage> {
  const query = normaliseQuery(given);
  const key = listKey(query);
  return {
    kind: 'list',
    key,
    keyHash: hash32(key),
    fetch: (send, options) => send(resources.list, query, options),
    // A list with a record of another workspace is not trusted at all.
    isAnsweredBy: ({ items }) => items.every(({ workspaceId }) => query.workspaceIds.includes(workspaceId)),
    workspaceOf: () => null,
    tags: (page) => listTags(query, page),
    backfills: ({ items }) => (query.search === null ? items : []),
  };
}

/** Makes the request of a record, by kind and id. */
export const RECORD_REQUESTS = {
  evaluation: recordRequests<EvaluationRecord>({
    resource: resources.evaluation,
    kind: 'evaluation',
    idOf: (record) => record['_id'],
    tags: evaluationTags,
  }),
  transcript: recordRequests<TranscriptRecord>({
    resource: resources.transcript,
    kind: 'transcript',
    idOf: ({ evaluationId }) => evaluationId,
    tags: partTags,
  }),
  scorecard: recordRequests<ScoredCardRecord>({
    resource: resources.scorecard,
    kind: 'scorecard',
    idOf: ({ evaluationId }) => evaluationId,
    tags: partTags,
  }),
  dealInsights: recordRequests<DealInsightsRecord>({
    resource: resources.dealInsights,
    kind: 'dealInsights',
    idOf: ({ evaluationId }) => evaluationId,
    tags: partTags,
  }),
  rubric: recordRequests<ScorecardRecord>({
    resource: resources.rubric,
    kind: 'rubric',
    idOf: (record) => record['_id'],
    tags: rubricTags,
  }),
} satisfies Record<Exclude<ResourceKind, 'list'>, unknown>;

interface RecordDeclaration<T> {
  readonly resource: Resource<{ readonly id: string }, T>;
  readonly kind: Exclude<ResourceKind, 'list'>;
  readonly idOf: (record: T) => string;
  readonly tags: (id: string, record: T | null) => readonly Tag[];
}

function recordRequests<T extends { readonly workspaceId: string }>({
  resource,
  kind,
  idOf,
  tags,
}: RecordDeclaration<T>): (id: string) => CacheRequest<T> {
  return (id) => {
    const key = singleKey(kind, id);
    return {
      kind,
      key,
      keyHash: hash32(key),
      fetch: (send, options) => send(resource, { id }, options),
      isAnsweredBy: (record) => idOf(record) === id,
      workspaceOf: ({ workspaceId }) => workspaceId,
      tags: (record) => tags(id, record),
      backfills: () => [],
    };
  };
}
