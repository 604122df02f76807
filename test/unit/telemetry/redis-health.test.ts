/** What the log says of a Redis that refuses changes while its connection comes and goes. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createLogger } from '../../../src/log/logger.ts';
import { NotSentError } from '../../../src/redis/connection.ts';
import { Health } from '../../../src/telemetry/health.ts';
import { RedisHealth } from '../../../src/telemetry/redis-health.ts';
import { systemTimers } from '../../../src/timers.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const lineSchema = z.object({ msg: z.string() });

test('a connection that comes back to a read-only Redis says nothing of changes until a heartbeat is taken', () => {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } });
  const clock = new ManualClock();
  const health = new Health({ clock, logger });
  const redis = new RedisHealth({ health, logger, clock, timers: systemTimers, isOne: true, siblings: null });
  for (const role of ['state', 'cache'] as const) redis.onConnectivity(role, 'connected', null);
  redis.onKeySync('connected');
  redis.track({ links: [], processes: () => 1, graceMs: 600_000, hasDemoKeys: false });
  const reply = Object.assign(new Error("READONLY You can't write against a read only replica."), {
    name: 'ReplyError',
  });
  redis.onConnectivity('state', 'disconnected', new NotSentError('Redis does not answer', { cause: reply }));
  redis.onConnectivity('state', 'connected', null);
  const refusals = [
    'Redis refuses changes: limits are per process',
    'keys: Redis refuses changes; none can be issued, changed or revoked',
    'quotas: this process goes on with its share of the limits',
  ];
  const words = (): readonly string[] => lines.map((line) => lineSchema.parse(JSON.parse(line)).msg).toSorted();
  expect(words()).toEqual(refusals);
  expect(redis.isQuotaExact).toBe(false);
  redis.onBeat(null);
  expect(redis.isQuotaExact).toBe(true);
  expect(words()).toHaveLength(2 * refusals.length);
  expect(words()).toContain('Redis takes changes again');
});
