/** Ends that came in this process, told to whoever keeps the trials until there is an answer. */
import type { TrialLedger } from './ledger.ts';
import type { EndedTrial } from './trial.ts';

export interface TrialHooks {
  /** It was this process that ended it, by time or because it did harm: told once in a fleet. */
  onOver(trial: EndedTrial): void;
  /** This process went back by itself, and can't tell the others now. It tries again. */
  onAlone(trial: EndedTrial): void;
}

export interface ConclusionsParts {
  readonly ledger: TrialLedger;
  readonly hooks: TrialHooks;
  /** This process. */
  readonly self: string;
}

export class Conclusions {
  readonly #parts: ConclusionsParts;
  /** Of which it is not known yet whether they were the first. */
  readonly #pending = new Map<string, EndedTrial>();
  readonly #underWay = new Map<string, Promise<boolean>>();
  /** Of which the hooks were told. */
  readonly #told = { over: new Set<string>(), alone: new Set<string>() };

  constructor(parts: ConclusionsParts) {
    this.#parts = parts;
  }

  /** False where somebody else was first; rejects never. */
  tell(trial: EndedTrial): Promise<boolean> {
    const { id } = trial;
    const underWay = this.#underWay.get(id);
    if (underWay !== undefined) return underWay;
    this.#pending.set(id, trial);
    const telling = this.#tell(trial).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, telling);
    return telling;
  }

  /** These, and those that have had no answer yet. What was sent before is sent again as it was: only so is it known again. */
  async tellAll(ended: readonly EndedTrial[]): Promise<void> {
    const all = new Map([...ended.map((trial) => [trial.id, trial] as const), ...this.#pending]);
    for (const trial of all.values()) await this.tell(trial);
  }

  forgetAllBut(known: ReadonlySet<string>): void {
    for (const kept of [this.#pending, this.#told.over, this.#told.alone]) {
      for (const id of kept.keys()) if (!known.has(id)) kept.delete(id);
    }
  }

  async #tell(trial: EndedTrial): Promise<boolean> {
    const { ledger, hooks } = this.#parts;
    try {
      const isOurs = await ledger.end(trial);
      this.#pending.delete(trial.id);
      if (isOurs && this.#isOwn(trial) && isNew(this.#told.over, trial)) hooks.onOver(trial);
      return isOurs;
    } catch {
      if (trial.end.state === 'rolled-back' && isNew(this.#told.alone, trial)) hooks.onAlone(trial);
      return false;
    }
  }

  /** What an operator ended may be told again, after Redis has lost that: it is no news. */
  #isOwn({ end }: EndedTrial): boolean {
    return end.writer === this.#parts.self && (end.state === 'ended' || end.state === 'rolled-back');
  }
}

/** Whether it is told of it for the first time. */
function isNew(told: Set<string>, { id }: EndedTrial): boolean {
  const isKnown = told.has(id);
  told.add(id);
  return !isKnown;
}
