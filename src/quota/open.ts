/** Opens the limits of API keys: in Redis for all processes, or in the memory of the only one. */
import type { RedisLink } from '../redis/connection.ts';
import type { Instances } from '../redis/instances.ts';
import type { Clock } from '../time/clock.ts';
import { FailoverLimiter, type FailoverOptions } from './failover.ts';
import type { QuotaLimiter } from './limiter.ts';
import { MemoryLimiter } from './memory-limiter.ts';

export interface QuotaContext {
  /** The state Redis, and who is notified of limits that it does not decide on; null for a gateway without Redis. */
  readonly redis: { readonly state: RedisLink; readonly hooks: FailoverOptions['hooks'] } | null;
  readonly instances: Instances;
  readonly clock: Clock;
}

export interface Quota {
  readonly limiter: QuotaLimiter;
  close(): void;
}

export function openQuota({ redis, instances, clock }: QuotaContext): Quota {
  if (redis === null) return { limiter: new MemoryLimiter({ clock }), close: () => {} };
  const { state: link, hooks } = redis;
  const processes = (): number => instances.count();
  const limiter = new FailoverLimiter({ link, self: instances.id, clock, processes, hooks });
  return { limiter, close: () => limiter.close() };
}
