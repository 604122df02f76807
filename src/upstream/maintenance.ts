/**
 * Maintenance: operators keep every call from the store until a given time. It is in force in every process, and ends by
 * itself by each process's own clock.
 */
import type { Clock } from '../time/clock.ts';
import type { Fetch } from './store.ts';
import { StoreError } from './store-error.ts';

export interface Maintenance {
  /** Unix milliseconds. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Who began it, or moved its end last. */
  readonly by: string;
}

/** The maintenance in force in this process; null while the store may be called. */
export interface MaintenanceWatch {
  current(): Maintenance | null;
}

export interface MaintenanceChange {
  readonly from: Maintenance | null;
  readonly to: Maintenance | null;
}

/** Once a change resolves it is in force here; in every other process within a second. */
export interface MaintenanceControl extends MaintenanceWatch {
  /**
   * Begins it, or moves the end of the one that is on. `untilMs`: Unix milliseconds, later than now. `sinceMs`: when it began,
   * if that was earlier.
   */
  begin(untilMs: number, by: string, sinceMs?: number): Promise<MaintenanceChange>;
  end(): Promise<MaintenanceChange>;
}

/** The error of a call that maintenance keeps from the store. */
export function maintenanceError({ untilMs }: Maintenance, clock: Clock): StoreError {
  const retryAfterMs = Math.max(0, untilMs - clock.nowMs());
  return new StoreError('maintenance', `the store is asked nothing until ${new Date(untilMs).toISOString()}`, {
    retryAfterMs,
  });
}

/** The same calls; during maintenance each rejects at once with a StoreError of kind `maintenance`. */
export function gated(send: Fetch, maintenance: MaintenanceWatch, clock: Clock): Fetch {
  return async (resource, params, options) => {
    const current = maintenance.current();
    if (current !== null) throw maintenanceError(current, clock);
    return await send(resource, params, options);
  };
}

/** The maintenance of this process. Without Redis, operators change it here, and it is forgotten when the process stops. */
export class MaintenanceState implements MaintenanceControl {
  readonly #clock: Clock;
  readonly #onSet: () => void;
  #last: Maintenance | null = null;

  /** `onSet` is called at each change, but not at an end that comes by itself. */
  constructor(clock: Clock, onSet: () => void = () => undefined) {
    this.#clock = clock;
    this.#onSet = onSet;
  }

  current(): Maintenance | null {
    return this.ifOn(this.#last);
  }

  async begin(untilMs: number, by: string, sinceMs?: number): Promise<MaintenanceChange> {
    return this.set(this.until(untilMs, by, sinceMs));
  }

  async end(): Promise<MaintenanceChange> {
    return this.set(null);
  }

  set(to: Maintenance | null): MaintenanceChange {
    const from = this.current();
    this.#last = to;
    this.#onSet();
    return { from, to };
  }

  /** Null once its end has come. */
  ifOn(maintenance: Maintenance | null): Maintenance | null {
    return maintenance !== null && this.#clock.nowMs() < maintenance.untilMs ? maintenance : null;
  }

  /** The maintenance until then; it has begun with the one that is on. */
  until(untilMs: number, by: string, sinceMs = this.current()?.sinceMs ?? this.#clock.nowMs()): Maintenance {
    return { sinceMs, untilMs, by };
  }
}
