/** The shared cache in Redis, with all that it needs of a process and no more, at a time that the test moves. */
import { randomUUID } from 'node:crypto';
import { vi } from 'vitest';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { RecordCipher } from '../../../src/cache/redis/encryption.ts';
import { EntryFormat } from '../../../src/cache/redis/entry-format.ts';
import { FlightChannel } from '../../../src/cache/redis/flight-channel.ts';
import { RedisCopies } from '../../../src/cache/redis/redis-copies.ts';
import { RedisSharedCache } from '../../../src/cache/redis/redis-shared-cache.ts';
import { TtlPolicy } from '../../../src/cache/ttl-policy.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { RedisLink } from '../../../src/redis/connection.ts';
import type { CacheNames } from '../../../src/redis/names.ts';
import { FakeTime } from '../flight-world.ts';
import { forFile } from '../opened.ts';
import { purgesAlone } from '../purges.ts';

function onBroken(error: Error): never {
  throw error;
}

export interface ProcessOptions {
  readonly url: string;
  readonly names: CacheNames;
  readonly leaseMs: number;
}

/** For all tests of a file. */
export async function openProcess({ url, names, leaseMs }: ProcessOptions) {
  const link = await forFile(new RedisLink({ url, role: 'cache', timeoutMs: 5000 }));
  await vi.waitUntil(() => link.isUp() && link.subscriber.isUp(), { timeout: 15_000 });
  const time = new FakeTime();
  const cipher = new RecordCipher([]);
  const memory = new MemoryTier({ maxBytes: 1_000_000, clock: time });
  const budget = {
    isOver: false,
    admit: () => !budget.isOver,
    giveBack: vi.fn<() => void>(),
    admitSeen: () => true,
  };
  const log = purgesAlone(time);
  const noteSwept = vi.fn<() => Promise<void>>(() => Promise.resolve());
  const purges = Object.assign(log, { noteSwept });
  const ttl = new TtlPolicy(time, loadConfig({ env: {} }).config.cache.classes);
  const entries = new EntryFormat({ names, cipher, ttl, maxAnswerBytes: 8_000_000, onBroken });
  const channel = await forFile(new FlightChannel({ cache: link, names, timers: time, self: randomUUID(), memory }));
  const guard = { prove: () => null, addEnding: async () => [] };
  const leases = { cache: link, entries, channel, ttl, budget, timers: time, leaseMs };
  const shared = new RedisSharedCache({ leases, purges, guard, clock: time });
  const left = { state: link, cache: link, isOne: true, store: '', stores: () => [] };
  const copies = new RedisCopies({ cache: link, entries, ttl, purges, guard, left, clock: time });
  return { shared, copies, link, time, cipher, memory, budget, log, noteSwept };
}
