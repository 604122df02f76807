/** One process's view of what the fleet's caches share in the state Redis: purges, the times in force, maintenance. */
import { randomUUID } from 'node:crypto';
import type { RedisLink } from '../redis/connection.ts';
import type { MaintenanceState } from './maintenance.ts';
import { RedisMaintenance } from './redis-maintenance.ts';
import { RedisPurgeLog } from './redis-purge-log.ts';
import { look, stateChannel } from './redis-state-scripts.ts';
import { RedisTimes } from './redis-times.ts';
import type { AdjustableTimes } from './times.ts';

const PURGE = 'purge ';

/** What this process goes by, and what is set for the fleet is set in. */
export interface InForce {
  readonly times: AdjustableTimes;
  readonly maintenance: MaintenanceState;
}

export class RedisState {
  readonly purges: RedisPurgeLog;
  readonly times: RedisTimes;
  readonly maintenance: RedisMaintenance;
  readonly #link: RedisLink;
  readonly #unlisten: () => void;
  #looking: Promise<void> | null = null;
  #lookingNext: Promise<void> | null = null;

  /** `link` is to the state Redis. */
  constructor(link: RedisLink, { times, maintenance }: InForce) {
    this.#link = link;
    this.purges = new RedisPurgeLog({ redis: link, look: () => this.look() });
    this.times = new RedisTimes({ redis: link, times, look: () => this.look() });
    this.maintenance = new RedisMaintenance({ redis: link, state: maintenance, look: () => this.look() });
    this.#unlisten = link.subscriber.listen(stateChannel(link), (message) => this.#hear(message));
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
    const next = { history: randomUUID(), timesVersion: this.times.version };
    const reply = await look(this.#link, this.purges.known, next);
    this.purges.adopt(reply);
    if (reply.times !== null) this.times.adopt(reply.timesVersion, reply.times);
    this.maintenance.adopt(reply.maintenance);
  }

  #hear(message: string): void {
    if (message.startsWith(PURGE) && this.purges.hear(message.slice(PURGE.length))) return;
    // Something was missed, or can only be looked up. Where it can't, the next beat tries again.
    this.look().catch(() => undefined);
  }
}
