/** The span of a request, from its headers until its answer was sent or its client had left. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Attributes, Span } from '@opentelemetry/api';
import type { RequestHandler } from '../server/server.ts';
import { CLIENT_CLOSED_REQUEST, type RequestReport } from '../telemetry/request-report.ts';
import { beginSpan, endSpan, errorTypeOf, markFailed, openTelemetry } from '../tracing/spans.ts';

/** The semantic conventions have these; any other is `_OTHER`. */
const METHODS = /^(?:CONNECT|DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|TRACE)$/;

/** Reads nothing but `traceparent`: `tracestate` and `baggage` are texts of the caller's choosing. */
const TRACEPARENT = {
  keys: () => ['traceparent'],
  get: (headers: IncomingHttpHeaders, name: string) => (name === 'traceparent' ? headers['traceparent'] : undefined),
};

/** The same handler, with a span for each request that continues the caller's trace; `endRequestSpan` ends it. */
export function traced(handler: RequestHandler): RequestHandler {
  const { context, propagation, ROOT_CONTEXT, SpanKind, trace } = openTelemetry();
  return (request, response) => {
    const caller = propagation.extract(ROOT_CONTEXT, request.headers, TRACEPARENT);
    const span = beginSpan(nameOf(request.method ?? '', null), { kind: SpanKind.SERVER }, caller);
    if (span.isRecording()) span.setAttributes(attributesOf(request));
    return context.with(trace.setSpan(ROOT_CONTEXT, span), () => handler(request, response));
  };
}

/** Says in the span the same as in the log line of the request. */
export function endRequestSpan(span: Span, report: RequestReport): void {
  if (!span.isRecording()) return;
  const { requestId, keyId, surface, route, method, status, cache, failure, aborted } = report;
  span.updateName(nameOf(method, route));
  span.setAttributes({ 'evalgate.request.id': requestId, 'evalgate.surface': surface });
  if (route !== null) span.setAttribute('http.route', route);
  if (keyId !== null) span.setAttribute('evalgate.key.id', keyId);
  if (cache !== null) span.setAttribute('evalgate.cache.outcome', cache);
  if (aborted) span.setAttribute('evalgate.aborted', true);
  if (status !== CLIENT_CLOSED_REQUEST) span.setAttribute('http.response.status_code', status);
  if (status >= 500) markFailed(span, failure === null ? String(status) : errorTypeOf(failure));
  endSpan(span);
}

function nameOf(method: string, route: string | null): string {
  const shown = METHODS.test(method) ? method : 'HTTP';
  return route === null ? shown : `${shown} ${route}`;
}

/** Never the path or the query (K2: no id or query leaves), nor the `Host` that was asked for, which is the caller's text. */
function attributesOf({ method = '', httpVersion, socket }: IncomingMessage): Attributes {
  return {
    'http.request.method': METHODS.test(method) ? method : '_OTHER',
    'url.scheme': 'http',
    'network.protocol.version': httpVersion,
    'server.address': socket.localAddress,
    'server.port': socket.localPort,
  };
}
