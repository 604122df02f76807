/** The log's lines about a Redis whose connection comes and goes. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createLogger } from '../../../src/log/logger.ts';
import type { Refusal } from '../../../src/redis/refusal.ts';
import { Health } from '../../../src/telemetry/health.ts';
import { RedisHealth } from '../../../src/telemetry/redis-health.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const lineSchema = z.object({ msg: z.string() });
const TRACKED = {
  links: [],
  protection: () => '',
  clockAheadMs: () => 0,
  processes: () => 1,
  graceMs: 600_000,
  hasDemoKeys: false,
  registry: { census: () => ({ known: null, loss: null }) },
  eviction: { state: () => ({ status: 'ok', detail: '' }) as const, losesKeys: null },
  historyLoss: { state: () => ({ status: 'ok', detail: '' }) as const },
};

function start(): { readonly redis: RedisHealth; readonly words: () => readonly string[] } {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } });
  const clock = new ManualClock();
  const health = new Health({ clock, logger });
  const redis = new RedisHealth({ health, logger, clock, isOne: true, siblings: null });
  return { redis, words: () => lines.map((line) => lineSchema.parse(JSON.parse(line)).msg).toSorted() };
}

function connect(redis: RedisHealth): void {
  for (const role of ['state', 'cache'] as const) redis.onConnectivity(role, 'hearing', null);
}

/** A link to the state Redis that refuses changes, or not. */
class RefusingLink {
  readonly role = 'state';
  readonly pendingReason = null;
  readonly downReason = new Error('Redis does not answer');
  refusal: Refusal | null = null;
  #listener: () => void = () => undefined;

  readonly isUp = (): boolean => true;
  readonly servers = (): readonly [] => [];

  onChange(listener: () => void): () => void {
    this.#listener = listener;
    return () => undefined;
  }

  refuse(refusal: Refusal | null): void {
    this.refusal = refusal;
    this.#listener();
  }
}

test('a connection that comes back to a read-only Redis says nothing of changes until it takes them', () => {
  const { redis, words } = start();
  const link = new RefusingLink();
  connect(redis);
  redis.track({ ...TRACKED, links: [link] });
  const reply = "READONLY You can't write against a read only replica.";
  link.refuse({ code: 'READONLY', kind: 'read-only', reply, finding: `is a read-only replica (${reply})` });
  redis.onConnectivity('state', 'alone', null);
  redis.onConnectivity('state', 'hearing', null);
  const refusals = [
    'Redis refuses changes: limits are per process',
    'keys: Redis refuses changes; none can be issued, changed or revoked',
    'quotas: this process goes on with its share of the limits',
  ];
  expect(words()).toEqual(refusals);
  expect(redis.isQuotaExact).toBe(false);
  link.refuse(null);
  expect(redis.isQuotaExact).toBe(true);
  expect(words()).toHaveLength(2 * refusals.length);
  expect(words()).toContain('Redis takes changes again');
});

test('a process that started in an outage never speaks of keys that Redis confirmed, of which there are none', () => {
  const { redis, words } = start();
  redis.track(TRACKED);
  connect(redis);
  expect(words()).toContain('keys: Redis could not be asked since the start; no key is let in until it answers');
  expect(words()).toContain('keys: changes arrive again');
  expect(words().filter((line) => line.includes('confirmed lately'))).toEqual([]);
  redis.onConnectivity('state', 'alone', null);
  expect(words()).toContain('keys: Redis cannot be asked; only keys that it confirmed lately are let in');
});
