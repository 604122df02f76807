/** R6: after one timeout nothing waits for Redis any more, neither for that one nor for another of the same requests. */
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { RedisLink } from '../../src/redis/connection.ts';
import { fileOf } from '../support/files.ts';
import { forFile, forTest } from '../support/opened.ts';
import { startRedis } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { putCalls, startUpstreamGateway } from '../support/upstream-settings.ts';

let proxy: TcpProxy;

const redis = await forFile(startRedis());
beforeEach(async () => {
  proxy = await forTest(TcpProxy.start(redis.url));
});

function nextUp(link: RedisLink): Promise<void> {
  return new Promise((resolve) => {
    const end = link.onUp(() => {
      end();
      resolve();
    });
  });
}

/** A link through the proxy that is up, with the commands that were sent on it. */
async function openLink(timeoutMs: number) {
  const outcomes: string[] = [];
  const onCommand = (_role: string, outcome: string) => void outcomes.push(outcome);
  const link = new RedisLink({ url: proxy.url, role: 'state', timeoutMs, onCommand });
  onTestFinished(() => link.close());
  await nextUp(link);
  return { link, outcomes, get: () => link.run((client) => client.get('any')) };
}

test('while Redis is frozen one command of a request times out, and the next ones are not sent', async () => {
  const { link, outcomes, get } = await openLink(100);
  expect([link.isUp(), await get()]).toEqual([true, null]);
  proxy.blackHole();
  for (let command = 0; command < 5; command += 1) await expect(get()).rejects.toThrow(/answer/);
  expect(outcomes).toEqual(['answered', 'timeout', 'unsent', 'unsent', 'unsent', 'unsent']);
  expect(link.isUp()).toBe(false);
  const up = nextUp(link);
  proxy.resetPeers();
  proxy.heal();
  await up;
  expect(await get()).toBe(null);
});

test('a Redis whose answers all come too late stays away until they come in time', async () => {
  const { link, outcomes, get } = await openLink(100);
  proxy.delay('downstream', 150);
  const ups: string[] = [];
  link.onUp(() => void ups.push('up'));
  await expect(get()).rejects.toThrow('Redis did not answer within 100 ms');
  for (let probe = 0; probe < 3; probe += 1) await expect(link.ping()).rejects.toThrow(/within 100 ms/);
  await expect(get()).rejects.toThrow('the state Redis does not answer');
  expect([ups, outcomes]).toEqual([[], ['timeout', 'unsent']]);
  const up = nextUp(link);
  proxy.heal();
  await up;
  expect(await get()).toBe(null);
});

test.each([
  ['answers none in time', () => proxy.blackHole()],
  ['takes 0.35 s for each', () => proxy.delay('downstream', 350)],
])('a request that causes several commands waits once for a Redis that %s', async (_what, spoil) => {
  const CONFIG_FILE = fileOf('redis: {timeout: 500ms}');
  const gateway = await startUpstreamGateway({}, { env: { REDIS_URL: proxy.url, CONFIG_FILE } });
  const ids = putCalls(gateway, 2);
  expect((await gateway.read(ids[0] ?? '')).status).toBe(200);
  spoil();
  const beganMs = performance.now();
  // The quota, the copy in Redis, its lease, and the copy that is stored: each would take 0.35 s.
  expect((await gateway.read(ids[1] ?? '')).status).toBe(200);
  expect(performance.now() - beganMs).toBeLessThan(900);
  proxy.resetPeers();
  proxy.heal();
});

test('a Redis in doubt is sent nothing until it has answered a probe, and is not reported as down', async () => {
  const { link, outcomes, get } = await openLink(5000);
  const changes: string[] = [];
  link.onDown(() => void changes.push('down'));
  const decided = link.doubt();
  expect(link.isUp()).toBe(false);
  await expect(get()).rejects.toThrow('the state Redis does not answer');
  await decided;
  expect([link.isUp(), await get()]).toEqual([true, null]);
  expect([changes, outcomes]).toEqual([[], ['unsent', 'answered']]);
});

test('each timeout is announced, so that other links of the same requests can be doubted', async () => {
  const [slow, other] = [await openLink(100), await openLink(100)];
  slow.link.onTimeout(() => void other.link.doubt());
  proxy.blackHole();
  await expect(slow.get()).rejects.toThrow('Redis did not answer within 100 ms');
  await expect(other.get()).rejects.toThrow('the state Redis does not answer');
  expect(other.outcomes).toEqual(['unsent']);
});
