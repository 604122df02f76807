/** A span for each request, from its headers to the end of its answer. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Attributes, type Span, type SpanContext, SpanKind } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_NETWORK_PROTOCOL_VERSION,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions';
import type { PublicAppHooks, RequestHandler } from '../http/app.ts';
import type { RequestReport } from '../http/middleware/request-context.ts';
import { errorTypeOf, EVALGATE } from './names.ts';
import { isRecorded, markFailed, type Spans } from './spans.ts';

/** Never sent: the status in the log of a request whose client had gone. */
const CLIENT_GONE = 499;
const MAX_TRACEPARENT_LENGTH = 512;
/** The semantic conventions have these; any other is `_OTHER`. */
const METHODS: ReadonlySet<string> = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'TRACE',
]);

export class ServerSpans {
  readonly #spans: Spans;
  readonly #isPropagated: boolean;
  readonly #byResponse = new WeakMap<ServerResponse, Span>();

  /** `isPropagated`: whether callers' traces are continued. */
  constructor(spans: Spans, isPropagated: boolean) {
    this.#spans = spans;
    this.#isPropagated = isPropagated;
  }

  handler(handler: RequestHandler): RequestHandler {
    return (request, response) => {
      const caller = this.#isPropagated ? readTraceparent(request.headers['traceparent']) : null;
      const span = this.#spans.continued(caller, nameOf(request.method ?? '', null), { kind: SpanKind.SERVER });
      if (isRecorded(span)) span.setAttributes(attributesOf(request));
      this.#byResponse.set(response, span);
      return this.#spans.within(span, () => handler(request, response));
    };
  }

  http(hooks: PublicAppHooks): PublicAppHooks {
    return {
      ...hooks,
      onRequest: (report, response) => {
        const span = this.#byResponse.get(response);
        if (span === undefined) return hooks.onRequest(report, response);
        if (isRecorded(span)) {
          describe(span, report);
          this.#spans.end(span);
        }
        return hooks.onRequest({ ...report, traceId: span.spanContext().traceId }, response);
      },
    };
  }
}

/** The caller's span (W3C Trace Context); null if the header is missing, malformed or repeated. */
function readTraceparent(header: string | readonly string[] | undefined): SpanContext | null {
  if (typeof header !== 'string' || header.length > MAX_TRACEPARENT_LENGTH) return null;
  const parsed = parseTraceParent(header);
  return parsed === null ? null : { ...parsed, isRemote: true };
}

function nameOf(method: string, route: string | null): string {
  const shown = METHODS.has(method) ? method : 'HTTP';
  return route === null ? shown : `${shown} ${route}`;
}

/** Never the path or the query (K2), nor the `Host` that was asked for, which is the caller's text. */
function attributesOf({ method = '', httpVersion, socket }: IncomingMessage): Attributes {
  const { localAddress, localPort } = socket;
  return {
    [ATTR_HTTP_REQUEST_METHOD]: METHODS.has(method) ? method : '_OTHER',
    [ATTR_URL_SCHEME]: 'http',
    [ATTR_NETWORK_PROTOCOL_VERSION]: httpVersion,
    ...(localAddress === undefined ? {} : { [ATTR_SERVER_ADDRESS]: localAddress }),
    ...(localPort === undefined ? {} : { [ATTR_SERVER_PORT]: localPort }),
  };
}

/** The same as in the log line of the request. */
function describe(span: Span, report: RequestReport): void {
  const { requestId, keyId, surface, route, method, status, cache, failure, aborted } = report;
  span.updateName(nameOf(method, route));
  span.setAttributes({
    [EVALGATE.requestId]: requestId,
    [EVALGATE.surface]: surface,
    ...(route === null ? {} : { [ATTR_HTTP_ROUTE]: route }),
    ...(keyId === null ? {} : { [EVALGATE.keyId]: keyId }),
    ...(cache === null ? {} : { [EVALGATE.cacheOutcome]: cache }),
    ...(aborted ? { [EVALGATE.isAborted]: true } : {}),
    // Nothing was sent to a client that had gone: its status is the log's alone.
    ...(status === CLIENT_GONE ? {} : { [ATTR_HTTP_RESPONSE_STATUS_CODE]: status }),
  });
  if (status >= 500) markFailed(span, failure === null ? String(status) : errorTypeOf(failure));
}
