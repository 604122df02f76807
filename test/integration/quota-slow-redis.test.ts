/** R1, R6: limits stay exact while Redis is slow but answers within `redis.timeout`. */
import { afterEach, describe, expect, test } from 'vitest';
import { SettableKey } from '../http/common/rate-limit-suite.ts';
import type { TestGateway } from '../support/gateway.ts';
import { dependency, type GatewayFleet, nth, startFleet } from '../support/gateway-fleet.ts';
import { startRedis } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const stack: AsyncDisposableStack[] = [];
afterEach(async () => {
  for (const one of stack.splice(0)) await one.disposeAsync();
});

/** A gateway per delay: the milliseconds from a command to its reply. The key is known to all of them. */
async function startAtDistance(delaysMs: readonly number[]) {
  const opened = new AsyncDisposableStack();
  stack.push(opened);
  const redis = await startRedis();
  opened.defer(() => redis.close());
  const fleet: GatewayFleet = await startFleet(redis.url, { size: 1 });
  opened.defer(() => fleet.close());
  const key = new SettableKey(nth(fleet.gateways, 0));
  const gateways: TestGateway[] = [];
  for (const delayMs of delaysMs) {
    const proxy = await TcpProxy.start(redis.url);
    opened.defer(() => proxy.close());
    gateways.push(await fleet.join({ env: { REDIS_URL: proxy.url } }));
    proxy.delay('upstream', delayMs / 2);
    proxy.delay('downstream', delayMs / 2);
  }
  return { key, gateways };
}

const CASES = [
  { delaysMs: [0, 100], limits: [1, 5, 120] },
  { delaysMs: [150, 150], limits: [5, 120] },
  { delaysMs: [0, 80, 150, 200], limits: [1, 120] },
];

describe.each(CASES)('gateways at $delaysMs ms from Redis', ({ delaysMs, limits }) => {
  test('R1, R6: admit exactly the limit together, in bursts and one by one', async () => {
    const { key, gateways } = await startAtDistance(delaysMs);
    const admitted: number[] = [];
    for (const perMinute of limits) {
      await key.setLimits({ perMinute, perHour: 1000 }, `${key.keyId}-${perMinute}`);
      for (const gateway of gateways) expect((await key.look(gateway)).status).toBe(200);
      // In three bursts at once, a few milliseconds apart, each larger than the limit leaves room for.
      const bursts = Array.from({ length: 2 * perMinute + 12 }, (_, i) => key.ask(gateways[i % gateways.length]));
      const steady = gateways.map(async (gateway) => {
        const statuses: number[] = [];
        for (let i = 0; i < 5; i += 1) statuses.push((await key.ask(gateway)).status);
        return statuses;
      });
      const statuses = [
        ...(await Promise.all(bursts)).map(({ status }) => status),
        ...(await Promise.all(steady)).flat(),
      ];
      admitted.push(statuses.filter((status) => status === 200).length);
    }
    const exact = await Promise.all(gateways.map((gateway) => dependency(gateway, 'quota')));
    expect({ admitted, exact }).toEqual({ admitted: limits, exact: exact.map(() => 'ok: exact over all processes') });
  });
});
