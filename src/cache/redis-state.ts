/** One process's view of what the fleet's caches share in the state Redis: purges, the times in force, maintenance. */
import { randomUUID } from 'node:crypto';
import type { RedisLink } from '../redis/link.ts';
import type { MaintenanceState } from './maintenance.ts';
import { RedisMaintenance } from './redis-maintenance.ts';
import { RedisPurgeLog } from './redis-purge-log.ts';
import { asMap, look, stateChannel } from './redis-state-scripts.ts';
import { fieldOf, RedisTimes } from './redis-times.ts';
import type { AdjustableTimes } from './times.ts';
import type { TrialsHere } from './trial/here.ts';
import { RedisTrials } from './trial/redis-trials.ts';
import type { Trial } from './trial/trial.ts';

const PURGE = 'purge ';

/** What this process goes by, and what is set for the fleet is set in. */
export interface InForce {
  readonly times: AdjustableTimes;
  readonly maintenance: MaintenanceState;
  readonly trials: TrialsHere;
}

export class RedisState {
  readonly purges: RedisPurgeLog;
  readonly times: RedisTimes;
  readonly maintenance: RedisMaintenance;
  readonly trials: RedisTrials;
  readonly #onTrialLost: (trial: Trial) => void;
  readonly #link: RedisLink;
  readonly #unlisten: () => void;
  #looking: Promise<void> | null = null;
  #lookingNext: Promise<void> | null = null;

  /** `link` is to the state Redis. `onTrialLost` is told of each trial that ran here and that Redis has forgotten. */
  constructor(link: RedisLink, { times, maintenance, trials }: InForce, onTrialLost: (trial: Trial) => void) {
    const { client } = link;
    this.#link = link;
    this.#onTrialLost = onTrialLost;
    this.purges = new RedisPurgeLog({ client, look: () => this.look() });
    this.times = new RedisTimes({ client, times, look: () => this.look() });
    this.maintenance = new RedisMaintenance({ client, state: maintenance, look: () => this.look() });
    this.trials = new RedisTrials({
      client,
      channel: stateChannel(client),
      here: trials,
      times: {
        fieldOf: ({ class: cacheClass }) => fieldOf(cacheClass, 'freshMs'),
        changeOf: ({ class: cacheClass, freshMs }, before) =>
          this.times.changeFrom(asMap(before), cacheClass, { freshMs }),
      },
      look: () => this.look(),
    });
    this.#unlisten = link.subscriber.listen(stateChannel(client), (message) => this.#hear(message));
  }

  /**
   * Takes over what has changed; once it resolves, all that had changed when it was called. One look at a time, so that
   * no answer is taken over after a later one. Rejects where Redis can't be asked.
   */
  look(): Promise<void> {
    if (this.#looking === null) {
      this.#looking = this.#lookNow().finally(() => {
        this.#looking = null;
      });
      return this.#looking;
    }
    // The one under way may have asked too early.
    this.#lookingNext ??= this.#looking
      .catch(() => undefined)
      .then(() => {
        this.#lookingNext = null;
        return this.look();
      });
    return this.#lookingNext;
  }

  close(): void {
    this.#unlisten();
  }

  async #lookNow(): Promise<void> {
    const next = { history: randomUUID(), timesVersion: this.times.version, trialsVersion: this.trials.version };
    const reply = await look(this.#link.client, this.purges.known, next);
    this.purges.adopt(reply);
    if (reply.times !== null) this.times.adopt(reply.timesVersion, reply.times);
    this.maintenance.adopt(reply.maintenance);
    if (reply.trials !== null) this.trials.take(reply.trialsVersion, reply.trials).forEach(this.#onTrialLost);
  }

  #hear(message: string): void {
    if (message.startsWith(PURGE) && this.purges.hear(message.slice(PURGE.length))) return;
    // Something was missed, or can only be looked up. Where it can't, the next beat tries again.
    this.look().catch(() => undefined);
  }
}
