/** Spans of the cache: each flight, and each wait for a flight of another request or another process. */
import type { Span } from '@opentelemetry/api';
import type { ResourceKind } from '../upstream/resources.ts';
import type { CacheListener } from './events.ts';
import { beginSpan, endSpan, nowMs, recordingSpan, within } from '../tracing/spans.ts';

/** A flight as one of its callers sees it. */
interface Joined {
  /** The name of the flight. */
  readonly name: string;
  readonly kind: ResourceKind;
  readonly isBackground: boolean;
  /** Whether this caller began it. */
  readonly startedByCaller: boolean;
  readonly result: Promise<unknown>;
}

export class FlightSpans {
  /** By the name of the flight. */
  readonly #underWay = new Map<string, Span>();

  /** Called at once when a caller has begun or joined a flight, before the flight runs. */
  joined({ name, kind, isBackground, startedByCaller, result }: Joined): void {
    const caller = recordingSpan();
    if (caller === undefined) return;
    if (startedByCaller) {
      const attributes = { 'evalgate.resource': kind };
      // A refresh goes on when its request has long been answered, in a trace of its own.
      const span = isBackground
        ? beginSpan(`refresh ${kind}`, { root: true, links: [{ context: caller.spanContext() }], attributes })
        : beginSpan(`flight ${kind}`, { attributes });
      this.#underWay.set(name, span);
      return;
    }
    const other = this.#underWay.get(name);
    if (other === undefined || isBackground) return;
    const links = [{ context: other.spanContext() }];
    const wait = beginSpan('wait for a flight', { links, attributes: { 'evalgate.cache.class': kind } });
    const end = (): void => endSpan(wait);
    void result.then(end, end);
  }

  /** Runs it in the flight's span, if it has one. */
  async run<R extends { readonly from: string }>(name: string, work: () => Promise<R>): Promise<R> {
    const span = this.#underWay.get(name);
    if (span === undefined) return await work();
    try {
      return await within(span, async () => {
        const result = await work();
        span.setAttribute('evalgate.flight.from', result.from);
        return result;
      });
    } finally {
      if (this.#underWay.get(name) === span) this.#underWay.delete(name);
    }
  }
}

/** Adds what the cache reports to the active span: the request's for a read, the flight's for a wait. */
export const cacheSpans: CacheListener = {
  onRead: ({ class: cacheClass, tier, missReason }) => {
    const request = recordingSpan();
    request?.setAttribute('evalgate.cache.class', cacheClass);
    if (tier !== null) request?.setAttribute('evalgate.cache.tier', tier);
    if (missReason !== null) request?.setAttribute('evalgate.cache.miss_reason', missReason);
  },
  onLeaseWait: ({ end, durationMs }) => {
    if (recordingSpan() === undefined) return;
    const startTime = nowMs() - durationMs;
    endSpan(beginSpan('wait for another process', { startTime, attributes: { 'evalgate.wait.end': end } }));
  },
};
