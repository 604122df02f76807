/** The fleet's ports, closed while they could only keep readers waiting or mislead them. */
import type { RedisLink } from '../redis/connection.ts';
import type { Fleet } from './ports.ts';
import type { StateSync } from './redis/state-sync.ts';

type FleetPorts = Pick<Fleet, 'tier' | 'leases'>;

/** The fleet can't be used now. The cache goes on without it. */
export class FleetUnavailableError extends Error {
  override readonly name = 'FleetUnavailableError';
}

export interface GuardOptions {
  /** To the cache Redis. */
  readonly link: RedisLink;
  readonly purges: Pick<StateSync['purges'], 'isKnown'>;
}

/**
 * While Redis doesn't answer, every call rejects at once instead of after the time of a command. Before the purge log was
 * read, too: what the fleet holds can't be judged then, and what this process would add nobody could use.
 */
export function guarded({ tier, leases }: FleetPorts, { link, purges }: GuardOptions): FleetPorts {
  const ifUsable = async <R>(run: () => R | Promise<R>): Promise<R> => {
    if (!link.isUp()) throw new FleetUnavailableError('the cache Redis does not answer');
    if (!purges.isKnown) throw new FleetUnavailableError('the purge log was not read yet');
    return await run();
  };
  return {
    tier: {
      get: (key) => ifUsable(() => tier.get(key)),
      set: (key, stored) => ifUsable(() => tier.set(key, stored)),
      seed: (seeds) => ifUsable(() => tier.seed(seeds)),
      delete: (key) => ifUsable(() => tier.delete(key)),
      measure: (matches, deadline) => ifUsable(() => tier.measure(matches, deadline)),
    },
    leases: {
      acquire: (key) => ifUsable(() => leases.acquire(key)),
      follow: (key) => ifUsable(() => leases.follow(key)),
    },
  };
}
