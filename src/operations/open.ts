/** Opens what operators go by: the audit of changes, the counts of the last hour, and the switch for maintenance. */
import type { Journal } from '../journal/journal.ts';
import type { Logger } from '../log/logger.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import { MaintenanceControl, type MaintenanceState } from '../upstream/maintenance.ts';
import { Audit } from './audit.ts';
import { Stats } from './stats/stats.ts';

export interface OperationsContext {
  /** To the state Redis; null for a gateway without. */
  readonly link: RedisLink | null;
  /** The id of this process. */
  readonly self: string;
  /** Names the store: another store has other counts. */
  readonly store: string;
  /** The counts of each worker of this gateway; null without workers. */
  readonly siblings: (() => Promise<readonly unknown[]>) | null;
  readonly journal: Journal;
  /** This process's, which is kept up to date. */
  readonly maintenance: MaintenanceState;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly timers: Timers;
}

export interface Operations {
  readonly audit: Audit;
  readonly stats: Stats;
  readonly maintenance: MaintenanceControl;
  /** Writes the last counts. Never rejects. */
  close(): Promise<void>;
}

/** To be called in the turn of the event loop in which the journal was opened. */
export function openOperations(context: OperationsContext): Operations {
  const { link, self, store, siblings, journal, logger, clock, timers } = context;
  const stats = new Stats(clock, link === null ? null : { link, self, store, siblings, timers });
  const audit = new Audit({
    link,
    clock,
    // The audit keeps a limited number of changes.
    sink: (entry) =>
      logger.info({ audit: entry }, `changed by ${entry.who === 'evalgate' ? 'evalgate' : 'an operator'}`),
  });
  const maintenance = new MaintenanceControl(journal, context.maintenance, clock);
  return { audit, stats, maintenance, close: () => stats.close() };
}
