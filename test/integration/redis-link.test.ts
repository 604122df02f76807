import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import type { CommandOutcome } from '../../src/redis/connection.ts';
import { defineScript, runScript, runScriptForBytes } from '../../src/redis/script.ts';
import { isProving } from '../support/prove.ts';
import { linkDown, linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let link: RedisLink;
let told: string[] = [];
beforeEach(async () => {
  redis = await startRedis({ controls: true });
  told = [];
  link = openRedis({
    url: redis.url,
    role: 'state',
    timeoutMs: 200,
    hooks: { onUp: (role) => told.push(`${role} up`), onDown: (role) => told.push(`${role} down`) },
  });
  await linkUp(link);
});
afterEach(async () => {
  await link.close();
  await redis.close();
});

async function timed(run: () => Promise<unknown>): Promise<{ error: unknown; tookMs: number }> {
  const startMs = performance.now();
  const error: unknown = await run().then(
    () => null,
    (reason: unknown) => reason,
  );
  return { error, tookMs: performance.now() - startMs };
}

test('a Redis that can’t be reached is a link that is down: nothing throws, commands reject at once', async () => {
  await redis.kill();
  const reasons: Error[] = [];
  const lost = openRedis({ url: redis.url, role: 'cache', hooks: { onDown: (_, reason) => reasons.push(reason) } });
  await vi.waitFor(() => expect(reasons.length).toBe(1));
  expect(lost.isUp()).toBe(false);
  expect(reasons[0]?.message).toContain('ECONNREFUSED');
  const { error, tookMs } = await timed(() => lost.client.get('a'));
  expect(error).toBeInstanceOf(Error);
  expect(tookMs).toBeLessThan(50);
  await new Promise((resume) => setTimeout(resume, 300));
  expect(reasons.length).toBe(1);
  await lost.close();
});

test('a host that takes connections and never says a word is down too', async () => {
  const sockets: { destroy(): unknown }[] = [];
  const server = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const mute = openRedis({ url: `redis://127.0.0.1:${port}`, role: 'cache', timeoutMs: 100 });
  await vi.waitFor(() => expect(sockets.length).toBeGreaterThan(2), 5000);
  expect(mute.isUp()).toBe(false);
  expect((await timed(() => mute.client.get('a'))).tookMs).toBeLessThan(50);
  await mute.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

test('a Redis that freezes: commands reject in time, the link is down until it goes on', async () => {
  await redis.pause();
  const { error, tookMs } = await timed(() => link.run((client) => client.get('a')));
  expect(error).toMatchObject({ name: 'RedisTimeoutError' });
  expect(tookMs).toBeLessThan(400);
  await linkDown(link);
  await redis.resume();
  await linkUp(link);
  expect(await link.client.set('a', '1')).toBe('OK');
  expect(told).toEqual(['state up', 'state down', 'state up']);
});

test.runIf(isProving)(
  'a connection without an answer for long is dropped for a new one',
  async () => {
    const before = await link.client.client('ID');
    await redis.pause();
    await linkDown(link);
    await new Promise((resume) => setTimeout(resume, 4500));
    await redis.resume();
    await linkUp(link);
    expect(await link.client.client('ID')).not.toBe(before);
  },
  20_000,
);

test('each command is told with its end and how long it took', async () => {
  const ends: [outcome: CommandOutcome, seconds: number][] = [];
  const isWatched = { now: false };
  const watched = openRedis({
    url: redis.url,
    role: 'cache',
    timeoutMs: 200,
    hooks: { onCommand: (_, outcome, seconds) => isWatched.now && ends.push([outcome, seconds]) },
  });
  await linkUp(watched);
  const endsOf = async (run: () => Promise<unknown>): Promise<string[]> => {
    ends.length = 0;
    isWatched.now = true;
    await run().catch(() => undefined);
    isWatched.now = false;
    return [...new Set(ends.map(([outcome]) => outcome))];
  };
  expect(await endsOf(() => watched.run((client) => client.set('a', 'text')))).toEqual(['answered']);
  // Redis doesn't know it yet, so that it is sent twice.
  expect(await endsOf(() => runScript(watched, defineScript('test1', 'return 7'), { keys: ['a'], args: [] }))).toEqual([
    'answered',
  ]);
  expect(await endsOf(() => watched.run((client) => client.lpush('a', '1')))).toContain('refused');
  await redis.pause();
  expect(await endsOf(() => watched.run((client) => client.get('a')))).toContain('timeout');
  expect(Math.max(...ends.map(([, seconds]) => seconds))).toBeGreaterThanOrEqual(0.19);
  await redis.resume();
  await linkUp(watched);
  await redis.kill();
  await linkDown(watched);
  expect(await endsOf(() => watched.run((client) => client.get('a')))).toEqual(['unsent']);
  expect(ends).toEqual([['unsent', 0]]);
  await watched.close();
});

test('a Redis that is killed and started again is up again', async () => {
  await redis.kill();
  await linkDown(link);
  await redis.restart();
  await linkUp(link);
  expect(await link.client.ping()).toBe('PONG');
});

test('a command whose connection breaks is not sent again', async () => {
  await redis.pause();
  const sent = timed(() => link.client.incr('count'));
  const killed = redis.kill();
  expect((await sent).error).toBeInstanceOf(Error);
  await killed;
  await redis.restart();
  await linkUp(link);
  expect(await link.client.get('count')).toBeNull();
});

test('messages arrive, and go on arriving after Redis was lost', async () => {
  const heard: string[] = [];
  const ups = vi.fn<() => void>();
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true));
  link.subscriber.onUp(ups);
  await link.subscriber.subscribe('news', (message) => heard.push(message));
  link.subscriber.listen('more', (message) => heard.push(message));
  await link.client.publish('news', 'one');
  await vi.waitFor(() => expect(heard).toEqual(['one']));
  await redis.restart();
  await vi.waitFor(() => expect(ups).toHaveBeenCalledTimes(1), 5000);
  await linkUp(link);
  await link.client.publish('news', 'two');
  await link.client.publish('more', 'three');
  await vi.waitFor(() => expect(heard).toEqual(['one', 'two', 'three']));
});

test('a listener that ends hears nothing more, others of the channel do', async () => {
  const heard: string[] = [];
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true));
  const end = await link.subscriber.subscribe('news', (message) => heard.push(`first ${message}`));
  const endOther = await link.subscriber.subscribe('news', (message) => heard.push(`other ${message}`));
  end();
  expect(await link.client.publish('news', 'one')).toBe(1);
  await vi.waitFor(() => expect(heard).toEqual(['other one']));
  endOther();
  await vi.waitFor(async () => expect(await link.client.publish('news', 'two')).toBe(0));
});

