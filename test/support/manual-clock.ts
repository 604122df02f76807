import type { Clock } from '../../src/time/clock.ts';

/** A clock that stands still until a test moves it. It begins at a whole second unless told otherwise. */
export class ManualClock implements Clock {
  #micros: number;

  constructor(startMs: number = Date.UTC(2026, 0, 15, 12)) {
    this.#micros = startMs * 1000;
  }

  nowMs(): number {
    return Math.floor(this.nowMicros() / 1000);
  }

  nowMicros(): number {
    return this.#micros;
  }

  advance(ms: number): void {
    this.#micros += ms * 1000;
  }

  advanceMicros(micros: number): void {
    this.#micros += micros;
  }
}

/** A clock that runs as the system's does, and that a test can put forward. */
export class RunningClock extends ManualClock {
  readonly #startedMs = performance.now();

  constructor() {
    super(Date.now());
  }

  override nowMicros(): number {
    return super.nowMicros() + Math.floor((performance.now() - this.#startedMs) * 1000);
  }
}
