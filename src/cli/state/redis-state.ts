/** The state in Redis itself, by the rules of the admin listener; no gateway needs to run. */
import { ttlEndEntry } from '../../admin/cache-control.ts';
import { StateSync } from '../../cache/redis/state-sync.ts';
import { TtlPolicy } from '../../cache/ttl-policy.ts';
import { loadConfig } from '../../config/load.ts';
import { Audit } from '../../operations/audit.ts';
import { faulty } from '../../operations/input.ts';
import { importState, keyRecord, readRecords, settingRecords } from '../../operations/state.ts';
import { systemClock } from '../../time/clock.ts';
import { MaintenanceState } from '../../upstream/maintenance.ts';
import { explained, openDirectory, useStateRedis } from '../keys/redis-key-admin.ts';
import type { StateCounts } from '../../operations/answers.ts';

/** What both ways to the state can do. */
export interface StateAdmin {
  /** All records, in pages. */
  pages(): AsyncIterable<readonly object[]>;
  /** One page of an import, all or none of its keys. */
  import(written: readonly unknown[], isDryRun: boolean): Promise<StateCounts>;
}

/** Rejects with CliError if Redis can't be used, or for what the listener would refuse too. */
export function useRedisState<T>(
  access: Parameters<typeof useStateRedis>[0],
  act: (admin: StateAdmin) => Promise<T>,
): Promise<T> {
  return useStateRedis(access, async (link, who) => {
    const clock = systemClock;
    const registry = openDirectory(link);
    const audit = new Audit({ link, clock, sink: null });
    const ttl = new TtlPolicy(clock, loadConfig({ env: process.env }).config.cache.classes);
    const sync = new StateSync(link, {
      ttl,
      maintenance: new MaintenanceState(clock),
      clock,
      // No copy is held here. Those in Redis that a longer time would keep are kept once they are stored again.
      onHardPurge: () => undefined,
      onTtlChanged: async () => undefined,
      onStateLost: () => undefined,
      onTtlEnd: (end) => void audit.record(ttlEndEntry(end)),
    });
    try {
      await sync.look();
      const parts = { registry, audit, clock, ttl, ttlControl: sync.ttl, maintenance: sync.maintenance, who };
      return await act({
        pages: async function* () {
          yield await settingRecords(parts);
          yield (await registry.list()).map(keyRecord);
        },
        import: async (written, isDryRun) => {
          const { records, faults } = readRecords(written, clock.nowMs(), (index) => `records[${index}]`);
          if (faults.length > 0) throw explained(faulty(faults));
          return importState(parts, records, isDryRun).catch((error: unknown) => {
            throw explained(error);
          });
        },
      });
    } finally {
      sync.close();
    }
  });
}
