/** Redis and the store are gone, together or from the start: what is known is served, the rest fails clearly and at once. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Fleet } from '../support/fleet.ts';
import type { GatewayProcess } from '../support/process.ts';

const SOON = { timeout: 20_000, interval: 50 };

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.start({ gateways: 0, redis: {}, isRedisProxied: true });
});
afterEach(() => fleet.close());

async function refuse(): Promise<void> {
  await Promise.all([fleet.redisProxy.refuse(), fleet.storeProxy.refuse()]);
}

async function recover(): Promise<void> {
  await Promise.all([fleet.redisProxy.listen(), fleet.storeProxy.listen()]);
}

async function storeState(gateway: GatewayProcess): Promise<readonly [code: number, state: string | undefined]> {
  const { code, dependencies } = await gateway.readiness();
  return [code, dependencies.find(({ name }) => name === 'store')?.status];
}

test('C8, S2: what is in memory is served, what is not is a 500 that says when to come again', async () => {
  const gateway = await fleet.add();
  const key = await gateway.issueKey();
  expect(await gateway.status('/v2/calls/warm', key)).toBe(200);
  await refuse();
  const warm = await gateway.get('/v2/calls/warm', key);
  expect([warm.status, warm.headers.get('cache-status')]).toEqual([
    200,
    expect.stringMatching(/^evalgate; hit; ttl=\d+$/),
  ]);
  const cold = await gateway.get('/v2/calls/cold', key);
  expect([cold.status, Number(cold.headers.get('retry-after')) >= 1, await cold.json()]).toEqual([
    500,
    true,
    { error: { message: 'The evaluation store cannot be reached at the moment. Try again later.' } },
  ]);
  // A single failure is no trouble of the store; three in a row are.
  for (const id of ['cold_2', 'cold_3']) expect(await gateway.status(`/v2/calls/${id}`, key)).toBe(500);
  expect(await storeState(gateway)).toEqual([200, 'degraded']);
  await recover();
  let attempt = 0;
  await vi.waitFor(async () => expect(await gateway.status(`/v2/calls/after_${(attempt += 1)}`, key)).toBe(200), SOON);
});

test('a gateway starts without either, and is well once they are there', async () => {
  await refuse();
  const gateway = await fleet.add();
  expect(await gateway.status('/v2/calls/cold', 'imported-key')).toBe(500);
  await recover();
  const key = await vi.waitFor(() => gateway.issueKey(), SOON);
  await vi.waitFor(async () => expect(await gateway.status('/v2/calls/cold', key)).toBe(200), SOON);
});