test('to subscribe rejects where Redis does not confirm it, and leaves no listener', async () => {
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true));
  await redis.pause();
  const { error } = await timed(() => link.subscriber.subscribe('news', () => undefined));
  expect(error).toBeInstanceOf(Error);
  await redis.resume();
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true), 5000);
  await linkUp(link);
  await vi.waitFor(async () => expect(await link.client.publish('news', 'one')).toBe(0));
});

test('the loss of the messages’ connection alone is told', async () => {
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true));
  const heard: string[] = [];
  await link.subscriber.subscribe('news', (message) => heard.push(message));
  const seen: boolean[][] = [];
  link.subscriber.onDown(() => seen.push([link.isUp(), link.subscriber.isUp()]));
  expect(await link.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub')).toBe(1);
  await vi.waitFor(() => expect(seen).toEqual([[true, false]]));
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true), 5000);
  await link.client.publish('news', 'one');
  await vi.waitFor(() => expect(heard).toEqual(['one']));
});

test.each(['redis+sentinel://127.0.0.1:1', 'redis+cluster://', 'http://127.0.0.1:1', 'nonsense'])(
  'an address of another kind is refused: %s',
  (url) => {
    expect(() => openRedis({ url, role: 'state' })).toThrow(TypeError);
  },
);

test('a script runs whether Redis knows it or not', async () => {
  const script = defineScript('test2', 'return {KEYS[1], ARGV[1]}');
  const call = { keys: ['k'], args: [7] };
  expect(await runScript(link, script, call)).toEqual(['k', '7']);
  expect(await runScript(link, script, call)).toEqual(['k', '7']);
  await link.client.script('FLUSH');
  expect(await runScript(link, script, call)).toEqual(['k', '7']);
  expect(await runScriptForBytes(link, script, { keys: ['k'], args: [Buffer.from([255])] })).toEqual([
    Buffer.from('k'),
    Buffer.from([255]),
  ]);
  await link.client.script('FLUSH');
  expect(await runScriptForBytes(link, script, call)).toEqual([Buffer.from('k'), Buffer.from('7')]);
});

test('a script that fails rejects, and is not run again', async () => {
  const script = defineScript('test3', "redis.call('INCR', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')");
  await expect(runScript(link, script, { keys: ['n'], args: [] })).rejects.toThrow('WRONGTYPE');
  expect(await link.client.get('n')).toBe('1');
});
