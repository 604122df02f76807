/** The backend of a gateway without Redis: everything is in the memory of this process, and ends with it. */
import { Audit } from '../operations/audit.ts';
import { ttlEndEntry } from '../admin/cache-control.ts';
import { Stats } from '../operations/stats/stats.ts';
import { Changes } from '../cache/changes.ts';
import { MemoryFeed } from '../changes/memory-feed.ts';
import { openChanges } from '../changes/open-changes.ts';
import { memoryDropper } from '../cache/purge.ts';
import { PurgeLog } from '../cache/purge-log.ts';
import { TtlControl } from '../cache/ttl-control.ts';
import type { TtlEnd } from '../cache/ttl-policy.ts';
import { WhatIf } from '../cache/what-if/what-if.ts';
import { MemoryJournal } from '../journal/memory-journal.ts';
import { MemoryRegistry } from '../keys/memory-registry.ts';
import { createRequestLimiter } from '../keys/request-limiter.ts';
import { MemoryLimiter } from '../quota/memory-limiter.ts';
import { Instances } from '../redis/instances.ts';
import { MaintenanceControl } from '../upstream/maintenance.ts';
import { auditLog, type Backend, type BackendOptions, instanceInfo } from './backend.ts';

export function memoryBackend(options: BackendOptions): Backend {
  const { config, clock, timers, memory, ttl, maintenance, logger } = options;
  const registry = new MemoryRegistry(clock);
  const audit = new Audit({ clock, sink: auditLog(logger), link: null });
  const journal = new MemoryJournal();
  const changes = new Changes({ journal, clock });
  const onEnd = (end: TtlEnd): void => void audit.record(ttlEndEntry(end));
  const whatIf = new WhatIf(options);
  const instances = new Instances({ link: null, about: instanceInfo(options), atLeast: 1 });
  return {
    keys: registry,
    registry,
    transientKeys: registry,
    quota: new MemoryLimiter({ clock }),
    limiter: (limit) => createRequestLimiter({ ...limit, redis: null }),
    sharedCache: null,
    journal,
    purges: new PurgeLog({ journal, clock, onHard: memoryDropper(memory, timers), isAlone: true }),
    changes,
    ...openChanges({
      changes,
      journal,
      feed: new MemoryFeed({ journal, clock, keepMs: config.changes.keepMs }),
      reach: async () => ({ reached: 1, of: 1 }),
      isAnnounced: config.changes.announced,
      unannouncedShare: () => null,
      clock,
      timers,
    }),
    ttlControl: new TtlControl({ journal, policy: ttl, clock, timers, onEnd }),
    onTtlsConfigured: () => {},
    useSecrets: () => {},
    maintenance: new MaintenanceControl(journal, maintenance, clock),
    audit,
    whatIf,
    stats: new Stats(clock, null),
    instances,
    fleet: (answer) => ({
      known: (gone) => instances.known(gone),
      ask: async (question) => new Map([[instances.id, await answer(question)]]),
    }),
    redis: null,
    close: () => whatIf.close(),
  };
}
