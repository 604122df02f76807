/** The trials of a fleet: kept in the state Redis beside the times in force, and known from memory. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { RedisClient } from '../../redis/client.ts';
import { runScript } from '../../redis/script.ts';
import { afterChange } from '../../redis/unsent.ts';
import type { TimesChange } from '../times-control.ts';
import type { TrialsHere } from './here.ts';
import { MOST_ENDED, type TrialLedger } from './ledger.ts';
import { ADOPT, ADOPT_KEYS, BEGIN, BEGIN_KEYS, END, END_KEYS } from './redis-trial-scripts.ts';
import { type EndedTrial, type Trial, trialSchema } from './trial.ts';

/** How a set time is written, and what times set for the fleet come to; see `RedisTimes`. */
export interface TimesFields {
  fieldOf(trial: Trial): string;
  changeOf(trial: Trial, before: readonly string[]): TimesChange;
}

export interface RedisTrialsOptions {
  /** Of the state Redis. */
  readonly client: RedisClient;
  /** Where changes are told. */
  readonly channel: string;
  /** What this process knows. */
  readonly here: TrialsHere;
  readonly times: TimesFields;
  /** Brings what this process knows to what Redis holds by then. */
  readonly look: () => Promise<void>;
}

const pairsSchema = z.array(z.string()).nullable();
const textSchema = z.string().nullable();

export class RedisTrials implements TrialLedger {
  readonly #options: RedisTrialsOptions;
  #version = '';

  constructor(options: RedisTrialsOptions) {
    this.#options = options;
  }

  /** Of what is known here; empty where there was never a trial. */
  get version(): string {
    return this.#version;
  }

  /** What Redis holds; what is no trial counts as none. Gives those that ran here and that Redis has forgotten. */
  take(version: string, texts: readonly string[]): readonly Trial[] {
    this.#version = version;
    return this.#options.here.adopt(texts.flatMap(read));
  }

  refresh(): Promise<void> {
    return this.#options.look();
  }

  /** Rejects where Redis can't be asked; it may then have begun or not. */
  async begin(trial: Trial): Promise<Trial | null> {
    const { client, look } = this.#options;
    const reply = await runScript(client, BEGIN, { keys: BEGIN_KEYS, args: this.#args(trial) });
    const [running = null] = read(textSchema.parse(reply) ?? '');
    await afterChange(look);
    return running;
  }

  /** Rejects as `begin` does; may be repeated. */
  async end(trial: EndedTrial): Promise<boolean> {
    const { client, here, look } = this.#options;
    const notBeforeMs = trial.end.state === 'ended' ? trial.untilMs : 0;
    const args = [...this.#args(trial), trial.id, MOST_ENDED, notBeforeMs];
    const isOurs = (await runScript(client, END, { keys: END_KEYS, args })) === 1;
    if (isOurs) here.endHere(trial.id, trial.end);
    // It has ended here; what else is new, the next beat brings.
    await look().catch(() => undefined);
    return isOurs;
  }

  /** Rejects as `begin` does. */
  async adopt(trial: EndedTrial): Promise<TimesChange | null> {
    const { client, look, times } = this.#options;
    const args = [...this.#args(trial), trial.id, MOST_ENDED, times.fieldOf(trial), trial.freshMs];
    const before = pairsSchema.parse(await runScript(client, ADOPT, { keys: ADOPT_KEYS, args }));
    await afterChange(look);
    return before === null ? null : times.changeOf(trial, before);
  }

  #args(trial: Trial): (string | number)[] {
    return [this.#options.channel, randomUUID(), trial.class, JSON.stringify(trial)];
  }
}

function read(text: string): Trial[] {
  try {
    return [trialSchema.parse(JSON.parse(text))];
  } catch {
    return [];
  }
}
