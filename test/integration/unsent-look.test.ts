/** A change that Redis has made, after which the connection goes: nobody may be told that it was not made. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MaintenanceState } from '../../src/cache/maintenance.ts';
import { RedisMaintenance } from '../../src/cache/redis-maintenance.ts';
import { RedisPurgeLog } from '../../src/cache/redis-purge-log.ts';
import { RedisTimes } from '../../src/cache/redis-times.ts';
import { AdjustableTimes, DEFAULT_TIMES } from '../../src/cache/times.ts';
import { NotSentError, openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let link: RedisLink;
beforeEach(async () => {
  redis = await startRedis();
  link = openRedis({ url: redis.url, role: 'state' });
  await linkUp(link);
});
afterEach(async () => {
  await link.close();
  await redis.close();
});

const UNSENT = new NotSentError('the state Redis does not answer');
const look = () => Promise.reject(UNSENT);

test.each([
  ['times', () => new RedisTimes({ redis: link, times: timesOf(), look }).set('list', { freshMs: 1 })],
  ['maintenance', () => maintenance().begin(1000, 'alice')],
  ['a purge', () => new RedisPurgeLog({ redis: link, look }).purge(['all'], 'hard')],
] as const)('%s that were changed before the connection went count as sent', async (_, change) => {
  const error: unknown = await change().then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toHaveProperty('cause', UNSENT);
  expect(error).not.toBeInstanceOf(NotSentError);
});

function timesOf(): AdjustableTimes {
  return new AdjustableTimes(DEFAULT_TIMES);
}

function maintenance(): RedisMaintenance {
  return new RedisMaintenance({ redis: link, state: new MaintenanceState(new ManualClock()), look });
}
