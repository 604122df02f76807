/** Watches over the trials that run: ends them when their time has come, and takes them back when they do harm. */
import type { Timers } from '../../timers.ts';
import { Conclusions, type ConclusionsParts } from './conclusions.ts';
import { type CountsBoard, type FiguresParts, type Predictions, TrialFigures } from './figures.ts';
import { type Evidence, TrialJudge } from './judge.ts';
import { type EndedTrial, isRunning, type RollbackCause, type Trial } from './trial.ts';
import type { Verdict } from './verdict.ts';

export interface TrialWatchParts extends FiguresParts, ConclusionsParts {
  readonly timers: Timers;
  /** Whether calls to the store are held back because too many have failed. */
  readonly isBreakerOpen: () => boolean;
  /** Whether it is this process that judges for all, while they can be heard. */
  readonly isJudge: () => boolean;
}

const LOOK_EVERY_MS = 1000;
const PREDICT_EVERY_MS = 10_000;
const NOTHING_PREDICTED: Predictions = { trial: null, control: null };

/** What is remembered of a trial that runs. */
interface Watched {
  /** Of what this process has seen, and of what all have. */
  readonly judges: { readonly own: TrialJudge; readonly fleet: TrialJudge };
  predicted: Predictions;
  predictedAtMs: number;
  wasBreakerOpen: boolean;
}

export class TrialWatch {
  readonly #parts: TrialWatchParts;
  readonly #figures: TrialFigures;
  readonly #watched = new Map<string, Watched>();
  /** What was last told of each, as text. */
  readonly #posted = new Map<string, string>();
  readonly #conclusions: Conclusions;
  #cancel: () => void = () => undefined;
  #isBusy = false;
  /** The last thing that was told could not be. */
  #isUnheard = false;

  constructor(parts: TrialWatchParts) {
    this.#parts = parts;
    this.#figures = new TrialFigures(parts);
    this.#conclusions = new Conclusions(parts);
    this.#schedule();
  }

  /** Resolves once the others know what this process has counted, or can't be told. */
  async close(): Promise<void> {
    this.#cancel();
    await this.#post();
  }

  /** Tells whoever keeps the trials, until there is an answer. False where somebody else was first; rejects never. */
  conclude(trial: EndedTrial): Promise<boolean> {
    return this.#conclusions.tell(trial);
  }

