/** One gateway of a simulated fleet: the rooms of src, wired as gateway.ts does, without listeners and telemetry. */
import { openCache, type CacheRoom } from '../../src/cache/open.ts';
import { type ChangesRoom, openChanges } from '../../src/changes/open.ts';
import { purge } from '../../src/cache/purge.ts';
import type { Tag } from '../../src/cache/purge-log.ts';
import type { Config } from '../../src/config/config.ts';
import { RedisJournal } from '../../src/journal/redis-journal.ts';
import { type Keys, openKeys } from '../../src/keys/open.ts';
import { openQuota, type Quota } from '../../src/quota/open.ts';
import { Instances } from '../../src/redis/instances.ts';
import { type Links, openLinks } from '../../src/redis/links.ts';
import type { Clock } from '../../src/time/clock.ts';
import { systemTimers } from '../../src/time/timers.ts';
import { gated, MaintenanceControl, MaintenanceState } from '../../src/upstream/maintenance.ts';
import type { Fetch } from '../../src/upstream/store.ts';
import { uptimeMs, wallMs } from './machine.ts';
import type { Schedule, SimulatedProcess } from './schedule.ts';

const STORE = 'simulated';

export interface GatewayOptions {
  readonly schedule: Schedule;
  readonly process: SimulatedProcess;
  readonly config: Config;
  readonly fetch: Fetch;
}

/** To be opened as code of its process. */
export class SimulatedGateway {
  readonly process: SimulatedProcess;
  readonly journal: RedisJournal;
  readonly cache: CacheRoom;
  readonly changes: ChangesRoom;
  readonly keys: Keys;
  readonly quota: Quota;
  readonly links: Links;
  readonly maintenance: MaintenanceControl;

  constructor({ schedule, process, config, fetch }: GatewayOptions) {
    this.process = process;
    const clock = clockOf(schedule, process);
    const { url, cacheUrl, timeoutMs } = config.redis;
    const links = openLinks({ url: url ?? '', cacheUrl, readFile: noFile }, { timeoutMs });
    const about = {
      host: process.name,
      pid: 1,
      version: 'simulated',
      startedAtMs: clock.nowMs(),
      status: 'ready',
      store: STORE,
      clockAheadMs: 0,
      forgetsPurges: false,
      usesJournal: true,
    } as const;
    const instances = new Instances({ link: links.state, about, atLeast: 1 });
    const journal = new RedisJournal({ link: links.state, clock, timers: systemTimers, onLost: () => undefined });
    const maintenance = new MaintenanceControl(journal, new MaintenanceState(clock), clock);
    const ofTime = { clock, timers: systemTimers };
    this.keys = openKeys({
      redis: { ...links, journal },
      graceMs: config.keys.graceMs,
      hooks: { onLoss: nothing, onBrokenRecord: nothing, onIdsRestored: nothing },
      ...ofTime,
    });
    const hooks = { onDegraded: nothing, onExact: nothing, onUndecided: nothing, onForgotten: nothing };
    this.quota = openQuota({ redis: { state: links.state, hooks }, instances, clock });
    this.cache = openCache({
      config,
      store: { identity: STORE, fetch: gated(fetch, maintenance, clock), hasRoom: () => true },
      journal,
      links,
      instances,
      maintenance,
      listeners: [],
      hooks: {
        onFailed: nothing,
        onUndecryptable: nothing,
        onBudget: nothing,
        onRolledBack: nothing,
        onTtlEnd: nothing,
        onBrokenMessage: nothing,
      },
      ...ofTime,
    });
    this.changes = openChanges({
      changes: this.cache.changes,
      journal,
      redis: { state: links.state, journal },
      instances,
      config: config.changes,
      unannouncedShare: () => null,
      ...ofTime,
    });
    this.journal = journal;
    this.maintenance = maintenance;
    this.links = links;
  }

  /** Resolves once the purge is in force here, as the admin listener answers. */
  async purge(tags: readonly Tag[]): Promise<void> {
    const { memory, shared, purges } = this.cache;
    await purge({ tags, mode: 'hard', isExact: false, isDryRun: false }, { memory, shared, purges });
  }
}

function noFile(): string {
  return '';
}

function nothing(): void {
  // A simulated gateway has no telemetry.
}

function clockOf(schedule: Schedule, process: SimulatedProcess): Clock {
  const startedMicros = 1000 * wallMs(schedule, process);
  return {
    nowMs: () => wallMs(schedule, process),
    nowMicros: () => startedMicros + Math.floor(1000 * uptimeMs(schedule, process)),
  };
}
