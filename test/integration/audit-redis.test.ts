/** The audit of a fleet over a Redis that freezes and dies. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { attempt } from '../../src/admin/attempt.ts';
import type { Audit } from '../../src/admin/audit.ts';
import { createRedisAudit } from '../../src/admin/redis-audit.ts';
import { systemClock } from '../../src/clock.ts';
import { auditKey } from '../../src/redis/names.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { linkDown, linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const CAPACITY = 20;
const WITHIN = { timeout: 10_000, interval: 25 };

let redis: TestRedis;
const links: RedisLink[] = [];
beforeEach(async () => {
  redis = await startRedis({ controls: true });
});
afterEach(async () => {
  await Promise.all(links.splice(0).map((link) => link.close()));
  await redis.close();
});

async function open(): Promise<{ readonly audit: Audit; readonly link: RedisLink }> {
  const link = openRedis({ url: redis.url, role: 'state', timeoutMs: 100 });
  links.push(link);
  await linkUp(link);
  return { link, audit: createRedisAudit({ link, clock: systemClock, capacity: CAPACITY, sink: () => undefined }) };
}

const change = (target: string) => ({ who: 'ops', action: 'key.revoke', target, from: null, to: null });

async function targets(audit: Audit): Promise<string[]> {
  return (await audit.entries()).map(({ target }) => target).toSorted();
}

test('what is recorded while Redis is frozen stands there once when it goes on, and pushes nothing out', async () => {
  const [one, other] = await Promise.all([open(), open()]);
  await one.audit.record(change('before'));
  await redis.pause();
  // Each write carries all that is unwritten, and all of them run when Redis goes on.
  for (let number = 1; number <= 9; number += 1) {
    await one.audit.record(change(`frozen ${number}`));
    expect(await targets(one.audit)).toHaveLength(number);
  }
  await redis.resume();
  await vi.waitFor(async () => expect(await targets(other.audit)).toHaveLength(10), WITHIN);
  await one.audit.record(change('after'));
  const expected = ['after', 'before', ...Array.from({ length: 9 }, (_, index) => `frozen ${index + 1}`)];
  expect(await targets(one.audit)).toEqual(expected);
  expect(await targets(other.audit)).toEqual(expected);
  expect(await other.link.client.llen(auditKey())).toBe(11);
}, 30_000);

test('an entry that is written but waits for its answer is shown once', async () => {
  const { audit, link } = await open();
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  // Redis has run it, and the answer is on its way.
  const run = vi.spyOn(link, 'run');
  run.mockImplementationOnce(async (send) => {
    await send(link.client);
    await held;
    throw new Error('No answer.');
  });
  const recorded = audit.record(change('a'));
  await vi.waitFor(async () => expect(await link.client.llen(auditKey())).toBe(1), WITHIN);
  const second = audit.record(change('b'));
  expect(await targets(audit)).toEqual(['a', 'b']);
  // Nothing is sent beside what is under way.
  expect(run.mock.calls.length).toBe(2);
  run.mockRestore();
  release();
  await Promise.all([recorded, second]);
  expect(await targets(audit)).toEqual(['a', 'b']);
  expect(await link.client.llen(auditKey())).toBe(2);
});

test('entries of earlier releases, which have no id, are all shown', async () => {
  const { audit, link } = await open();
  const text = JSON.stringify({ at: '2026-01-15T12:00:00.000Z', ...change('old') });
  await link.client.lpush(auditKey(), text, text);
  expect(await targets(audit)).toEqual(['old', 'old']);
});

test('a change that a Redis out of reach was not even sent is told as not made', async () => {
  const { audit, link } = await open();
  await redis.kill();
  await linkDown(link);
  const about = { who: 'ops', action: 'x', target: 't', asked: null };
  await expect(attempt(audit, about, () => link.run((client) => client.set('a', 'b')))).rejects.toHaveProperty(
    'publicMessage',
    expect.stringContaining('so the change was not made'),
  );
  expect(await audit.entries()).toEqual([]);
});
