/** Registries as several gateway processes have them: each with connections of its own to one Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock, type Clock } from '../../src/clock.ts';
import type { NewKey } from '../../src/keys/key.ts';
import { createRedisRegistry, type RedisRegistry, type RedisRegistryHooks } from '../../src/keys/redis-registry.ts';
import { openRedis } from '../../src/redis/connection.ts';

export const GRACE_MS = 600_000;

export const NEW_KEY: NewKey = {
  name: 'reporting',
  workspaceIds: ['aaaaaaaa-0000-4000-8000-000000000001'],
  scopes: ['reports.read'],
  expiresAtMs: null,
  limits: { perMinute: null, perHour: null },
};

export interface FleetOptions {
  readonly url: string;
  readonly size?: number;
  readonly clock?: Clock;
  readonly hooks?: RedisRegistryHooks;
}

export interface KeyFleet {
  readonly registries: readonly RedisRegistry[];
  /** The first of them. */
  readonly registry: RedisRegistry;
  close(): Promise<void>;
}

/** Resolves once all of them hear of changes. */
export async function startKeyFleet({
  url,
  size = 1,
  clock = systemClock,
  hooks = {},
}: FleetOptions): Promise<KeyFleet> {
  const members = Array.from({ length: size }, () => {
    const link = openRedis({ url, role: 'state' });
    return { link, registry: createRedisRegistry({ link, clock, graceMs: GRACE_MS, hooks }) };
  });
  const registries = members.map((member) => member.registry);
  const [registry] = registries;
  if (registry === undefined) throw new RangeError('A fleet has at least one process.');
  await Promise.all(registries.map(hears));
  return {
    registries,
    registry,
    close: async () => {
      await Promise.all(registries.map((one) => one.close()));
      await Promise.all(members.map(({ link }) => link.close()));
    },
  };
}

export async function hears(registry: RedisRegistry): Promise<void> {
  await until(() => registry.trust() === 'heard', 10_000);
}

/** Looks once a millisecond; a look that is rejected counts as no. Rejects after that time. */
export async function until(isSo: () => boolean | Promise<boolean>, timeoutMs: number): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  let cause: unknown;
  const look = async (): Promise<boolean> => {
    try {
      return await isSo();
    } catch (error) {
      cause = error;
      return false;
    }
  };
  while (!(await look())) {
    if (performance.now() > untilMs) throw new Error(`Not so within ${timeoutMs} ms: ${isSo.toString()}`, { cause });
    await sleep(1);
  }
}
