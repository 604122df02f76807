/**
 * Limits of fixed windows, for requests outside a key's exact quota (K9: failed authentications per address; K8a: looks at
 * one's own key) and for wrong admin tokens. Counted for all processes in Redis, if there is one; while it does not answer,
 * each process counts by itself.
 */
import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import type { RedisLink } from '../redis/connection.ts';
import { RedisTimeoutError } from '../redis/errors.ts';
import type { RedisClient } from '../redis/open-connection.ts';
import { beforeDeadline } from '../redis/request-wait.ts';

/** For the answer to one attempt; then this process counts it. */
const REDIS_WAIT_MS = 250;

export interface RequestLimiter {
  /** Takes one attempt. Resolves with null, or with the seconds to wait if none is left. */
  consume(id: string): Promise<number | null>;
  /** Takes none. Resolves with null, or with the seconds to wait if none is left. */
  wait(id: string): Promise<number | null>;
}

export interface RequestLimiterOptions {
  readonly name: string;
  readonly points: number;
  readonly windowSeconds: number;
  /** Null if there is no Redis: then this process counts alone. */
  readonly redis: Pick<RedisLink, 'client' | 'isUp'> | null;
}

/** Nothing is counted before somebody fails, so the library is loaded by the first use of a limit. */
export function createRequestLimiter(options: RequestLimiterOptions): RequestLimiter {
  let opened: Promise<RequestLimiter> | null = null;
  const open = (): Promise<RequestLimiter> => (opened ??= openLimiter(options));
  return {
    consume: async (id) => (await open()).consume(id),
    wait: async (id) => (await open()).wait(id),
  };
}

async function openLimiter({ name, points, windowSeconds, redis }: RequestLimiterOptions): Promise<RequestLimiter> {
  const { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } = await import('rate-limiter-flexible');
  const window = { points, duration: windowSeconds, keyPrefix: `evalgate:limit:${name}` };
  const memory = new RateLimiterMemory(window);
  const sharedBy = (storeClient: RedisClient): RateLimiterAbstract =>
    new RateLimiterRedis({
      ...window,
      storeClient,
      insuranceLimiter: memory,
      // An address that used up its attempts costs Redis nothing until its window ends.
      inMemoryBlockOnConsumed: points + 1,
      rejectIfRedisNotReady: true,
    });
  let shared: { readonly client: RedisClient; readonly limiter: RateLimiterAbstract } | null = null;
  const limiter = (): RateLimiterAbstract => {
    // R6: after one timeout no further request waits for Redis.
    if (redis?.isUp() !== true) return memory;
    const { client } = redis;
    // The link goes over to another client when its secrets change.
    if (shared?.client !== client) shared = { client, limiter: sharedBy(client) };
    return shared.limiter;
  };
  const answered = async <T>(ask: (by: RateLimiterAbstract) => Promise<T>): Promise<T> => {
    try {
      return await beforeDeadline(ask(limiter()), REDIS_WAIT_MS);
    } catch (error) {
      if (error instanceof RedisTimeoutError) return await ask(memory);
      throw error;
    }
  };
  return {
    consume: async (id) => {
      try {
        await answered((by) => by.consume(id));
        return null;
      } catch (rejection) {
        if (!(rejection instanceof RateLimiterRes)) throw rejection;
        return secondsUntil(rejection);
      }
    },
    wait: async (id) => {
      const used = await answered((by) => by.get(id));
      return used === null || used.consumedPoints < points ? null : secondsUntil(used);
    },
  };
}

function secondsUntil({ msBeforeNext }: RateLimiterRes): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
