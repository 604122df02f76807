/** Begins and ends spans, and knows the active one: it follows promises and callbacks. */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanOptions,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { ATTR_ERROR_TYPE } from '@opentelemetry/semantic-conventions';
import { errorTypeOf } from './names.ts';

/** How often the clock of spans is set by the machine's, which is set right now and then. */
const SET_CLOCK_EVERY_MS = 60_000;

export class Spans {
  readonly #tracer: Tracer;
  readonly #active = new AsyncLocalStorage<Span>();
  #clockOffsetMs = 0;
  #clockSetAtMs = Number.NEGATIVE_INFINITY;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** The active span, recorded or not. */
  active(): Span | undefined {
    return this.#active.getStore();
  }

  /** The active span; null if it is not recorded: what is done for it needs no spans then. */
  recorded(): Span | null {
    const span = this.#active.getStore();
    return span !== undefined && isRecorded(span) ? span : null;
  }

  /** The active span; null if it has ended or is not recorded: it takes no more attributes then. */
  open(): Span | null {
    const span = this.#active.getStore();
    return span?.isRecording() === true ? span : null;
  }

  /** The span is active in `run` and in all that follows from it. */
  within<R>(span: Span, run: () => R): R {
    return this.#active.run(span, run);
  }

  /** A span below one of this process. */
  child(parent: Span, name: string, options: SpanOptions): Span {
    return this.#begin(name, options, trace.setSpan(ROOT_CONTEXT, parent));
  }

  /** One below it that began that long ago and is over now. */
  over(parent: Span, durationMs: number, name: string, options: SpanOptions): void {
    const startTime = this.#timeAgo(durationMs);
    this.end(this.#tracer.startSpan(name, { ...options, startTime }, trace.setSpan(ROOT_CONTEXT, parent)));
  }

  /** A span that continues the trace of a caller, if there is one. */
  continued(caller: SpanContext | null, name: string, options: SpanOptions): Span {
    return this.#begin(name, options, caller === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller));
  }

  /** The first span of a trace of its own, with a link to its cause; it is recorded if that is (`createSampler`). */
  caused(cause: Span | undefined, name: string, options: SpanOptions): Span {
    const links = cause === undefined ? [] : [{ context: cause.spanContext() }];
    return this.#begin(name, { ...options, links }, ROOT_CONTEXT);
  }

  /** Runs it with the span active, and ends the span with the result. */
  async during<R>(span: Span, run: (span: Span) => Promise<R>): Promise<R> {
    try {
      return await this.within(span, () => run(span));
    } catch (error) {
      markFailed(span, errorTypeOf(error));
      throw error;
    } finally {
      this.end(span);
    }
  }

  end(span: Span): void {
    span.end(this.#timeAgo(0));
  }

  #begin(name: string, options: SpanOptions, context: Context): Span {
    return this.#tracer.startSpan(name, { ...options, startTime: this.#timeAgo(0) }, context);
  }

  /** To the microsecond, and never back within a minute: children must lie within their parents. */
  #timeAgo(durationMs: number): HrTime {
    const sinceStartMs = performance.now();
    if (sinceStartMs - this.#clockSetAtMs >= SET_CLOCK_EVERY_MS) {
      this.#clockOffsetMs = Date.now() - sinceStartMs;
      this.#clockSetAtMs = sinceStartMs;
    }
    const unixMs = this.#clockOffsetMs + sinceStartMs - durationMs;
    const seconds = Math.floor(unixMs / 1000);
    return [seconds, Math.floor((unixMs - seconds * 1000) * 1000) * 1000];
  }
}

/** True for a recorded span that has ended, too. */
export function isRecorded(span: Span): boolean {
  return isSampled(span.spanContext());
}

export function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

export function markFailed(span: Span, errorType: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttribute(ATTR_ERROR_TYPE, errorType);
}
