/** The maintenance of a fleet: kept in the state Redis beside the times in force, and known from memory. */
import { z } from 'zod';
import { afterChange, type RedisCommands } from '../redis/connection.ts';
import type { Maintenance, MaintenanceChange, MaintenanceControl, MaintenanceState } from './maintenance.ts';
import { changeMaintenance } from './redis-state-scripts.ts';

export interface RedisMaintenanceOptions {
  /** To the state Redis. */
  readonly redis: RedisCommands;
  /** What this process goes by. */
  readonly state: MaintenanceState;
  /** Brings what this process knows to what Redis holds by then. */
  readonly look: () => Promise<void>;
}

/** What JavaScript can write as a date. */
const timeMs = z.int().min(0).max(8.64e15);
const maintenanceSchema = z.object({ sinceMs: timeMs, untilMs: timeMs, by: z.string() });

export class RedisMaintenance implements MaintenanceControl {
  readonly #options: RedisMaintenanceOptions;
  #adopted = '';

  constructor(options: RedisMaintenanceOptions) {
    this.#options = options;
  }

  /** Goes on while Redis can't be asked: what was said stands until its end. */
  current(): Maintenance | null {
    return this.#options.state.current();
  }

  /** Rejects where Redis can't be asked; it may then have been done or not. */
  begin(untilMs: number, by: string): Promise<MaintenanceChange> {
    return this.#change(this.#options.state.until(untilMs, by));
  }

  /** Rejects as `begin` does. */
  end(): Promise<MaintenanceChange> {
    return this.#change(null);
  }

  /** What Redis holds; what is none counts as nothing said. */
  adopt(text: string): void {
    if (text === this.#adopted) return;
    this.#adopted = text;
    this.#options.state.say(read(text));
  }

  async #change(to: Maintenance | null): Promise<MaintenanceChange> {
    const { redis, state, look } = this.#options;
    const before = await changeMaintenance(redis, to === null ? '' : JSON.stringify(to));
    await afterChange(look);
    return { from: state.ifOn(read(before)), to };
  }
}

function read(text: string): Maintenance | null {
  if (text === '') return null;
  try {
    return maintenanceSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
