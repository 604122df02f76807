/** Whether this process has had to refuse requests or connections lately, because there were as many as there may be. */
import type { Clock } from './clock.ts';
import type { Sighting } from './dependencies.ts';

/** What refuses now and then is short of capacity until it has not for so long. */
const SETTLED_AFTER_MS = 10_000;

export class Capacity {
  readonly #clock: Clock;
  #sinceMs = 0;
  #lastAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** One was refused. */
  note(): void {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#lastAtMs >= SETTLED_AFTER_MS) this.#sinceMs = nowMs;
    this.#lastAtMs = nowMs;
  }

  now(): Sighting {
    if (this.#clock.nowMs() - this.#lastAtMs >= SETTLED_AFTER_MS) {
      return { status: 'ok', detail: 'nothing is refused for want of a place' };
    }
    const detail =
      'some are refused: there are as many requests (server.maxInFlight) or connections (server.maxConnections) as may be';
    return { status: 'degraded', sinceMs: this.#sinceMs, detail };
  }
}
