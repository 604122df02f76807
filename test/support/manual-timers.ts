import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Timers } from '../../src/timers.ts';
import { ManualClock } from './manual-clock.ts';

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** A clock with timers that go off when a test moves the clock past them, in order, each at its own time. */
export class ManualTimers implements Timers {
  readonly clock: ManualClock;
  readonly #pending = new Set<Timer>();

  constructor(clock: ManualClock = new ManualClock()) {
    this.clock = clock;
  }

  /** Timers that have not gone off and were not cancelled. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.clock.nowMs() + delayMs, run };
    this.#pending.add(timer);
    return () => this.#pending.delete(timer);
  }

  /** Moves the clock; between two timers everything that can go on does. */
  async advance(ms: number): Promise<void> {
    await settle();
    const untilMs = this.clock.nowMs() + ms;
    for (;;) {
      const next = [...this.#pending].toSorted((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.clock.advance(Math.max(0, next.atMs - this.clock.nowMs()));
      this.#pending.delete(next);
      next.run();
      await settle();
    }
    this.clock.advance(untilMs - this.clock.nowMs());
    await settle();
  }
}

/** Lets everything go on that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  await nextTurn();
}
