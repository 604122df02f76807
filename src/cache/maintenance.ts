/**
 * "Ask the store nothing until then": an operator's word for the time in which the store is worked on. It is in force in
 * every process of a fleet and ends by itself, by each process's own clock.
 */
import type { Clock } from '../clock.ts';
import { StoreError } from '../upstream/store.ts';

export interface Maintenance {
  /** Unix milliseconds. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Who said so last. */
  readonly by: string;
}

/** What is in force in this process now; null where the store may be asked. */
export interface MaintenanceWatch {
  current(): Maintenance | null;
}

/** What was in force before a change, and what is after it. */
export interface MaintenanceChange {
  readonly from: Maintenance | null;
  readonly to: Maintenance | null;
}

/** Once a change resolves it is in force here; in every other process of the fleet within a second. */
export interface MaintenanceControl extends MaintenanceWatch {
  /** Begins it, or moves the end of the one that is on. `untilMs`: Unix milliseconds, later than now. */
  begin(untilMs: number, by: string): Promise<MaintenanceChange>;
  end(): Promise<MaintenanceChange>;
}

/** For a cache that nobody can switch. */
export const NO_MAINTENANCE: MaintenanceWatch = { current: () => null };

/** Somebody may end it early, so nobody is sent away for longer. */
const MAX_RETRY_AFTER_MS = 60_000;

/** What a call fails with that is not sent because of it. */
export function pausedError({ untilMs }: Maintenance, clock: Clock): StoreError {
  const retryAfterMs = Math.min(MAX_RETRY_AFTER_MS, Math.max(0, untilMs - clock.nowMs()));
  return new StoreError('maintenance', `the store is asked nothing until ${new Date(untilMs).toISOString()}`, {
    retryAfterMs,
  });
}

/** What this process knows of it, whoever said so. */
export class MaintenanceState implements MaintenanceWatch {
  readonly #clock: Clock;
  readonly #onSaid: () => void;
  #said: Maintenance | null = null;

  /** `onSaid` is told whenever something else is said than before; not of its end, which comes by itself. */
  constructor(clock: Clock, onSaid: () => void = () => undefined) {
    this.#clock = clock;
    this.#onSaid = onSaid;
  }

  current(): Maintenance | null {
    return this.ifOn(this.#said);
  }

  say(said: Maintenance | null): void {
    this.#said = said;
    this.#onSaid();
  }

  /** Null where its end has come, by the clock of this process. */
  ifOn(said: Maintenance | null): Maintenance | null {
    return said !== null && this.#clock.nowMs() < said.untilMs ? said : null;
  }

  /** What there is to say of one that is to last until then; one that is on goes on. */
  until(untilMs: number, by: string): Maintenance {
    return { sinceMs: this.current()?.sinceMs ?? this.#clock.nowMs(), untilMs, by };
  }
}

/** Of a gateway that is alone: forgotten when it stops. */
export class LocalMaintenance implements MaintenanceControl {
  readonly #state: MaintenanceState;

  constructor(state: MaintenanceState) {
    this.#state = state;
  }

  current(): Maintenance | null {
    return this.#state.current();
  }

  async begin(untilMs: number, by: string): Promise<MaintenanceChange> {
    return this.#change(this.#state.until(untilMs, by));
  }

  async end(): Promise<MaintenanceChange> {
    return this.#change(null);
  }

  #change(to: Maintenance | null): MaintenanceChange {
    const from = this.#state.current();
    this.#state.say(to);
    return { from, to };
  }
}
