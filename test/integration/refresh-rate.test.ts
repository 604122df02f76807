/** `cache.refreshRate` of two gateways over one Redis: a copy that both hold is renewed by one call, at the rate of both together. */
import { expect, test, vi } from 'vitest';
import { startTestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { forTest } from '../support/opened.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { createStoreServer } from '../support/store-server.ts';

const IDS = Array.from({ length: 20 }, (_, index) => `ev_${index}`);

test.each(['soft', 'hard'])(
  '%s: each record that both have read costs one call, and is fresh at both',
  async (mode) => {
    const redis = await forTest(startRedis());
    const store = await forTest(createStoreServer());
    const clock = new ManualClock();
    const env = { REDIS_URL: redis.url, CACHE_EVALUATION_FRESH: '24h', CACHE_REFRESH_RATE: '100' };
    const options = { clock, store, env };
    const gateways = [await forTest(startTestGateway(options)), await forTest(startTestGateway(options))] as const;
    const key = await gateways[0].issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });
    const readAll = async (): Promise<readonly string[]> => {
      const replies = await Promise.all(
        gateways.flatMap((gateway) => IDS.map((id) => gateway.get(`/v2/calls/${id}`, { key }))),
      );
      return replies.map(({ text, headers }) => `${/version \d/.exec(text)?.[0]}, ${String(headers['cache-status'])}`);
    };
    const put = (version: number) =>
      store.put({ evaluations: IDS.map((_id) => anEvaluation({ _id, title: `version ${version}` })) });
    put(1);
    await readAll();
    clock.advance(1000);
    store.forget();
    put(2);
    const changes = IDS.map((evaluation) => ({ evaluation, workspace: WORKSPACE_A }));
    expect(await gateways[0].admin('POST', '/api/changes', { mode, changes })).toMatchObject({ status: 200 });
    await store.waitForCalls(IDS.length);
    // The last ones may still be on their way from Redis: whoever reads then, waits for them.
    await vi.waitFor(async () => {
      for (const answer of await readAll()) expect(answer).toMatch(/^version 2, evalgate; hit; ttl=\d+$/);
    });
    expect(store.calls()).toBe(IDS.length);
  },
);
