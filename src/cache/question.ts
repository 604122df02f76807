/** The store's six questions as values: what the cache needs to know of each, so that it treats them all alike. */
import { LRUCache } from 'lru-cache';
import type {
  DealInsightsRecord,
  EvaluationPage,
  EvaluationRecord,
  ScorecardRecord,
  ScoredCardRecord,
  TranscriptRecord,
} from '../domain/records.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import * as resources from '../upstream/resources.ts';
import type { ResourceKind } from '../upstream/resources.ts';
import type { Fetch, FetchOptions, ListQuery, StoreAnswer } from '../upstream/store.ts';
import { listKey, normaliseQuery, singleKey } from './cache-key.ts';
import { hash32 } from './hash.ts';
import type { CacheRead, EvaluationReader, ReadContext } from './reader.ts';
import { evaluationTags, listTags, partTags, rubricTags, type Tag } from './tags.ts';

/** Remembered of each kind; each takes about a kilobyte. */
const MOST_QUESTIONS = 256;

export interface Question<T> {
  readonly kind: ResourceKind;
  readonly key: string;
  /** `hash32` of the key. */
  readonly keyHash: number;
  ask(fetch: Fetch, options: FetchOptions): Promise<StoreAnswer<T>>;
  /** What of the answer is of the id, or of the workspaces, asked for; null if it is not the answer to this at all. */
  check(record: T): T | null;
  /** The workspace of a single record: whom it may be served to, and stored for. Null for a list, which `check` has cut. */
  workspaceOf(record: T): string | null;
  /** What the answer can be purged by beyond its class; `record` is null for an absent one. */
  tags(record: T | null): readonly Tag[];
  /** The single evaluations that the answer holds. */
  seeds(record: T): readonly EvaluationRecord[];
}

/** A page that holds records of other workspaces loses them. Searched lists seed nothing, however often they vary. */
export function listQuestion(given: ListQuery): Question<EvaluationPage> {
  const query = normaliseQuery(given);
  const isAskedFor = (item: EvaluationRecord): boolean => query.workspaceIds.includes(item.workspaceId);
  return {
    kind: 'list',
    ...keyed(listKey(query)),
    ask: (fetch, options) => fetch(resources.list, query, options),
    check: (page) =>
      page.items.every(isAskedFor) ? page : { items: page.items.filter(isAskedFor), total: page.total },
    workspaceOf: () => null,
    tags: (page) => listTags(query, page),
    seeds: (page) => (query.search === null ? page.items : []),
  };
}

export function evaluationQuestion(id: string): Question<EvaluationRecord> {
  return {
    ...single,
    kind: 'evaluation',
    ...keyed(singleKey('evaluation', id)),
    ask: (fetch, options) => fetch(resources.evaluation, { id }, options),
    check: (record) => (record['_id'] === id ? record : null),
    tags: (record) => evaluationTags(id, record),
  };
}

export function transcriptQuestion(id: string): Question<TranscriptRecord> {
  return { ...partQuestion('transcript', id), ask: (fetch, options) => fetch(resources.transcript, { id }, options) };
}

export function scorecardQuestion(id: string): Question<ScoredCardRecord> {
  return { ...partQuestion('scorecard', id), ask: (fetch, options) => fetch(resources.scorecard, { id }, options) };
}

export function dealInsightsQuestion(id: string): Question<DealInsightsRecord> {
  return {
    ...partQuestion('dealInsights', id),
    ask: (fetch, options) => fetch(resources.dealInsights, { id }, options),
  };
}

export function rubricQuestion(id: string): Question<ScorecardRecord> {
  return {
    ...single,
    kind: 'rubric',
    ...keyed(singleKey('rubric', id)),
    ask: (fetch, options) => fetch(resources.rubric, { id }, options),
    check: (record) => (record['_id'] === id ? record : null),
    tags: (record) => rubricTags(id, record),
  };
}

function keyed(key: string): Pick<Question<unknown>, 'key' | 'keyHash'> {
  return { key, keyHash: hash32(key) };
}

const single = {
  seeds: () => [],
  workspaceOf: (record: { readonly workspaceId: string }) => record.workspaceId,
};

interface Part {
  readonly evaluationId: string;
  readonly workspaceId: string;
}

function partQuestion<T extends Part>(
  kind: 'transcript' | 'scorecard' | 'dealInsights',
  id: string,
): Omit<Question<T>, 'ask'> {
  return {
    ...single,
    kind,
    ...keyed(singleKey(kind, id)),
    check: (record) => (record.evaluationId === id ? record : null),
    tags: (record) => partTags(id, record),
  };
}

/** A reader that answers all six questions in one way. */
export function readerOf(
  read: <T>(question: Question<T>, context: ReadContext) => MaybePromise<CacheRead<T>>,
): EvaluationReader {
  // The same query is asked again and again, as the same object where its asker remembers it.
  const lists = new WeakMap<ListQuery, Question<EvaluationPage>>();
  const listQuestionOf = (query: ListQuery): Question<EvaluationPage> => {
    const known = lists.get(query);
    if (known !== undefined) return known;
    const question = listQuestion(query);
    lists.set(query, question);
    return question;
  };
  const about = {
    evaluation: remembered(evaluationQuestion),
    transcript: remembered(transcriptQuestion),
    scorecard: remembered(scorecardQuestion),
    dealInsights: remembered(dealInsightsQuestion),
    rubric: remembered(rubricQuestion),
  };
  return {
    list: (query, context) => read(listQuestionOf(query), context),
    evaluation: (id, context) => read(about.evaluation(id), context),
    transcript: (id, context) => read(about.transcript(id), context),
    scorecard: (id, context) => read(about.scorecard(id), context),
    dealInsights: (id, context) => read(about.dealInsights(id), context),
    rubric: (id, context) => read(about.rubric(id), context),
  };
}

/** The questions about the ids that were asked for last: what is read often is read about the same few. */
function remembered<T>(make: (id: string) => Question<T>): (id: string) => Question<T> {
  const known = new LRUCache<string, Question<T>>({ max: MOST_QUESTIONS });
  return (id) => {
    const earlier = known.get(id);
    if (earlier !== undefined) return earlier;
    const question = make(id);
    known.set(id, question);
    return question;
  };
}
