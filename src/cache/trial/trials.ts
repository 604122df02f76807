/** Trials of a time, for operators: of one process, or as one process of a fleet knows them. */
import { randomUUID } from 'node:crypto';
import type { CacheClass } from '../times.ts';
import type { StartResult, TrialControl, TrialView } from './control.ts';
import { TrialFigures } from './figures.ts';
import { type EndedTrial, isRunning, type Trial, type TrialEnd, type TrialPlan } from './trial.ts';
import { TrialWatch, type TrialWatchParts } from './watch.ts';

export class Trials implements TrialControl {
  readonly #parts: TrialWatchParts;
  readonly #figures: TrialFigures;
  readonly #watch: TrialWatch;

  constructor(parts: TrialWatchParts) {
    this.#parts = parts;
    this.#figures = new TrialFigures(parts);
    this.#watch = new TrialWatch(parts);
  }

  /** The classes of which one runs in this process now. */
  running(): readonly Trial[] {
    return this.#parts.here.all().filter((trial) => this.#isRunning(trial));
  }

  views(): Promise<readonly TrialView[]> {
    return this.#figures.views(this.#inOrder());
  }

  async view(cacheClass: CacheClass): Promise<TrialView | null> {
    const trial = this.#inOrder().find((each) => each.class === cacheClass);
    return trial === undefined ? null : this.#viewOf(trial);
  }

  async start({ forMs, ...plan }: TrialPlan, by: string): Promise<StartResult> {
    const nowMs = this.#parts.clock.nowMs();
    const controlFreshMs = this.#parts.times.of(plan.class).freshMs;
    const about = { startedAtMs: nowMs, startedBy: by, untilMs: nowMs + forMs, end: null };
    const trial: Trial = { id: randomUUID(), ...plan, controlFreshMs, ...about };
    const inTheWay = await this.#begin(trial);
    if (inTheWay !== null) return { kind: 'running', trial: inTheWay };
    return { kind: 'started', view: await this.#viewOf(trial) };
  }

  async stop(cacheClass: CacheClass, by: string): Promise<TrialView | null> {
    await this.#parts.ledger.refresh();
    const trial = this.running().find((each) => each.class === cacheClass);
    if (trial === undefined) return null;
    const stopped = await this.#ended(trial, { state: 'stopped', reason: `Stopped by ${by}.` });
    return (await this.#parts.ledger.end(stopped)) ? this.#viewOf(stopped) : null;
  }

  async adopt(cacheClass: CacheClass, by: string): ReturnType<TrialControl['adopt']> {
    await this.#parts.ledger.refresh();
    const trial = this.#inOrder().find((each) => each.class === cacheClass);
    if (trial === undefined) return null;
    const adopted = await this.#ended(trial, { state: 'adopted', reason: `Adopted by ${by}.` });
    const times = await this.#parts.ledger.adopt(adopted);
    return times === null ? null : { view: await this.#viewOf(adopted), times };
  }

  close(): Promise<void> {
    return this.#watch.close();
  }

  /** What stands in the way only because nobody has written down that it is over is ended first. */
  async #begin(trial: Trial): Promise<Trial | null> {
    const { ledger, here } = this.#parts;
    const first = await ledger.begin(trial);
    if (first === null) return null;
    const owed = here.owed().find(({ id }) => id === first.id)?.end ?? null;
    if (owed === null && this.#isRunning(first)) return first;
    const ended = owed === null ? this.#watch.endedByTime(first) : { ...first, end: owed };
    return (await this.#watch.conclude(ended)) ? ledger.begin(trial) : first;
  }

  /** As it was when it ended, if it has: what ruled the others, and what was predicted. */
  async #ended(trial: Trial, how: Pick<TrialEnd, 'state' | 'reason'>): Promise<EndedTrial> {
    const predicted = trial.end?.predicted ?? (await this.#figures.predictions(trial));
    const end = this.#figures.end(trial, predicted, how);
    const controlFreshMs = trial.end?.controlFreshMs ?? end.controlFreshMs;
    return { ...trial, end: { ...end, controlFreshMs } };
  }

  /** Those that run first, then those that are over, newest first. */
  #inOrder(): readonly Trial[] {
    const all = this.#parts.here.all();
    const running = all.filter((trial) => this.#isRunning(trial));
    return [...running, ...all.filter((trial) => !running.includes(trial))];
  }

  #isRunning(trial: Trial): boolean {
    return isRunning(trial, this.#parts.clock.nowMs());
  }

  async #viewOf(trial: Trial): Promise<TrialView> {
    const [view] = await this.#figures.views([trial]);
    if (view === undefined) throw new Error('a trial has no view');
    return view;
  }
}
