/** How often the store was called in the last minutes, and how often it failed: what it did before a trial. */
import type { Clock } from '../../clock.ts';
import type { StoreCounts } from './counts.ts';

const STEP_MS = 30_000;
/** Long enough to know a store that fails now and then, short enough not to remember this morning's outage. */
const STEPS = 20;

interface Step {
  readonly number: number;
  calls: number;
  failures: number;
}

export class StoreWatch {
  readonly #clock: Clock;
  /** Oldest first; steps without a call have none. */
  #steps: Step[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(isFailed: boolean): void {
    const step = this.#current();
    step.calls += 1;
    if (isFailed) step.failures += 1;
  }

  /** Of the last ten minutes. */
  lately(): StoreCounts {
    const oldest = this.#now() - STEPS;
    const steps = this.#steps.filter(({ number }) => number > oldest);
    return {
      calls: steps.reduce((sum, { calls }) => sum + calls, 0),
      failures: steps.reduce((sum, { failures }) => sum + failures, 0),
    };
  }

  #current(): Step {
    const number = this.#now();
    const last = this.#steps.at(-1);
    if (last?.number === number) return last;
    const step = { number, calls: 0, failures: 0 };
    this.#steps = [...this.#steps.slice(1 - STEPS), step];
    return step;
  }

  #now(): number {
    return Math.floor(this.#clock.nowMs() / STEP_MS);
  }
}
