/** Several whole gateways in front of one store, and over one Redis. */
import { vi } from 'vitest';
import { z } from 'zod';
import { readinessOf } from './admin.ts';
import { startTestGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { type ManualClock, RunningClock } from './manual-clock.ts';
import { createStoreServer } from './store-server.ts';

/** How long a test waits for what another process or Redis has to do. */
export const WITHIN = { timeout: 15_000, interval: 10 };
/** The same if another server has to take over. */
export const FAILOVER = { timeout: 30_000, interval: 25 };

export type GatewayFleet = Awaited<ReturnType<typeof startFleet>>;

interface FleetOptions {
  readonly size?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: ManualClock;
}

const fleetSchema = z.object({ members: z.array(z.object({ status: z.string() })) });

export function nth(gateways: readonly TestGateway[], place: number): TestGateway {
  const gateway = gateways[place];
  if (gateway === undefined) throw new RangeError(`There is no gateway ${place} of ${gateways.length}.`);
  return gateway;
}

/** A dependency on a gateway's `/readyz`: its status and details. */
export async function dependency(gateway: TestGateway, name: string): Promise<string> {
  const found = (await readinessOf(gateway)).of(name);
  return found === undefined ? 'none' : `${found.status}: ${found.detail}`;
}

/** Waits until a gateway reports Redis, and what it hears of keys, as well. */
export async function redisIsWell(gateway: TestGateway): Promise<void> {
  for (const name of ['redis-state', 'redis-cache', 'keys']) await isWell(gateway, name);
}

/** Waits until a gateway reports that quotas are exact again, which it learns by a request or by what it adds to them. */
export async function quotasAreExact(gateway: TestGateway): Promise<void> {
  await redisIsWell(gateway);
  await isWell(gateway, 'quota');
}

async function isWell(gateway: TestGateway, name: string): Promise<void> {
  await vi.waitFor(async () => {
    const status = await dependency(gateway, name);
    if (!status.startsWith('ok')) throw new Error(`${name} is ${status}`);
  }, FAILOVER);
}

async function knows(gateway: TestGateway, count: number): Promise<void> {
  await vi.waitFor(async () => {
    const { members } = fleetSchema.parse((await gateway.admin('GET', '/api/fleet')).json);
    const ready = members.filter(({ status }) => status === 'ready').length;
    if (ready !== count) throw new Error(`${ready} of ${count} gateways are known`);
  }, WITHIN);
}

/** Resolves once each of them knows all others, and that Redis is well. The clock runs unless one is given. */
export async function startFleet(redisUrl: string, options: FleetOptions = {}) {
  const { size = 2, env = {}, clock = new RunningClock() } = options;
  const store = await createStoreServer();
  const gateways: TestGateway[] = [];
  const join = async (more: Omit<TestGatewayOptions, 'store'> = {}): Promise<TestGateway> => {
    const own = { REDIS_URL: redisUrl, ...env, ...more.env };
    const gateway = await startTestGateway({ clock, ...more, store, env: own });
    gateways.push(gateway);
    return gateway;
  };
  for (let i = 0; i < size; i += 1) await join();
  for (const gateway of gateways) {
    await quotasAreExact(gateway);
    await knows(gateway, size);
  }
  return {
    gateways: gateways as readonly TestGateway[],
    store,
    clock,
    join,
    close: async (): Promise<void> => {
      await Promise.all(gateways.map((gateway) => gateway.close()));
      await store.close();
    },
  };
}
