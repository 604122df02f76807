/** Spans of the cache: each flight, and each wait for a flight that another request had begun. */
import { type Span, type SpanContext, SpanKind } from '@opentelemetry/api';
import type { AroundFetch } from '../cache/flights.ts';
import type { FetchResult } from '../cache/origin-fetch.ts';
import type { Listener, ReadReport } from '../telemetry/events.ts';
import { EVALGATE } from './names.ts';
import { isRecorded, type Spans } from './spans.ts';

interface UnderWay {
  readonly context: SpanContext;
  /** The span of the request that began it. */
  readonly cause: Span | undefined;
}

/** Outcomes of reads that may have waited for a flight. */
const MAY_HAVE_WAITED: ReadonlySet<ReadReport['outcome']> = new Set(['collapsed', 'stale-if-error', 'failed'] as const);

export class FlightSpans {
  readonly #spans: Spans;
  /** By the key of the request. */
  readonly #underWay = new Map<string, UnderWay>();

  constructor(spans: Spans) {
    this.#spans = spans;
  }

  readonly flight: AroundFetch = ({ request, isBackground }, run) => {
    const { kind, key } = request;
    const cause = this.#spans.active();
    const options = { kind: SpanKind.INTERNAL, attributes: { [EVALGATE.resource]: kind } };
    // No reader waits for a refresh: it goes on when its request has long been answered, in a trace of its own.
    if (isBackground) {
      return this.#fly({ key, span: this.#spans.caused(cause, `refresh ${kind}`, options), cause }, run);
    }
    if (cause === undefined || !isRecorded(cause)) return run();
    return this.#fly({ key, span: this.#spans.child(cause, `flight ${kind}`, options), cause }, run);
  };

  cache(hooks: Listener): Listener {
    return {
      ...hooks,
      onRead: (report) => {
        const span = this.#spans.open();
        if (span !== null) this.#note(span, report);
        hooks.onRead?.(report);
      },
    };
  }

  async #fly(flight: Flight, run: () => Promise<FetchResult>): Promise<FetchResult> {
    const { key, span, cause } = flight;
    if (!isRecorded(span)) return await this.#spans.within(span, run);
    const underWay = { context: span.spanContext(), cause };
    this.#underWay.set(key, underWay);
    try {
      return await this.#spans.during(span, async () => {
        const result = await run();
        span.setAttribute(EVALGATE.flightFrom, result.from);
        return result;
      });
    } finally {
      // After those who waited have reported their reads.
      setImmediate(() => {
        if (this.#underWay.get(key) === underWay) this.#underWay.delete(key);
      });
    }
  }

  #note(span: Span, report: ReadReport): void {
    const { class: cacheClass, key, outcome, tier, missReason } = report;
    span.setAttribute(EVALGATE.cacheClass, cacheClass);
    if (tier !== null) span.setAttribute(EVALGATE.cacheTier, tier);
    if (missReason !== null) span.setAttribute(EVALGATE.missReason, missReason);
    if (!MAY_HAVE_WAITED.has(outcome)) return;
    const flight = this.#underWay.get(key);
    // Its own flight has a span of its own.
    if (flight !== undefined && flight.cause !== span) this.#noteWait(span, report, flight);
  }

  /** It is known to have been one when it is over. */
  #noteWait(span: Span, { class: cacheClass, durationMs }: ReadReport, flight: UnderWay): void {
    this.#spans.over(span, durationMs, 'wait for a flight', {
      kind: SpanKind.INTERNAL,
      links: [{ context: flight.context }],
      attributes: { [EVALGATE.cacheClass]: cacheClass },
    });
  }
}

interface Flight extends Pick<UnderWay, 'cause'> {
  readonly key: string;
  readonly span: Span;
}
