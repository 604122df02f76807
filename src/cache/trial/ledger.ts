/** Where trials are kept: for a fleet in Redis, for a gateway that is alone in its memory. */
import type { CacheClass } from '../times.ts';
import type { TimesChange, TimesControl } from '../times-control.ts';
import type { TrialsHere } from './here.ts';
import type { EndedTrial, Trial } from './trial.ts';

/** Each change is one step: of several that are tried at once, one is made. Once it resolves this process goes by it. */
export interface TrialLedger {
  /** Once it resolves, this process knows all that was changed before. */
  refresh(): Promise<void>;
  /** Null once it has begun; else the one of that class that nobody has ended. */
  begin(trial: Trial): Promise<Trial | null>;
  /** Whether it was this that has ended it. False also for an end by time that has not come. */
  end(trial: EndedTrial): Promise<boolean>;
  /** Its time is set for the whole class in the same step. Null, and nothing is set, where it is over otherwise than by time. */
  adopt(trial: EndedTrial): Promise<TimesChange | null>;
}

/** How many that are over are remembered. */
export const MOST_ENDED = 20;

/** Of a gateway that is alone: forgotten when it stops. */
export class LocalTrialLedger implements TrialLedger {
  readonly #here: TrialsHere;
  readonly #times: TimesControl;
  readonly #running = new Map<CacheClass, Trial>();
  /** Newest first. */
  #ended: readonly EndedTrial[] = [];

  constructor(here: TrialsHere, times: TimesControl) {
    this.#here = here;
    this.#times = times;
  }

  async refresh(): Promise<void> {
    // Nobody else changes anything.
  }

  async begin(trial: Trial): Promise<Trial | null> {
    const running = this.#running.get(trial.class);
    if (running !== undefined) return running;
    this.#running.set(trial.class, trial);
    this.#tell();
    return null;
  }

  async end(trial: EndedTrial): Promise<boolean> {
    if (this.#running.get(trial.class)?.id !== trial.id) return false;
    this.#running.delete(trial.class);
    this.#ended = [trial, ...this.#ended].slice(0, MOST_ENDED);
    this.#tell();
    return true;
  }

  async adopt(trial: EndedTrial): Promise<TimesChange | null> {
    const last = this.#ended.find((ended) => ended.class === trial.class);
    const isOver = last?.id === trial.id && last.end.state === 'ended' && !this.#running.has(trial.class);
    if (isOver) {
      this.#ended = this.#ended.map((ended) => (ended.id === trial.id ? trial : ended));
      this.#tell();
    } else if (!(await this.end(trial))) {
      return null;
    }
    return this.#times.set(trial.class, { freshMs: trial.freshMs });
  }

  #tell(): void {
    this.#here.adopt([...this.#running.values(), ...this.#ended]);
  }
}
