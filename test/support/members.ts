import type { RedisLink } from '../../src/redis/connection.ts';
import type { InstanceInfo } from '../../src/redis/instances.ts';
import { createInstances, type Instances } from '../../src/redis/instances.ts';

const ABOUT: InstanceInfo = {
  host: 'gateway-1',
  pid: 4242,
  version: '1.2.3',
  startedAtMs: Date.UTC(2026, 0, 15, 12),
  status: 'ready',
  store: 'test',
};

/** A process's place in the fleet, with beats that a test needn't wait for. */
export function openMembers(link: RedisLink, about: Partial<InstanceInfo> = {}, beatEveryMs = 50): Instances {
  return createInstances({ link, about: { ...ABOUT, ...about }, atLeast: 1, beatEveryMs });
}
