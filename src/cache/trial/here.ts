/**
 * What this process knows of trials, and goes by. It ends each by its own clock, whoever can be reached; and what it has
 * ended by itself stays ended here, whatever a Redis says that has not heard of it.
 */
import type { Clock } from '../../clock.ts';
import type { CacheHooks } from '../hooks.ts';
import { type AdjustableTimes, CACHE_CLASSES, type CacheClass } from '../times.ts';
import { TrialTally } from './counts.ts';
import { StoreWatch } from './store-watch.ts';
import { type EndedTrial, isRunning, type Trial, type TrialEnd } from './trial.ts';

export interface TrialsHereParts {
  /** What this process goes by. */
  readonly times: AdjustableTimes;
  readonly clock: Clock;
}

export class TrialsHere {
  /** Whether any trial runs: all that a read looks at while there is none. */
  isCounting = false;
  readonly #parts: TrialsHereParts;
  readonly #store: StoreWatch;
  #trials: readonly Trial[] = [];
  /** By id: those that have ended here, and may be thought to run elsewhere. */
  readonly #endedHere = new Map<string, TrialEnd>();
  readonly #tallies = new Map<string, TrialTally>();
  /** Of those that run now. */
  #counting: readonly TrialTally[] = [];

  constructor(parts: TrialsHereParts) {
    this.#parts = parts;
    this.#store = new StoreWatch(parts.clock);
  }

  /** As far as is known: those that nobody has ended first, then those that are over, newest first. */
  all(): readonly Trial[] {
    const known = this.#trials.map((trial) => ({ ...trial, end: trial.end ?? this.#endedHere.get(trial.id) ?? null }));
    const open = known.filter(({ end }) => end === null);
    const over = known.filter(({ end }) => end !== null);
    return [...open, ...over.toSorted((a, b) => (b.end?.atMs ?? 0) - (a.end?.atMs ?? 0))];
  }

  /** Those that have ended here, where whoever keeps them takes them to be running. */
  owed(): readonly EndedTrial[] {
    return this.#trials.flatMap((trial) => {
      const end = trial.end === null ? this.#endedHere.get(trial.id) : undefined;
      return end === undefined ? [] : [{ ...trial, end }];
    });
  }

  /** What whoever keeps them says now. Gives those that ran here and that nobody knows of any more. */
  adopt(trials: readonly Trial[]): readonly Trial[] {
    const before = this.all();
    for (const trial of trials) {
      if (trial.end !== null) this.#endedHere.delete(trial.id);
      // It runs again: whoever keeps them has forgotten that it was ended.
      const known = before.find(({ id }) => id === trial.id)?.end ?? null;
      if (trial.end === null && known !== null) this.#endedHere.set(trial.id, known);
    }
    const isKnown = (id: string): boolean => trials.some((trial) => trial.id === id);
    for (const id of this.#endedHere.keys()) if (!isKnown(id)) this.#endedHere.delete(id);
    for (const id of this.#tallies.keys()) if (!isKnown(id)) this.#tallies.delete(id);
    this.#trials = trials;
    this.apply();
    const nowMs = this.#parts.clock.nowMs();
    return before.filter((trial) => isRunning(trial, nowMs) && !isKnown(trial.id));
  }

  /** Ends it for this process, at once. */
  endHere(id: string, end: TrialEnd): void {
    this.#endedHere.set(id, end);
    this.apply();
  }

  /** Lets exactly those rule that run by now. To be called again and again: ends come by the clock. */
  apply(): void {
    const nowMs = this.#parts.clock.nowMs();
    const running = this.all().filter((trial) => isRunning(trial, nowMs));
    for (const cacheClass of CACHE_CLASSES) this.#rule(cacheClass, running);
    this.#counting = running.map((trial) => this.#tallyOf(trial));
    for (const tally of this.#counting) tally.tick(nowMs);
    this.isCounting = this.#counting.length > 0;
  }

  /** Null where this process has counted nothing of it. */
  countsOf(id: string): TrialTally['counts'] | null {
    return this.#tallies.get(id)?.counts ?? null;
  }

  /** Only to be called while `isCounting`. */
  readonly onRead: NonNullable<CacheHooks['onRead']> = (report) => {
    for (const tally of this.#counting) tally.onRead(report);
  };

  readonly onStoreCall: NonNullable<CacheHooks['onStoreCall']> = (report) => {
    this.#store.note(report.isFailed);
    for (const tally of this.#counting) tally.onStoreCall(report);
  };

  #rule(cacheClass: CacheClass, running: readonly Trial[]): void {
    const trial = running.find((each) => each.class === cacheClass);
    if (trial === undefined) {
      this.#parts.times.try(cacheClass, null);
      return;
    }
    const { keys } = this.#tallyOf(trial);
    this.#parts.times.try(cacheClass, { freshMs: trial.freshMs, rules: (keyHash) => keys.has(keyHash) });
  }

  #tallyOf(trial: Trial): TrialTally {
    const known = this.#tallies.get(trial.id);
    if (known !== undefined) return known;
    const tally = new TrialTally(trial, this.#store.lately());
    this.#tallies.set(trial.id, tally);
    return tally;
  }
}
