/**
 * Spans, begun where the work is done. A request has one only if tracing is on (`sdk.ts`), and everything else only below
 * a recorded request: without the SDK, OpenTelemetry's interface is not even loaded, and nothing here makes an object.
 *
 * Nothing that a caller or the store can choose the text of is in a span, but for the request's id, which has the form
 * that the access log has it in (K2: no id, query or address). `docs/tracing.md` lists every name.
 */
import type * as OpenTelemetry from '@opentelemetry/api';
import { VERSION } from '../version.ts';

type Span = OpenTelemetry.Span;

let loaded: typeof OpenTelemetry | null = null;

/** For the SDK, which brings OpenTelemetry's interface: from now on there are spans. */
export function useOpenTelemetry(api: typeof OpenTelemetry): void {
  loaded = api;
}

/** OpenTelemetry's interface. Throws if tracing was never on. */
export function openTelemetry(): typeof OpenTelemetry {
  if (loaded === null) throw new Error('A span was begun, and tracing is off.');
  return loaded;
}

/** The active span, recorded or not; undefined if tracing is off. */
export function activeSpan(): Span | undefined {
  return loaded?.trace.getActiveSpan();
}

/** The active span if it takes attributes and children: it is recorded, and has not ended. */
export function recordingSpan(): Span | undefined {
  const span = activeSpan();
  return span?.isRecording() === true ? span : undefined;
}

/** Begins a span below that of the context, by default the active one. Throws if tracing was never on. */
export function beginSpan(name: string, options: OpenTelemetry.SpanOptions, parent?: OpenTelemetry.Context): Span {
  const { context, trace } = openTelemetry();
  const tracer = trace.getTracer('evalgate', VERSION);
  return tracer.startSpan(name, { startTime: nowMs(), ...options }, parent ?? context.active());
}

export function endSpan(span: Span): void {
  span.end(nowMs());
}

/** Runs it with the span active, and ends the span with its result. */
export function within<R>(span: Span, run: () => Promise<R>): Promise<R> {
  const { context, trace } = openTelemetry();
  return endedBy(context.with(trace.setSpan(context.active(), span), run), span);
}

/** Runs it with no span active: nothing that it does is recorded. */
export function unrecorded<R>(run: () => R): R {
  if (loaded === null) return run();
  const { context, trace } = loaded;
  return context.with(trace.deleteSpan(context.active()), run);
}

async function endedBy<R>(work: Promise<R>, span: Span): Promise<R> {
  try {
    return await work;
  } catch (error) {
    markFailed(span, errorTypeOf(error));
    throw error;
  } finally {
    endSpan(span);
  }
}

/**
 * The wait of a request for an answer of Redis. Many requests may go in one call: each has a span of its own wait.
 * `call`: the command, and what of evalgate's it is for. `batchSize`: how many things it is done to, if more than one.
 */
export function redisSpan<R>(
  redis: 'state' | 'cache',
  call: `${string} ${string}`,
  answer: Promise<R>,
  batchSize?: number,
): Promise<R> {
  if (recordingSpan() === undefined) return answer;
  const attributes: OpenTelemetry.Attributes = {
    'db.system.name': 'redis',
    'db.operation.name': call.slice(0, call.indexOf(' ')),
    'db.query.summary': call,
    'evalgate.redis': redis,
  };
  if (batchSize !== undefined) attributes['db.operation.batch.size'] = batchSize;
  return endedBy(answer, beginSpan(call, { kind: openTelemetry().SpanKind.CLIENT, attributes }));
}

/** A call to the store. Its span is without the store's address, which never leaves the gateway (K2). */
export function storeSpan<R>(resource: string, template: string, call: () => Promise<R>): Promise<R> {
  if (recordingSpan() === undefined) return call();
  const attributes = { 'http.request.method': 'GET', 'url.template': template, 'evalgate.resource': resource };
  return within(beginSpan(`GET ${template}`, { kind: openTelemetry().SpanKind.CLIENT, attributes }), call);
}

/**
 * The `traceparent` (W3C Trace Context) for a call to the store: that of the active span. The caller's own names the
 * caller's own call, and goes on only if tracing is off.
 */
export function outgoingTraceparent(callers: string | undefined): string | undefined {
  if (activeSpan() === undefined) return callers;
  const { context, propagation } = openTelemetry();
  const headers: { traceparent?: string } = {};
  propagation.inject(context.active(), headers);
  return headers.traceparent;
}

export function markFailed(span: Span, errorType: string): void {
  span.setStatus({ code: openTelemetry().SpanStatusCode.ERROR });
  span.setAttribute('error.type', errorType);
}

const CODE = /^[A-Za-z][A-Za-z0-9_]{0,39}$/;

/** The kind of an error, for `error.type`: a kind, a code or a class, and never its text, which may hold anything. */
export function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  for (const name of ['kind', 'code']) {
    const value: unknown = Reflect.get(error, name);
    if (typeof value === 'string' && CODE.test(value)) return value;
  }
  return CODE.test(error.name) ? error.name : 'Error';
}

const SET_CLOCK_EVERY_MS = 60_000;
const clock = { offsetMs: 0, setAtMs: Number.NEGATIVE_INFINITY };

/**
 * Unix milliseconds with a fraction. The SDK's own begin of a span is a whole millisecond, longer than most calls of Redis,
 * so children would begin before their parents. Set by the machine's clock once a minute, and never back in between.
 */
export function nowMs(): number {
  const sinceStartMs = performance.now();
  if (sinceStartMs - clock.setAtMs >= SET_CLOCK_EVERY_MS) {
    clock.offsetMs = Date.now() - sinceStartMs;
    clock.setAtMs = sinceStartMs;
  }
  return clock.offsetMs + sinceStartMs;
}
