/** A span for each call to the store, one a try; the store is told of it by `traceparent`. */
import { type Span, SpanKind } from '@opentelemetry/api';
import { ATTR_HTTP_REQUEST_METHOD, ATTR_HTTP_RESPONSE_STATUS_CODE } from '@opentelemetry/semantic-conventions';
import type { HttpStore } from '../upstream/http-store.ts';
import { ROOT_PATH, type StoreResource } from '../upstream/question.ts';
import type { FetchOptions } from '../upstream/store.ts';
import { ATTR_URL_TEMPLATE, EVALGATE } from './names.ts';
import { isRecorded, type Spans } from './spans.ts';
import { writeTraceparent } from './traceparent.ts';
import type { StoreHooks } from './tracing.ts';

/** In place of the paths, which hold ids. */
const TEMPLATES: Readonly<Record<StoreResource, string>> = {
  list: `${ROOT_PATH}/evaluations`,
  evaluation: `${ROOT_PATH}/evaluations/{id}`,
  transcript: `${ROOT_PATH}/evaluations/{id}/transcript`,
  scorecard: `${ROOT_PATH}/evaluations/{id}/scorecard`,
  dealInsights: `${ROOT_PATH}/evaluations/{id}/deal-insights`,
  rubric: `${ROOT_PATH}/scorecards/{id}`,
  apiKey: `${ROOT_PATH}/api-keys/{hash}`,
};

export class StoreSpans {
  readonly #spans: Spans;
  readonly #isPropagated: boolean;

  /** `isPropagated`: whether the store is told of traces. */
  constructor(spans: Spans, isPropagated: boolean) {
    this.#spans = spans;
    this.#isPropagated = isPropagated;
  }

  store(store: HttpStore): HttpStore {
    return {
      list: (query, request) => this.#ask('list', request, (sent) => store.list(query, sent)),
      evaluation: (id, request) => this.#ask('evaluation', request, (sent) => store.evaluation(id, sent)),
      transcript: (id, request) => this.#ask('transcript', request, (sent) => store.transcript(id, sent)),
      scorecard: (id, request) => this.#ask('scorecard', request, (sent) => store.scorecard(id, sent)),
      dealInsights: (id, request) => this.#ask('dealInsights', request, (sent) => store.dealInsights(id, sent)),
      rubric: (id, request) => this.#ask('rubric', request, (sent) => store.rubric(id, sent)),
      apiKey: (hash, request) => this.#ask('apiKey', request, (sent) => store.apiKey(hash, sent)),
      close: () => store.close(),
    };
  }

  /** They are called while the call's span, or for the guard the one that it is made for, is worked for. */
  hooks({ store, guard }: StoreHooks): StoreHooks {
    return {
      store: {
        ...store,
        onCall: (call) => {
          const span = this.#spans.open();
          span?.setAttribute(EVALGATE.storeOutcome, call.outcome);
          if (call.status !== null) span?.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, call.status);
          store.onCall?.(call);
        },
      },
      guard: {
        ...guard,
        onTurnTaken: (turn) => {
          this.#spans.open()?.setAttribute(EVALGATE.queueMs, Math.round(turn.waitedMs));
          guard.onTurnTaken?.(turn);
        },
      },
    };
  }

  #ask<T>(resource: StoreResource, request: FetchOptions, send: (request: FetchOptions) => Promise<T>): Promise<T> {
    const cause = this.#spans.active();
    if (cause !== undefined && !isRecorded(cause)) return send(this.#carrying(cause, request));
    const span = this.#begin(cause, resource);
    return this.#spans.during(span, () => send(this.#carrying(span, request)));
  }

  /** Without the store's address, which nothing that leaves the gateway tells of (K2). */
  #begin(cause: Span | undefined, resource: StoreResource): Span {
    const template = TEMPLATES[resource];
    const options = {
      kind: SpanKind.CLIENT,
      attributes: {
        [ATTR_HTTP_REQUEST_METHOD]: 'GET',
        [ATTR_URL_TEMPLATE]: template,
        [EVALGATE.resource]: resource,
      },
    };
    const name = `GET ${template}`;
    return cause === undefined ? this.#spans.caused(cause, name, options) : this.#spans.child(cause, name, options);
  }

  /** Never with what the consumer sent: that names the consumer's own call. */
  #carrying(span: Span, { traceparent: _consumers, ...request }: FetchOptions): FetchOptions {
    return this.#isPropagated ? { ...request, traceparent: writeTraceparent(span.spanContext()) } : request;
  }
}
