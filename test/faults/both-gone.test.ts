/** Redis and the store are gone, together or from the start: what is known is served, the rest fails clearly and at once. */
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { Closers, timedStore } from '../support/faults-world.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { startRedis } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const closers = new Closers();
afterEach(() => closers.close());

const readinessSchema = z.object({
  status: z.string(),
  dependencies: z.array(z.object({ name: z.string(), status: z.string() })),
});

interface World {
  readonly redis: TcpProxy;
  readonly store: TcpProxy;
  readonly env: Readonly<Record<string, string>>;
}

async function openWorld(): Promise<World> {
  const server = await closers.keep(startRedis(), (opened) => opened.close());
  const redis = await closers.keep(TcpProxy.start(server.url), (opened) => opened.close());
  const backend = await closers.keep(timedStore(), (opened) => opened.close());
  const store = await closers.keep(TcpProxy.start(backend.url), (opened) => opened.close());
  return { redis, store, env: { REDIS_URL: redis.url, UPSTREAM_URL: store.url, UPSTREAM_TOKEN: backend.token } };
}

function start({ env }: World): Promise<GatewayProcess> {
  return closers.keep(GatewayProcess.start({ env }), (opened) => opened.kill());
}

async function ask({ publicUrl }: GatewayProcess, path: string, key: string): Promise<Response> {
  return fetch(publicUrl + path, { headers: { authorization: `Bearer ${key}` } });
}

/** What `/readyz` says of each, by name. */
async function readiness({ adminUrl }: GatewayProcess): Promise<{ status: number; by: Map<string, string> }> {
  const response = await fetch(`${adminUrl}/readyz`);
  const { dependencies } = readinessSchema.parse(await response.json());
  return { status: response.status, by: new Map(dependencies.map(({ name, status }) => [name, status])) };
}

test('C8, S2: what is in memory is served, what is not is a 500 that says when to come again', async () => {
  const world = await openWorld();
  const gateway = await start(world);
  const key = await gateway.issueKey();
  expect((await ask(gateway, '/v2/calls/warm', key)).status).toBe(200);
  await Promise.all([world.redis.refuse(), world.store.refuse()]);
  const warm = await ask(gateway, '/v2/calls/warm', key);
  expect([warm.status, /^evalgate; hit; ttl=\d+$/.test(warm.headers.get('cache-status') ?? '')]).toEqual([200, true]);
  const cold = await ask(gateway, '/v2/calls/cold', key);
  expect([cold.status, Number(cold.headers.get('retry-after')) >= 1, await cold.json()]).toEqual([
    500,
    true,
    { error: { message: 'The evaluation store cannot be reached at the moment. Try again later.' } },
  ]);
  const { status, by } = await readiness(gateway);
  expect([status, by.get('store')]).toEqual([200, 'degraded']);
  await Promise.all([world.redis.listen(), world.store.listen()]);
  let recovered = 0;
  for (let index = 0; recovered !== 200; index += 1) {
    recovered = (await ask(gateway, `/v2/calls/after_${index}`, key)).status;
  }
  expect(recovered).toBe(200);
});

test('a gateway starts without either, and is well once they are there', async () => {
  const world = await openWorld();
  await Promise.all([world.redis.refuse(), world.store.refuse()]);
  const gateway = await start(world);
  expect((await readiness(gateway)).status).toBe(200);
  expect((await ask(gateway, '/v2/calls/cold', 'imported-key')).status).toBe(500);
  await Promise.all([world.redis.listen(), world.store.listen()]);
  let issued: string | null = null;
  while (issued === null) issued = await gateway.issueKey().catch(() => null);
  expect((await ask(gateway, '/v2/calls/cold', issued)).status).toBe(200);
});
