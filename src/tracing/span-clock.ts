/** What time it is for spans: to the microsecond, and never back within a minute, as children must lie within their parents. */
import type { HrTime } from '@opentelemetry/api';

/** The machine's clock is set right now and then, which the time since the process began doesn't know of. */
const SET_EVERY_MS = 60_000;

export class SpanClock {
  #offsetMs = 0;
  #setAtMs = Number.NEGATIVE_INFINITY;

  /** That long ago, or now. */
  ago(durationMs = 0): HrTime {
    const sinceStartMs = performance.now();
    if (sinceStartMs - this.#setAtMs >= SET_EVERY_MS) {
      this.#offsetMs = Date.now() - sinceStartMs;
      this.#setAtMs = sinceStartMs;
    }
    const unixMs = this.#offsetMs + sinceStartMs - durationMs;
    const seconds = Math.floor(unixMs / 1000);
    return [seconds, Math.floor((unixMs - seconds * 1000) * 1000) * 1000];
  }
}
