/** A client that ends is followed by another one, whatever it was doing; and `/readyz` says so while Redis is not there. */
import { expect, test, vi } from 'vitest';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { forFile, forTest } from '../support/opened.ts';
import { cutSubscribers, withClient } from '../support/redis/client.ts';
import { ScriptedSentinel } from '../support/redis/scripted-sentinel.ts';
import { launchRedis, onHost } from '../support/redis/server.ts';
import { redisSource } from '../support/redis/source.ts';
import { spawnCluster } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { dependency, redisIsWell, WITHIN } from '../support/world.ts';

const redis = await forFile(onHost(await redisSource(), 1, (host, [port = 0]) => launchRedis(host, port)));

/** The kinds of address, each with a proxy before every server, and what ends its connections. */
interface Reached {
  readonly url: string;
  readonly proxies: readonly TcpProxy[];
  readonly sentinel: ScriptedSentinel | null;
}

async function openSingle(): Promise<Reached> {
  const proxy = await forTest(TcpProxy.start(redis.url));
  return { url: proxy.url, proxies: [proxy], sentinel: null };
}

async function openSentinel(): Promise<Reached> {
  const proxy = await forTest(TcpProxy.start(redis.url));
  const sentinel = await forTest(ScriptedSentinel.start(proxy.url));
  return { url: sentinel.url, proxies: [proxy], sentinel };
}

const seen = (check: () => void | Promise<void>): Promise<void> => vi.waitFor(check, WITHIN);

const isAway = (gateway: TestGateway): Promise<void> =>
  seen(async () => expect(await dependency(gateway, 'redis-state')).toMatch(/^degraded/));

type Stage = (gateway: TestGateway, reached: Reached) => Promise<void>;

/** Connections end one after the other, as soon as they say anything. */
const inHandshake: Stage = async (gateway, { proxies }) => {
  for (const proxy of proxies) {
    proxy.reset();
    proxy.resetPeers();
  }
  await isAway(gateway);
  for (const proxy of proxies) proxy.heal();
};

/** Connections are ended as they come, without a word. */
const whileOpening: Stage = async (gateway, { proxies }) => {
  for (const proxy of proxies) proxy.cut();
  await isAway(gateway);
  for (const proxy of proxies) proxy.heal();
};

const whenReady: Stage = (_gateway, { proxies }) => {
  for (const proxy of proxies) proxy.resetPeers();
  return Promise.resolve();
};

/** The system refuses connections, so that clients wait between two tries. */
const betweenTries: Stage = async (gateway, { proxies }) => {
  for (const proxy of proxies) await proxy.refuse();
  await isAway(gateway);
  for (const proxy of proxies) await proxy.listen();
};

const aSentinelIsAsked: Stage = async (gateway, { proxies, sentinel }) => {
  await seen(() => expect(sentinel?.listening).toBeGreaterThan(0));
  sentinel?.hold();
  for (const proxy of proxies) proxy.resetPeers();
  // Commands of both roles, and messages of both.
  await seen(() => expect(sentinel?.waiting).toBeGreaterThanOrEqual(4));
  sentinel?.announce();
  await isAway(gateway);
  sentinel?.release();
};

test.each<[stage: string, kind: string, open: () => Promise<Reached>, run: Stage]>([
  ['in the handshake', 'single', openSingle, inHandshake],
  ['as they open', 'single', openSingle, whileOpening],
  ['when they are ready', 'single', openSingle, whenReady],
  ['between two tries', 'single', openSingle, betweenTries],
  ['in the handshake', 'Sentinel', openSentinel, inHandshake],
  ['as they open', 'Sentinel', openSentinel, whileOpening],
  ['when they are ready', 'Sentinel', openSentinel, whenReady],
  ['between two tries', 'Sentinel', openSentinel, betweenTries],
  ['while a Sentinel is asked and announces another primary', 'Sentinel', openSentinel, aSentinelIsAsked],
])('connections that end %s come back: %s', async (_stage, _kind, open, run) => {
  const reached = await open();
  const gateway = await forTest(startTestGateway({ env: { REDIS_URL: reached.url } }));
  await redisIsWell(gateway);
  const key = await gateway.issueKey();
  await run(gateway, reached);
  await redisIsWell(gateway);
  // That a connection was reset is noticed a moment later.
  await seen(async () => expect((await gateway.get('/v2/key', { key })).status).toBe(200));
});

test('a Sentinel that is down costs nothing, and ioredis writes nothing of it to the standard error', async () => {
  const written = [vi.spyOn(console, 'error'), vi.spyOn(console, 'warn')];
  const sentinel = await forTest(ScriptedSentinel.start(redis.url));
  const gone = await ScriptedSentinel.start(redis.url);
  await gone.close();
  const both = `${gone.url.replace('/main', '')},${new URL(sentinel.url).host}/main?sentinelPassword=none`;
  const gateway = await forTest(startTestGateway({ env: { REDIS_URL: both } }));
  await redisIsWell(gateway);
  await seen(() => expect(sentinel.listening).toBe(2));
  expect(written.flatMap((one) => one.mock.calls)).toEqual([]);
});

test('the connections of a Cluster come back when all of its nodes end them at once', async () => {
  const cluster = await forTest(spawnCluster({ isDurable: true }));
  const gateway = await forTest(startTestGateway({ env: { REDIS_URL: cluster.url } }));
  await redisIsWell(gateway);
  const key = await gateway.issueKey();
  for (const url of cluster.servers) {
    await withClient(url, (client) => client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'));
  }
  await cutSubscribers(cluster);
  await redisIsWell(gateway);
  await cluster.kill();
  await isAway(gateway);
  await cluster.restart();
  await redisIsWell(gateway);
  expect((await gateway.get('/v2/key', { key })).status).toBe(200);
}, 60_000);
