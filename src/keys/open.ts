/** Opens the registry of API keys, and the limits that go by addresses and by keys. */
import type { RedisJournal } from '../journal/redis-journal.ts';
import type { Links } from '../redis/links.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import { Authenticator } from './authenticate.ts';
import { MemoryRegistry, overlayLookup } from './memory-registry.ts';
import { RedisRegistry, type RedisRegistryOptions } from './redis-registry.ts';
import type { KeyDirectory } from './registry.ts';
import { createRequestLimiter, type RequestLimiter, type RequestLimiterOptions } from './request-limiter.ts';

/** K9: failed authentications are limited per address. */
const AUTHENTICATION_LIMIT = { name: 'failed-authentications', points: 60, windowSeconds: 60 };

export interface KeysContext {
  /** Null for a gateway without Redis, which keeps keys in memory. */
  readonly redis: (Links & { readonly journal: RedisJournal }) | null;
  /** How long a key that Redis has confirmed stays good while Redis does not answer (KEY_GRACE). */
  readonly graceMs: number;
  readonly hooks: KeyHooks;
  readonly clock: Clock;
  readonly timers: Timers;
}

export type KeyHooks = Pick<RedisRegistryOptions, 'onLoss' | 'onBrokenRecord' | 'onIdsRestored'>;

export interface Keys {
  readonly authenticator: Authenticator;
  readonly registry: KeyDirectory;
  /** For keys that must end with this process. */
  readonly transient: KeyDirectory;
  /** Makes a limit that all processes share. */
  readonly limiter: (options: Omit<RequestLimiterOptions, 'redis'>) => RequestLimiter;
  /** Writes the last uses of keys. Never rejects. */
  close(): Promise<void>;
}

/** To be called in the turn of the event loop in which the journal was opened. */
export function openKeys({ redis, graceMs, hooks, clock, timers }: KeysContext): Keys {
  const transient = new MemoryRegistry(clock);
  const limiter = (limit: Omit<RequestLimiterOptions, 'redis'>): RequestLimiter =>
    createRequestLimiter({ ...limit, redis: redis?.state ?? null });
  const ofKeys = { transient, limiter };
  const failures = limiter(AUTHENTICATION_LIMIT);
  if (redis === null) {
    const authenticator = new Authenticator({ registry: transient, clock, timers, failures });
    return { ...ofKeys, authenticator, registry: transient, close: async () => {} };
  }
  const registry = new RedisRegistry({
    link: redis.state,
    journal: redis.journal,
    // A Redis that does not lose its data together with the other.
    witness: redis.isOne ? null : redis.cache,
    graceMs,
    ...hooks,
    clock,
    timers,
  });
  const lookup = overlayLookup(transient, registry);
  const authenticator = new Authenticator({ registry: lookup, clock, timers, failures });
  return { ...ofKeys, authenticator, registry, close: () => registry.close() };
}
