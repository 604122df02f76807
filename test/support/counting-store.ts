import type { EvaluationPage, EvaluationRecord } from '../../src/domain/records.ts';
import type {
  EvaluationStore,
  FetchOptions,
  ListQuery,
  ResourceKind,
  StoreAnswer,
  StoreError,
} from '../../src/upstream/store.ts';
import { aScorecard, aScoredCard, aTranscript, dealInsights } from './records.ts';

export interface StoreCall {
  readonly kind: ResourceKind;
  /** The id, or the query as JSON. */
  readonly subject: string;
  readonly options: FetchOptions;
}

interface HeldCall {
  readonly call: StoreCall;
  readonly release: () => void;
  readonly fail: (error: Error) => void;
}

/**
 * A store that counts what it is asked. It answers from its records as they were when the call came in, at once, or
 * when the test lets it: after `hold()`, calls wait in `held`.
 */
export class CountingStore implements EvaluationStore {
  readonly calls: StoreCall[] = [];
  readonly held: HeldCall[] = [];
  readonly evaluations = new Map<string, EvaluationRecord>();
  /** Parts of evaluations and rubrics that are absent, as `kind:id`. */
  readonly absent = new Set<string>();
  /** What every call fails with from now on. */
  failure: StoreError | null = null;
  /** Whether answers carry an ETag. */
  hasEtags = true;
  /** Changes every part and rubric. */
  revision = 1;
  #isHolding = false;

  hold(): void {
    this.#isHolding = true;
  }

  /** Answers all calls that wait, in order, and holds no more. */
  release(): void {
    this.#isHolding = false;
    for (const { release } of this.held.splice(0)) release();
  }

  count(kind?: ResourceKind): number {
    return this.calls.filter((call) => kind === undefined || call.kind === kind).length;
  }

  list(query: ListQuery, options: FetchOptions): Promise<StoreAnswer<EvaluationPage>> {
    return this.#answer({ kind: 'list', subject: JSON.stringify(query), options }, () => {
      const matching = [...this.evaluations.values()].filter((record) =>
        query.workspaceIds.includes(record.workspaceId),
      );
      return { items: matching.slice(query.offset, query.offset + query.limit), total: matching.length };
    });
  }

  evaluation(id: string, options: FetchOptions): Promise<StoreAnswer<EvaluationRecord>> {
    return this.#answer({ kind: 'evaluation', subject: id, options }, () => this.evaluations.get(id) ?? null);
  }

  transcript(id: string, options: FetchOptions): ReturnType<EvaluationStore['transcript']> {
    return this.#part({ kind: 'transcript', subject: id, options }, () =>
      aTranscript({ evaluationId: id, body: `Sam: ${this.revision}` }),
    );
  }

  scorecard(id: string, options: FetchOptions): ReturnType<EvaluationStore['scorecard']> {
    return this.#part({ kind: 'scorecard', subject: id, options }, () => aScoredCard({ evaluationId: id }));
  }

  dealInsights(id: string, options: FetchOptions): ReturnType<EvaluationStore['dealInsights']> {
    return this.#part({ kind: 'dealInsights', subject: id, options }, () =>
      dealInsights({ evaluationId: id, permalink: `/${this.revision}` }),
    );
  }

  rubric(id: string, options: FetchOptions): ReturnType<EvaluationStore['rubric']> {
    return this.#part({ kind: 'rubric', subject: id, options }, () =>
      aScorecard({ _id: id, name: `Rubric ${this.revision}` }),
    );
  }

  #part<T>(call: StoreCall, make: () => T): Promise<StoreAnswer<T>> {
    return this.#answer(call, () => (this.absent.has(`${call.kind}:${call.subject}`) ? null : make()));
  }

  #answer<T>(call: StoreCall, find: () => T | null): Promise<StoreAnswer<T>> {
    this.calls.push(call);
    if (this.failure !== null) return Promise.reject(this.failure);
    const record = find();
    const answer =
      record === null ? ({ kind: 'absent', code: 'NOT_FOUND' } as const) : this.#found(record, call.options);
    if (!this.#isHolding) return Promise.resolve(answer);
    const { promise, resolve, reject } = Promise.withResolvers<StoreAnswer<T>>();
    this.held.push({ call, release: () => resolve(answer), fail: reject });
    return promise;
  }

  #found<T>(record: T, options: FetchOptions): StoreAnswer<T> {
    const text = JSON.stringify(record);
    const etag = this.hasEtags ? `"${text}"` : null;
    if (etag !== null && options.ifNoneMatch === etag) return { kind: 'not-modified' };
    return { kind: 'found', record, etag, bytes: Buffer.byteLength(text) };
  }
}
