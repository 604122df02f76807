import type { RedisLink } from '../../src/redis/link.ts';
import type { AboutMember } from '../../src/redis/member.ts';
import { createMembers, type Members } from '../../src/redis/members.ts';

const ABOUT: AboutMember = {
  host: 'gateway-1',
  pid: 4242,
  version: '1.2.3',
  startedAtMs: Date.UTC(2026, 0, 15, 12),
  status: 'ready',
  store: 'test',
};

/** A process's place in the fleet, with beats that a test needn't wait for. */
export function openMembers(link: RedisLink, about: Partial<AboutMember> = {}, beatEveryMs = 50): Members {
  return createMembers({ link, about: { ...ABOUT, ...about }, atLeast: 1, beatEveryMs });
}
