import type { Clock } from '../time/clock.ts';

/** Trouble that comes and goes: it is one trouble until there has been none for some time. */
export class Trouble<T> {
  readonly #clock: Clock;
  readonly #settledAfterMs: number;
  #last: { readonly cause: T; readonly sinceMs: number; readonly atMs: number } | null = null;
  /** When all was well for the first time after it; null before. */
  okSinceMs: number | null = null;

  constructor(clock: Clock, settledAfterMs: number) {
    this.#clock = clock;
    this.#settledAfterMs = settledAfterMs;
  }

  note(cause: T): void {
    const nowMs = this.#clock.nowMs();
    this.#last = { cause, sinceMs: this.current()?.sinceMs ?? nowMs, atMs: nowMs };
    this.okSinceMs = null;
  }

  noteOk(): void {
    if (this.#last !== null) this.okSinceMs ??= this.#clock.nowMs();
  }

  /** The last of it; null once it has settled. */
  current() {
    if (this.#last === null || this.okSinceMs === null) return this.#last;
    return this.#clock.nowMs() - this.#last.atMs < this.#settledAfterMs ? this.#last : null;
  }
}