  /** The end that its time has brought. */
  endedByTime(trial: Trial): EndedTrial {
    const predicted = this.#watched.get(trial.id)?.predicted ?? NOTHING_PREDICTED;
    return { ...trial, end: this.#figures.end(trial, predicted, { state: 'ended' }) };
  }

  #schedule(): void {
    this.#cancel = this.#parts.timers.after(LOOK_EVERY_MS, () => {
      this.#schedule();
      // Whatever Redis does, ends come in time, and a breaker that opens is noticed.
      this.#parts.here.apply();
      this.#lookAtBreaker();
      if (!this.#isBusy) void this.#look();
    });
  }

  #running(): readonly Trial[] {
    const nowMs = this.#parts.clock.nowMs();
    return this.#parts.here.all().filter((trial) => isRunning(trial, nowMs));
  }

  /** Rejects never. */
  async #look(): Promise<void> {
    this.#isBusy = true;
    const { here, clock } = this.#parts;
    const open = here.all().filter(({ end }) => end === null);
    const over = open.filter((trial) => !isRunning(trial, clock.nowMs()));
    const ended = [...over.map((trial) => this.endedByTime(trial)), ...here.owed()];
    await this.#conclusions.tellAll(ended);
    await this.#post();
    await this.#judge(this.#running());
    this.#forget();
    this.#isBusy = false;
  }

  /** What is known of trials that nobody remembers any more. */
  #forget(): void {
    const known = new Set(this.#parts.here.all().map(({ id }) => id));
    for (const kept of [this.#posted, this.#watched]) {
      for (const id of kept.keys()) if (!known.has(id)) kept.delete(id);
    }
    this.#conclusions.forgetAllBut(known);
  }

  /** What was counted since it was last told. What can't be told now is the next time. */
  async #post(): Promise<void> {
    const { board, here } = this.#parts;
    if (board === null || !board.isUp()) return;
    for (const { id } of here.all()) {
      const counts = here.countsOf(id);
      const text = counts === null ? '' : JSON.stringify(counts);
      if (counts === null || this.#posted.get(id) === text) continue;
      this.#isUnheard = !(await isDone(board.post(id, counts)));
      if (!this.#isUnheard) this.#posted.set(id, text);
    }
  }

  async #judge(trials: readonly Trial[]): Promise<void> {
    if (trials.length === 0) return;
    const { board, isJudge, clock } = this.#parts;
    for (const trial of trials) await this.#predict(trial);
    const isHeard = board !== null && board.isUp() && !this.#isUnheard;
    const counts = isHeard && isJudge() ? await this.#ofFleet(trials) : null;
    for (const [index, trial] of trials.entries()) {
      const { judges, predicted } = this.#watchedOf(trial);
      for (const judge of [judges.own, judges.fleet]) judge.noteControl(this.#figures.controlFreshMs(trial));
      const atMs = clock.nowMs();
      const own = judges.own.look({ atMs, counts: this.#figures.own(trial), predicted });
      const all = counts?.[index];
      // Where the others are out of reach, each goes by what it has seen itself.
      const verdict = all === undefined ? (isHeard ? null : own) : judges.fleet.look({ atMs, counts: all, predicted });
      if (verdict !== null) this.#act(trial, verdict);
    }
  }

  async #ofFleet(trials: readonly Trial[]): Promise<readonly Evidence['counts'][] | null> {
    try {
      return await this.#figures.ofFleet(trials);
    } catch {
      return null;
    }
  }

  async #predict(trial: Trial): Promise<void> {
    const watched = this.#watchedOf(trial);
    const nowMs = this.#parts.clock.nowMs();
    if (Math.abs(nowMs - watched.predictedAtMs) < PREDICT_EVERY_MS) return;
    watched.predictedAtMs = nowMs;
    watched.predicted = await this.#figures.predictions(trial);
  }

  #lookAtBreaker(): void {
    const isOpen = this.#parts.isBreakerOpen();
    for (const trial of this.#running()) {
      const watched = this.#watchedOf(trial);
      const hasOpened = isOpen && !watched.wasBreakerOpen;
      watched.wasBreakerOpen = isOpen;
      const reason = 'So many calls to the store failed that they are held back: its breaker has opened.';
      if (hasOpened) this.#back(trial, 'breaker', reason);
    }
  }

  #act(trial: Trial, verdict: Verdict): void {
    // It may have ended while the others were asked.
    const isStill = this.#running().some(({ id }) => id === trial.id);
    if (verdict.kind === 'harm' && isStill) this.#back(trial, verdict.cause, verdict.reason);
  }

  /** Here at once; everywhere as soon as it is told. */
  #back(trial: Trial, cause: RollbackCause, reason: string): void {
    const { predicted } = this.#watchedOf(trial);
    const end = this.#figures.end(trial, predicted, { state: 'rolled-back', cause, reason });
    this.#parts.here.endHere(trial.id, end);
    void this.conclude({ ...trial, end });
  }

  #watchedOf(trial: Trial): Watched {
    const known = this.#watched.get(trial.id);
    if (known !== undefined) return known;
    const controlFreshMs = this.#figures.controlFreshMs(trial);
    const watched = {
      judges: { own: new TrialJudge(trial, controlFreshMs), fleet: new TrialJudge(trial, controlFreshMs) },
      predicted: NOTHING_PREDICTED,
      predictedAtMs: Number.NEGATIVE_INFINITY,
      wasBreakerOpen: this.#parts.isBreakerOpen(),
    };
    this.#watched.set(trial.id, watched);
    return watched;
  }
}

async function isDone(run: ReturnType<CountsBoard['post']>): Promise<boolean> {
  try {
    await run;
    return true;
  } catch {
    return false;
  }
}
