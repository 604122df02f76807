/** A span for each call to the store, one per try, which goes on to the store by `traceparent`. */
import { type Span, type SpanContext, SpanKind } from '@opentelemetry/api';
import { ATTR_HTTP_REQUEST_METHOD, ATTR_HTTP_RESPONSE_STATUS_CODE } from '@opentelemetry/semantic-conventions';
import type { Resource } from '../upstream/resources.ts';
import type { Fetch, FetchOptions } from '../upstream/store.ts';
import { ATTR_URL_TEMPLATE, EVALGATE } from './names.ts';
import { isRecorded, type Spans } from './spans.ts';
import type { StoreHooks } from '../telemetry/hooks.ts';

export class StoreSpans {
  readonly #spans: Spans;
  readonly #isPropagated: boolean;

  /** `isPropagated`: whether the store gets `traceparent`. */
  constructor(spans: Spans, isPropagated: boolean) {
    this.#spans = spans;
    this.#isPropagated = isPropagated;
  }

  store(send: Fetch): Fetch {
    return (resource, params, request) => {
      const cause = this.#spans.active();
      if (cause !== undefined && !isRecorded(cause)) return send(resource, params, this.#carrying(cause, request));
      const span = this.#begin(cause, resource);
      return this.#spans.during(span, () => send(resource, params, this.#carrying(span, request)));
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

  /** Without the store's address, which never leaves the gateway (K2). */
  #begin(
    cause: Span | undefined,
    { name: resource, template }: Pick<Resource<never, unknown>, 'name' | 'template'>,
  ): Span {
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

/** W3C Trace Context, version 00, and of the flags the one that is known. */
function writeTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
}
