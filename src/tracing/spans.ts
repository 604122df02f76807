/** Begins spans, and knows which one is being worked for: it goes along with promises and callbacks. */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  type Link,
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
import { decided } from './sampler.ts';
import { SpanClock } from './span-clock.ts';

export class Spans {
  readonly #tracer: Tracer;
  readonly #active = new AsyncLocalStorage<Span>();
  readonly #clock = new SpanClock();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** The span that is worked for now, recorded or not. */
  active(): Span | undefined {
    return this.#active.getStore();
  }

  /** The same, unless it isn't recorded: what is done for it needs no spans then. */
  recorded(): Span | null {
    const span = this.#active.getStore();
    return span !== undefined && isRecorded(span) ? span : null;
  }

  /** The same, unless it has ended: nothing more can be said of it then. */
  open(): Span | null {
    const span = this.#active.getStore();
    return span?.isRecording() === true ? span : null;
  }

  /** Whatever `run` does, and whatever follows from that, is done for the span. */
  within<R>(span: Span, run: () => R): R {
    return this.#active.run(span, run);
  }

  /** A span below one of this process. */
  child(parent: Span, name: string, options: SpanOptions): Span {
    return this.#begin(name, options, trace.setSpan(ROOT_CONTEXT, parent));
  }

  /** One below it that began that long ago and is over now. */
  over(parent: Span, durationMs: number, name: string, options: SpanOptions): void {
    const startTime = this.#clock.ago(durationMs);
    this.end(this.#tracer.startSpan(name, { ...options, startTime }, trace.setSpan(ROOT_CONTEXT, parent)));
  }

  /** A span that continues the trace of a caller, where it told of one. */
  continued(caller: SpanContext | null, name: string, options: SpanOptions): Span {
    const context: Context = caller === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller);
    return this.#begin(name, options, context);
  }

  /** The first span of a trace of its own, with a link to what has caused it; it is recorded where that is. */
  caused(cause: Span | undefined, name: string, options: SpanOptions): Span {
    if (cause === undefined) return this.#begin(name, options, ROOT_CONTEXT);
    const isToRecord = isRecorded(cause);
    const links: Link[] = isToRecord ? [{ context: cause.spanContext() }] : [];
    return this.#begin(name, { ...options, links }, decided(isToRecord));
  }

  /** Works for the span, and ends it with the result. */
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
    span.end(this.#clock.ago());
  }

  #begin(name: string, options: SpanOptions, context: Context): Span {
    return this.#tracer.startSpan(name, { ...options, startTime: this.#clock.ago() }, context);
  }
}

/** Also of a span that has ended. */
export function isRecorded(span: Span): boolean {
  return (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;
}

export function markFailed(span: Span, errorType: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttribute(ATTR_ERROR_TYPE, errorType);
}
