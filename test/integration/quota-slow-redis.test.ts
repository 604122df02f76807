/** R1, R5, R6: limits while Redis is slow: exact if it answers within `redis.timeout`, the process's share beyond. */
import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { SettableKey } from '../http/common/rate-limit-suite.ts';
import { configFile } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { dependency, nth, quotasAreExact, startFleet, WITHIN } from '../support/gateway-fleet.ts';
import { startRedis } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

/** Twice the default, so that what else the machine does counts for less. */
const TIMEOUT_MS = 500;
const ATTEMPTS = 3;
/** In the log line of a gateway that goes on with its share. */
const OUTAGE = 'quotas: this process goes on with its share';

let opened: AsyncDisposableStack | null = null;
afterEach(async () => {
  await opened?.disposeAsync();
  opened = null;
});

interface DistantGateway {
  readonly gateway: TestGateway;
  /** Between it and Redis. */
  readonly proxy: TcpProxy;
}

function setDelay(proxy: TcpProxy, delayMs: number): void {
  proxy.delay('upstream', delayMs / 2);
  proxy.delay('downstream', delayMs / 2);
}

/** A gateway per delay, the milliseconds from a command to its reply; and a key that one more gateway has made. */
async function startAt(delaysMs: readonly number[]) {
  const stack = new AsyncDisposableStack();
  opened = stack;
  const redis = await startRedis();
  stack.defer(() => redis.close());
  const fleet = await startFleet(redis.url, { size: 1 });
  stack.defer(() => fleet.close());
  const file = configFile(`{redis: {timeout: ${TIMEOUT_MS}ms}, upstream: {breakerPercent: null, retryPercent: 0}}`);
  const distant: DistantGateway[] = [];
  for (const delayMs of delaysMs) {
    const proxy = await TcpProxy.start(redis.url);
    stack.defer(() => proxy.close());
    const gateway = await fleet.join({ env: { REDIS_URL: proxy.url, CONFIG_FILE: file } });
    await quotasAreExact(gateway);
    setDelay(proxy, delayMs);
    distant.push({ gateway, proxy });
  }
  return { distant, gateways: distant.map(({ gateway }) => gateway), key: new SettableKey(nth(fleet.gateways, 0)) };
}

async function statusesOneByOne(key: SettableKey, gateway: TestGateway, count: number): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i += 1) statuses.push((await key.ask(gateway)).status);
  return statuses;
}

async function statusesOfBurst(key: SettableKey, gateways: readonly TestGateway[], count: number) {
  const replies = await Promise.all(Array.from({ length: count }, (_, i) => key.ask(gateways[i % gateways.length])));
  return replies.map(({ status }) => status);
}

const admittedOf = (statuses: readonly number[]): number => statuses.filter((status) => status === 200).length;

/** A gateway learns by a request that Redis decides again. */
async function decidesInRedis(key: SettableKey, gateway: TestGateway): Promise<void> {
  await vi.waitFor(async () => {
    await key.ask(gateway);
    expect(await dependency(gateway, 'quota')).toMatch(/^ok/);
  }, WITHIN);
}

/** How many requests are admitted, of two bursts and of some one by one, at all gateways. */
async function admittedOfMany(key: SettableKey, gateways: readonly TestGateway[], perMinute: number): Promise<number> {
  await key.setLimits({ perMinute, perHour: 1000 }, randomUUID());
  await Promise.all(gateways.map((gateway) => key.look(gateway)));
  const burst = statusesOfBurst(key, gateways, perMinute + 8);
  // Calls to Redis are under way then.
  await nth(gateways, 0).admin('GET', '/livez');
  const statuses = await Promise.all([
    burst,
    statusesOfBurst(key, gateways, perMinute + 8),
    ...gateways.map((gateway) => statusesOneByOne(key, gateway, 4)),
  ]);
  return admittedOf(statuses.flat());
}

describe.each([
  { delaysMs: [0, 300], limits: [1, 5, 40] },
  { delaysMs: [300, 300], limits: [5, 40] },
  { delaysMs: [0, 180, 260, 300], limits: [1, 40] },
])(`gateways $delaysMs ms away from Redis, which may take ${TIMEOUT_MS} ms`, ({ delaysMs, limits }) => {
  test.each(limits)('R1, R6: together admit exactly %i', async (perMinute) => {
    const { key, gateways } = await startAt(delaysMs);
    const outages = () => gateways.flatMap(({ logLines }) => logLines).filter((line) => line.includes(OUTAGE));
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const before = outages().length;
      const admitted = await admittedOfMany(key, gateways, perMinute);
      // R6: limits are exact while Redis answers in time, which it may not on a machine that is overloaded.
      if (outages().length > before && attempt < ATTEMPTS) {
        for (const gateway of gateways) await decidesInRedis(key, gateway);
        continue;
      }
      expect({ admitted, outages: outages().slice(before) }).toEqual({ admitted: perMinute, outages: [] });
      return;
    }
  });
});

test('R5, R6: a gateway too far away admits its share once and reports it; it is exact again when Redis is near', async () => {
  const { key, gateways, distant } = await startAt([0, 0]);
  const [near, far] = [nth(gateways, 0), nth(gateways, 1)];
  await key.setLimits({ perMinute: 120, perHour: 1000 });
  expect((await key.look(far)).status).toBe(200);
  for (const { gateway, proxy } of distant) if (gateway === far) setDelay(proxy, 2 * TIMEOUT_MS);
  expect(admittedOf(await statusesOfBurst(key, [near], 150))).toBe(120);
  // There are three gateways.
  for (const share of [40, 0, 0, 0]) expect(admittedOf(await statusesOfBurst(key, [far], 60))).toBe(share);
  expect(await dependency(far, 'quota')).toBe(
    'degraded: Redis does not decide: this process goes on with its share, one of 3',
  );
  expect((await far.admin('GET', '/metrics')).text).toMatch(/^evalgate_quota_exact 0$/m);
  expect(await dependency(near, 'quota')).toBe('ok: exact over all processes');
  for (const { proxy } of distant) proxy.heal();
  await quotasAreExact(far);
  expect(admittedOf(await statusesOneByOne(key, far, 3))).toBe(0);
  await key.setLimits({ perMinute: 165, perHour: 1000 });
  expect(admittedOf(await statusesOfBurst(key, gateways, 20))).toBe(5);
});
