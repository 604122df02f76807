/**
 * R1, R5, R6: limits while Redis is slow: exact as long as it answers in time, the process's share beyond. The limits of
 * requests at whole gateways, 0 to 200 ms away from Redis with the default timeout, are a bar of `npm run prove`; here no
 * timeout is near, so that the load of the machine decides nothing.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { samplesOf } from '../support/admin.ts';
import { systemClock } from '../../src/time/clock.ts';
import { FailoverLimiter } from '../../src/quota/failover.ts';
import { RedisLink } from '../../src/redis/connection.ts';
import { quotaLogKey } from '../../src/redis/names.ts';
import { SettableKey } from '../http/common/rate-limit-suite.ts';
import { dependency, quotasAreExact, startFleet, WITHIN } from '../support/world.ts';
import { forFile, forTest } from '../support/opened.ts';
import { connectToAny } from '../support/redis/client.ts';
import { isOneServer, startRedis } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const TIMEOUT_MS = 30_000;
const PER_HOUR = 1000;

const redis = await forFile(startRedis());
const raw = await connectToAny(redis.url, 5000);
afterAll(() => raw.disconnect());

interface DistantLimiter {
  readonly limiter: FailoverLimiter;
  /** Between it and Redis. */
  readonly proxy: TcpProxy;
  /** Why limits were not exact. */
  readonly outages: readonly unknown[];
}

/** The limiter of a process that is so many milliseconds away from Redis. */
async function limiterAt(delayMs: number, jitterMs = 0): Promise<DistantLimiter> {
  const proxy = await forTest(TcpProxy.start(redis.url));
  const link = await forTest(new RedisLink({ url: proxy.url, role: 'state', timeoutMs: TIMEOUT_MS }));
  await new Promise<void>((resolve) => void link.onUp(resolve));
  const outages: unknown[] = [];
  const hooks = {
    onDegraded: (reason: unknown) => void outages.push(reason),
    onExact: () => undefined,
    onUndecided: () => undefined,
    onForgotten: () => undefined,
  };
  const parts = { self: randomUUID(), link, clock: systemClock, processes: () => 4, hooks };
  const limiter = await forTest(new FailoverLimiter(parts));
  for (const way of ['upstream', 'downstream'] as const) proxy.delay(way, delayMs / 2, jitterMs / 2);
  return { limiter, proxy, outages };
}

/** How many of that many requests at once are admitted, which come to the processes in turn. */
async function burst(limiters: readonly DistantLimiter[], quotaId: string, perMinute: number, count: number) {
  const decide = ({ limiter }: DistantLimiter) => limiter.consume(quotaId, { perMinute, perHour: PER_HOUR });
  const inTurn = Array.from({ length: count }, (_, i) => limiters.filter((_limiter, at) => at === i % limiters.length));
  const decisions = await Promise.all(inTurn.flat().map(decide));
  return decisions.filter(({ admitted }) => admitted).length;
}

describe.skipIf(!isOneServer).each([{ delaysMs: [150, 150] }, { delaysMs: [0, 80, 100, 150] }])(
  'processes $delaysMs ms away from Redis',
  ({ delaysMs }) => {
    test.each([1, 5, 120])('R1, R6: together admit exactly %i, in bursts and one by one', async (perMinute) => {
      const limiters: DistantLimiter[] = [];
      for (const delayMs of delaysMs) limiters.push(await limiterAt(delayMs, delayMs === 80 ? 10 : 0));
      const quotaId = randomUUID();
      const oneByOne = async (limiter: DistantLimiter): Promise<number> => {
        let admitted = 0;
        for (let i = 0; i < 4; i += 1) admitted += await burst([limiter], quotaId, perMinute, 1);
        return admitted;
      };
      const admitted = await Promise.all([
        burst(limiters, quotaId, perMinute, perMinute + 8),
        burst(limiters, quotaId, perMinute, perMinute + 8),
        ...limiters.map(oneByOne),
      ]);
      expect(admitted.reduce((sum, one) => sum + one, 0)).toBe(perMinute);
      expect(limiters.flatMap(({ outages }) => outages)).toEqual([]);
    });
  },
);

test.skipIf(!isOneServer)(
  'R6: no request waits for the answer to an earlier one, so each waits for Redis once',
  async () => {
    const far = await limiterAt(0);
    const quotaId = randomUUID();
    const inRedis = (count: number) =>
      vi.waitFor(async () => expect(await raw.llen(quotaLogKey(quotaId))).toBe(count), WITHIN);
    far.proxy.hold('downstream');
    const bursts: Promise<number>[] = [];
    for (const count of [10, 20, 25]) {
      bursts.push(burst([far], quotaId, 25, 10));
      await inRedis(count);
    }
    far.proxy.release();
    expect(await Promise.all(bursts)).toEqual([10, 10, 5]);
    expect(far.outages).toEqual([]);
  },
);

test.skipIf(!isOneServer)(
  'R5: a connection lost before the answer is reported in plain words, not in those of the client library',
  async () => {
    const { limiter, proxy, outages } = await limiterAt(0);
    const quotaId = randomUUID();
    proxy.hold('downstream');
    const decision = limiter.consume(quotaId, { perMinute: 5, perHour: PER_HOUR });
    await vi.waitFor(async () => expect(await raw.llen(quotaLogKey(quotaId))).toBe(1), WITHIN);
    proxy.resetPeers();
    expect((await decision).admitted).toBe(true);
    expect(outages.map(String)).toEqual(['ConnectionLostError: The connection to Redis is closed.']);
    proxy.release();
  },
);

test.skipIf(!isOneServer)(
  'R5, R6: a gateway too far away admits its share once and reports it; it is exact again when Redis is near',
  async () => {
    const proxy = await forTest(TcpProxy.start(redis.url));
    const fleet = await forTest(startFleet(redis.url));
    const near = fleet.here;
    const far = await fleet.join({ env: { REDIS_URL: proxy.url } });
    await quotasAreExact(far);
    const key = new SettableKey(near);
    const admittedAt = async (gateway: typeof near, count: number): Promise<number> => {
      const replies = await Promise.all(Array.from({ length: count }, () => key.ask(gateway)));
      return replies.filter(({ status }) => status === 200).length;
    };
    await key.setLimits({ perMinute: 120, perHour: PER_HOUR });
    expect((await key.look(far)).status).toBe(200);
    proxy.hold('downstream');
    expect(await admittedAt(near, 150)).toBe(120);
    // There are three gateways.
    for (const share of [40, 0, 0, 0]) expect(await admittedAt(far, 60)).toBe(share);
    expect(await dependency(far, 'quota')).toBe(
      'degraded: Redis does not decide: this process goes on with its share, one of 3',
    );
    expect(await samplesOf(far, 'evalgate_quota_exact')).toEqual({ evalgate_quota_exact: 0 });
    expect(await dependency(near, 'quota')).toBe('ok: exact over all processes');
    proxy.release();
    await quotasAreExact(far);
    // It may have given up its connection for keys meanwhile.
    await vi.waitFor(async () => expect((await key.look(far)).status).toBe(200), WITHIN);
    expect(await admittedAt(far, 3)).toBe(0);
    await key.setLimits({ perMinute: 165, perHour: PER_HOUR });
    expect(await admittedAt(far, 20)).toBe(5);
  },
);
