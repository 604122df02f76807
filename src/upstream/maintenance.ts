/**
 * Maintenance: operators keep every call from the store until a given time. It is in force in every process, and ends by
 * itself by each process's own clock.
 */
import type { Journal, Maintenance } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';
import type { Fetch } from './store.ts';
import { StoreError } from './store-error.ts';

/** The maintenance in force in this process; null while the store may be called. */
export interface MaintenanceWatch {
  current(): Maintenance | null;
}

export interface MaintenanceChange {
  readonly from: Maintenance | null;
  readonly to: Maintenance | null;
}

/** The error of a call that maintenance keeps from the store. */
export function maintenanceError({ untilMs }: Maintenance, clock: Clock): StoreError {
  const retryAfterMs = Math.max(0, untilMs - clock.nowMs());
  return new StoreError('paused', `the store is asked nothing until ${new Date(untilMs).toISOString()}`, {
    retryAfterMs,
  });
}

/** The same calls; during maintenance each rejects at once with a StoreError of kind `paused`. */
export function gated(send: Fetch, maintenance: MaintenanceWatch, clock: Clock): Fetch {
  return async (resource, params, options) => {
    const current = maintenance.current();
    if (current !== null) throw maintenanceError(current, clock);
    return await send(resource, params, options);
  };
}

/** The maintenance as this process knows it. */
export class MaintenanceState implements MaintenanceWatch {
  readonly #clock: Clock;
  readonly #onSet: () => void;
  #last: Maintenance | null = null;

  /** `onSet` is called at each change, but not at an end that comes by itself. */
  constructor(clock: Clock, onSet: () => void = () => undefined) {
    this.#clock = clock;
    this.#onSet = onSet;
  }

  current(): Maintenance | null {
    return this.#ifOn(this.#last);
  }

  set(to: Maintenance | null): void {
    this.#last = to;
    this.#onSet();
  }

  /** Null once its end has come. */
  #ifOn(maintenance: Maintenance | null): Maintenance | null {
    return maintenance !== null && this.#clock.nowMs() < maintenance.untilMs ? maintenance : null;
  }
}

/** Attempts at a change that other processes keep overtaking. */
const MAX_ATTEMPTS = 10;

/** Once a change resolves it is in force here; in every other process within a second. */
export class MaintenanceControl implements MaintenanceWatch {
  readonly #journal: Journal;
  readonly #state: MaintenanceState;
  readonly #clock: Clock;

  /** `state`: this process's, which is kept up to date. */
  constructor(journal: Journal, state: MaintenanceState, clock: Clock) {
    this.#journal = journal;
    this.#state = state;
    this.#clock = clock;
    journal.on('maintenance', ({ maintenance }) => state.set(maintenance));
    journal.onSnapshot(({ maintenance }) => state.set(maintenance));
  }

  /** Goes on until its end while Redis does not answer. */
  current(): Maintenance | null {
    return this.#state.current();
  }

  /**
   * Begins it, or moves the end of the one that is on. `untilMs`: Unix milliseconds, later than now. `sinceMs`: when it began,
   * if that was earlier.
   */
  begin(untilMs: number, by: string, sinceMs?: number): Promise<MaintenanceChange> {
    return this.#change((current) => ({ sinceMs: sinceMs ?? current?.sinceMs ?? this.#clock.nowMs(), untilMs, by }));
  }

  end(): Promise<MaintenanceChange> {
    return this.#change(() => null);
  }

  async #change(change: (current: Maintenance | null) => Maintenance | null): Promise<MaintenanceChange> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const from = this.current();
      const to = change(from);
      if (await this.#journal.append({ kind: 'maintenance', maintenance: to })) return { from, to };
    }
    throw new Error('Other processes changed the maintenance again and again during the change.');
  }
}
