/** Gateways of one fleet whose clocks are minutes apart. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { FaultsWorld } from '../support/faults-world.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const OFF_MS = 5 * 60_000;
const keysSchema = z.object({ keys: z.array(z.object({ keyId: z.string() })) });

let redis: TestRedis;
let world: FaultsWorld;

beforeAll(async () => {
  redis = await startRedis();
  world = await FaultsWorld.start({
    gateways: 2,
    env: { REDIS_URL: redis.url },
    clockOffsetsMs: [-OFF_MS, OFF_MS],
  });
});
afterAll(async () => {
  await world.close();
  await redis.close();
});

async function ask(gateway: number, path: string, key: string): Promise<Response> {
  const response = await fetch(`${world.gateways[gateway]?.publicUrl}${path}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await response.arrayBuffer();
  return response;
}

test('what one has cached the other serves, of an age that is none below 0', async () => {
  const key = await world.first.issueKey();
  for (const [first, second] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const path = `/v2/calls/by_${first}`;
    expect((await ask(first, path, key)).status).toBe(200);
    const later = await ask(second, path, key);
    expect([later.status, later.headers.get('age')?.match(/^\d+$/)?.length]).toEqual([200, 1]);
    expect(later.headers.get('cache-control')).toMatch(/^private, max-age=\d+$/);
  }
});

test('R1: a limit holds over both, to the request', async () => {
  const key = await world.first.issueKey({ perMinute: 10 });
  const statuses: number[] = [];
  for (let index = 0; index < 30; index += 1) statuses.push((await ask(index % 2, '/v2/calls/limited', key)).status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(10);
  expect(statuses.slice(10).every((status) => status === 429)).toBe(true);
});

test('C8: a key that is revoked through one is refused by the other', async () => {
  const key = await world.first.issueKey();
  for (const gateway of [0, 1]) expect((await ask(gateway, '/v2/calls/revoked', key)).status).toBe(200);
  const { keys } = keysSchema.parse(await (await fetch(`${world.first.adminUrl}/api/keys`)).json());
  for (const { keyId } of keys) await fetch(`${world.first.adminUrl}/api/keys/${keyId}`, { method: 'DELETE' });
  let statuses: number[] = [];
  while (statuses.join() !== '403,403') {
    statuses = await Promise.all([0, 1].map(async (gateway) => (await ask(gateway, '/v2/calls/revoked', key)).status));
  }
  expect(statuses).toEqual([403, 403]);
});
