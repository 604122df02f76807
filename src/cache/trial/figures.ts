/** What there is to say of a trial: counts of all processes, and what was predicted. */
import type { Clock } from '../../clock.ts';
import type { CacheClass, TimesInForce } from '../times.ts';
import type { ArmView, TrialView } from './control.ts';
import { noCounts, sumOf, totalsOf, type TrialCounts } from './counts.ts';
import type { TrialsHere } from './here.ts';
import { TrialJudge } from './judge.ts';
import { type ArmName, isRunning, type Predicted, type Trial, type TrialEnd } from './trial.ts';

/** Where the processes of a fleet tell each other what they have counted. */
export interface CountsBoard {
  isUp(): boolean;
  /** All that this process has counted of the trial; in place of what it has told before. */
  post(id: string, counts: TrialCounts): Promise<void>;
  /** Of each trial, what all other processes have told, also those that are gone. */
  read(ids: readonly string[]): Promise<readonly (readonly TrialCounts[])[]>;
}

export interface FiguresParts {
  readonly here: TrialsHere;
  /** Null for a gateway that is alone. */
  readonly board: CountsBoard | null;
  readonly times: TimesInForce;
  /** What the what-if models say of times of a class, in order. Never rejects. */
  readonly predict: (cacheClass: CacheClass, freshMs: readonly number[]) => Promise<readonly (Predicted | null)[]>;
  readonly clock: Clock;
  /** This process. */
  readonly self: string;
}

export type Predictions = Readonly<Record<ArmName, Predicted | null>>;

export class TrialFigures {
  readonly #parts: FiguresParts;

  constructor(parts: FiguresParts) {
    this.#parts = parts;
  }

  controlFreshMs({ class: cacheClass }: Trial): number {
    return this.#parts.times.of(cacheClass).freshMs;
  }

  /** What this process has counted, as it is now. */
  own({ id }: Trial): TrialCounts {
    return sumOf([this.#parts.here.countsOf(id) ?? noCounts()]);
  }

  /** What all have counted. Rejects where the others can't be asked. */
  async ofFleet(trials: readonly Trial[]): Promise<readonly TrialCounts[]> {
    const { board } = this.#parts;
    const others = board === null ? [] : await board.read(trials.map(({ id }) => id));
    return trials.map((trial, index) => sumOf([this.own(trial), ...(others[index] ?? [])]));
  }

  /** Of the time that is tried, and of that in force. */
  async predictions(trial: Trial): Promise<Predictions> {
    const times = [trial.freshMs, this.controlFreshMs(trial)];
    const [tried = null, control = null] = await this.#parts.predict(trial.class, times);
    return { trial: tried, control };
  }

  /** An end that comes now, or came with the time. */
  end(
    trial: Trial,
    predicted: Predictions,
    { state, cause = null, reason = null }: Pick<TrialEnd, 'state'> & Partial<Pick<TrialEnd, 'cause' | 'reason'>>,
  ): TrialEnd {
    const nowMs = this.#parts.clock.nowMs();
    const atMs = state === 'ended' ? trial.untilMs : nowMs;
    const controlFreshMs = this.controlFreshMs(trial);
    return { state, cause, reason, atMs, writer: this.#parts.self, controlFreshMs, predicted };
  }

  /** In the order given. Where the others can't be asked, what this process knows. */
  async views(trials: readonly Trial[]): Promise<readonly TrialView[]> {
    const counts = await this.ofFleet(trials).catch(() => trials.map((trial) => this.own(trial)));
    return Promise.all(trials.map((trial, index) => this.#view(trial, counts[index] ?? noCounts())));
  }

  async #view(given: Trial, counts: TrialCounts): Promise<TrialView> {
    const nowMs = this.#parts.clock.nowMs();
    const predicted = given.end?.predicted ?? (await this.predictions(given));
    const isOver = given.end === null && !isRunning(given, nowMs);
    const trial = isOver ? { ...given, end: this.end(given, predicted, { state: 'ended' }) } : given;
    const controlFreshMs = trial.end?.controlFreshMs ?? this.controlFreshMs(trial);
    const arm = (name: ArmName, freshMs: number): ArmView => ({ freshMs, ...totalsOf(counts.arms[name]) });
    const arms = { trial: arm('trial', trial.freshMs), control: arm('control', controlFreshMs) };
    if (trial.end !== null) return { trial, unjudged: null, arms, predicted };
    const verdict = new TrialJudge(trial, controlFreshMs).look({ atMs: nowMs, counts, predicted });
    return { trial, unjudged: verdict.kind === 'unjudged' ? verdict.why : null, arms, predicted };
  }
}
