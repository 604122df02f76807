/** Opens the tier that processes share in Redis: the copies, the budget for them, and the deletion of what was purged. */
import type { KeyObject } from 'node:crypto';
import type { Journal } from '../../journal/journal.ts';
import type { Instances } from '../../redis/instances.ts';
import type { Links } from '../../redis/links.ts';
import { CacheNames } from '../../redis/names.ts';
import type { Clock } from '../../time/clock.ts';
import { type Timers, withDeadline } from '../../time/timers.ts';
import type { MemoryTier } from '../memory-tier.ts';
import type { PurgeLog } from '../purge-log.ts';
import type { CacheClass, TtlPolicy } from '../ttl-policy.ts';
import { type BudgetExcess, RedisBudget } from './budget.ts';
import { RecordCipher, UndecryptableError } from './encryption.ts';
import { EntryFormat } from './entry-format.ts';
import { FlightChannel } from './flight-channel.ts';
import { PurgeSweep } from './purge-sweep.ts';
import { RedisSeenCalls } from './redis-seen-calls.ts';
import { RedisCopies } from './redis-copies.ts';
import { RedisSharedCache } from './redis-shared-cache.ts';
import { RollbackGuard } from './rollback-guard.ts';

export interface SharedTierHooks {
  /**
   * - `decode`: something stored as an entry cannot be read
   * - `keep`: entries could not be kept for a TTL that was made longer
   * - `sweep`: what was purged could not be deleted; it is tried again
   */
  readonly onFailed: (operation: 'decode' | 'keep' | 'sweep', error: unknown) => void;
  /** A stored record can't be decrypted. It counts as none. */
  readonly onUndecryptable: (error: UndecryptableError) => void;
  /** Copies begin to make room, with the limit that is near, or there is room again (null). */
  readonly onBudget: (excess: BudgetExcess | null) => void;
  /** The cache Redis has gone back to an older state: what is there from before counts as purged from now on. */
  readonly onRolledBack: () => void;
}

export interface SharedTierContext {
  readonly links: Links;
  readonly journal: Journal;
  readonly settings: SharedTierSettings;
  /** Names the store whose answers are cached, in letters and digits: answers of another store are kept apart. */
  readonly store: string;
  readonly instances: Instances;
  /** This process's memory: older copies are dropped from it when another process stores something newer. */
  readonly memory: MemoryTier;
  readonly ttl: TtlPolicy;
  readonly purges: PurgeLog;
  readonly hooks: SharedTierHooks;
  readonly clock: Clock;
  readonly timers: Timers;
}

export interface SharedTierSettings {
  /** Most bytes that copies may take in Redis; null for no such limit. */
  readonly redisBytes: number | null;
  /** The first one encrypts the records that are stored; none: they are stored in the clear. */
  readonly encryptionKeys: readonly KeyObject[];
  /** The longest answer of the store that is accepted. */
  readonly maxAnswerBytes: number;
}

export interface SharedTier {
  readonly reads: RedisSharedCache;
  readonly copies: RedisCopies;
  readonly seenCalls: RedisSeenCalls;
  /**
   * Keeps stored entries of these classes as long as the TTLs in force want it. Resolves after some seconds at the latest;
   * the rest is done in the background. Never rejects.
   */
  keepLonger(classes: readonly CacheClass[]): Promise<void>;
  /** Encrypts with other keys from now on. */
  encryptWith(keys: readonly KeyObject[]): void;
  /** Stops listening and looking. The links go on. */
  close(): void;
}

/** How long a lease holds without being renewed; more than three times as long as its renewals are apart. */
const LEASE_MS = 2000;
/** How long a change of TTLs waits until stored entries have their new life; the rest of them get it later. */
const KEEP_WITHIN_MS = 5000;

export function openSharedTier(context: SharedTierContext): SharedTier {
  const { links, journal, settings, store, instances, memory, ttl, purges, hooks, clock, timers } = context;
  const { cache, isOne } = links;
  const { onFailed, onUndecryptable, onBudget, onRolledBack } = hooks;
  const names = new CacheNames(store);
  const processes = (): number => instances.count();
  const budget = new RedisBudget({ cache, names, maxBytes: settings.redisBytes, isOne, processes, timers, onBudget });
  const cipher = new RecordCipher(settings.encryptionKeys);
  const onBroken = (error: Error): void => {
    if (error instanceof UndecryptableError) onUndecryptable(error);
    else onFailed('decode', error);
  };
  const entries = new EntryFormat({ names, cipher, ttl, maxAnswerBytes: settings.maxAnswerBytes, onBroken });
  const channel = new FlightChannel({ cache, names, timers, self: instances.id, memory });
  const guard = new RollbackGuard({ cache, journal, isOne, store, clock, onRolledBack });
  const leases = { cache, entries, channel, ttl, budget, timers, leaseMs: LEASE_MS };
  const reads = new RedisSharedCache({ leases, purges, guard, clock });
  const left = { state: links.state, cache, isOne, store, stores: () => instances.list().map((one) => one.store) };
  const copies = new RedisCopies({ cache, entries, ttl, purges, guard, left, clock });
  const seenCalls = new RedisSeenCalls({ cache, names, ttl, budget });
  const sweep = new PurgeSweep({
    purges,
    copies,
    seenCalls,
    // The journal is that of all processes, so all of them must be in front of one store.
    isElected: () => {
      const all = instances.list().filter(({ usesJournal }) => usesJournal);
      return all[0]?.id === instances.id && all.every((one) => one.store === store);
    },
    clock,
    timers,
    onFailed: (error) => onFailed('sweep', error),
  });
  return {
    reads,
    copies,
    seenCalls,
    keepLonger: async (classes) => {
      const kept = copies.keepLonger(classes).catch((error: unknown) => onFailed('keep', error));
      await withDeadline(kept, KEEP_WITHIN_MS, timers, () => undefined);
    },
    encryptWith: (keys) => cipher.use(keys),
    close: () => {
      sweep.close();
      budget.close();
      guard.close();
      channel.close();
    },
  };
}
