/** A process that lived through a fault keeps nothing of it but what it has to remember. */
import { afterEach, expect, test } from 'vitest';
import { GatewayProcess } from '../support/process.ts';
import { startRedis } from '../support/redis.ts';
import { anEvaluation } from '../support/records.ts';
import { createStoreServer } from '../support/store-server.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const FAILED = 60;
/** Those that run by themselves: of connections that are kept for a while, and of what has to be done later. */
const OTHER_TIMERS = 30;

test('calls that failed leave no timers, nor what held them', async () => {
  const [redis, store] = await Promise.all([startRedis(), createStoreServer()]);
  closers.push(
    () => redis.close(),
    () => store.close(),
  );
  const ids = Array.from({ length: 2 * FAILED }, (_, index) => `ev_${index}`);
  store.put({ evaluations: ids.map((id) => anEvaluation({ _id: id })) });
  const env = { REDIS_URL: redis.url, UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, LOG_LEVEL: 'fatal' };
  const gateway = await GatewayProcess.start({ env, isProbed: true });
  closers.push(() => gateway.kill());
  const key = await gateway.issueKey();
  const read = (part: readonly string[]) => Promise.all(part.map((id) => gateway.status(`/v2/calls/${id}`, key)));
  expect(new Set(await read(ids.slice(FAILED)))).toEqual(new Set([200]));
  const before = await gateway.census();
  store.fail(500);
  expect(new Set(await read(ids.slice(0, FAILED)))).toEqual(new Set([500]));
  expect((await gateway.census()).timers).toBeLessThan(before.timers + OTHER_TIMERS);
});
