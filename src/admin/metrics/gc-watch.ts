/**
 * How much of the time goes into collecting garbage. Only looked at for a second at a time: Node makes objects of each of a
 * hundred collections a second, which cost a cached read 2 to 4 % more, and call for further collections.
 */
import { PerformanceObserver } from 'node:perf_hooks';

const LOOK_MS = 1000;

export class GcWatch {
  readonly #lookMs: number;
  readonly #observer: PerformanceObserver;
  #timer: NodeJS.Timeout | null = null;
  #sinceMs = 0;
  #spentMs = 0;
  #ratio = 0;

  constructor(lookMs: number = LOOK_MS) {
    this.#lookMs = lookMs;
    this.#observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) this.#spentMs += duration;
    });
  }

  /** Of the last look that has ended, from 0 to 1. */
  get ratio(): number {
    return this.#ratio;
  }

  /** Begins to look, unless it does already. */
  begin(): void {
    if (this.#timer !== null) return;
    this.#spentMs = 0;
    this.#sinceMs = performance.now();
    this.#observer.observe({ entryTypes: ['gc'] });
    this.#timer = setTimeout(() => this.end(), this.#lookMs).unref();
  }

  /** Ends the look before its time, where there is one. */
  end(): void {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#observer.disconnect();
    this.#ratio = Math.min(1, this.#spentMs / (performance.now() - this.#sinceMs));
  }
}
