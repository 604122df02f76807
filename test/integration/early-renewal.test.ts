/** Two gateways over one Redis: a copy that is read often at both is renewed early by one call. */
import { expect, test, vi } from 'vitest';
import { startTestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { forTest } from '../support/opened.ts';
import { anEvaluation, EVALUATION_ID } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { createStoreServer } from '../support/store-server.ts';

const UNLIMITED = { perMinute: 1_000_000, perHour: 1_000_000 };

test('one call renews it for both, and none of their readers gets a stale copy', async () => {
  const redis = await forTest(startRedis());
  const store = await forTest(createStoreServer());
  store.put({ evaluations: [anEvaluation()] });
  const clock = new ManualClock();
  const options = { clock, store, env: { REDIS_URL: redis.url, CACHE_EVALUATION_FRESH: '100s' } };
  const gateways = [await forTest(startTestGateway(options)), await forTest(startTestGateway(options))] as const;
  const key = await gateways[0].issueKey(UNLIMITED);
  const readAtBoth = (): Promise<readonly string[]> =>
    Promise.all(
      gateways.map(async (gateway) =>
        String((await gateway.get(`/v2/calls/${EVALUATION_ID}`, { key })).headers['cache-status']),
      ),
    );
  await readAtBoth();
  expect(store.calls('evaluation')).toBe(1);
  const seen = new Set<string>();
  for (let reads = 0; reads < 45; reads += 1) {
    clock.advance(2000);
    for (const status of await readAtBoth()) seen.add(status.replace(/\d+/, 'N'));
  }
  // Jitter takes up to ten of the 100 s, so after 90 s it was due.
  await vi.waitFor(async () => {
    for (const status of await readAtBoth()) expect(status).toMatch(/hit; ttl=(?:[89]\d|100)$/);
  });
  expect(seen).toEqual(new Set(['evalgate; hit; ttl=N']));
  expect(store.calls('evaluation')).toBe(2);
});
