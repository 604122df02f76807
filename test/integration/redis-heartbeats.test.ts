/** The commands that a process sends to Redis while nothing happens, and what it finds out by them. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Sharing } from '../../src/cache/what-if/sharing.ts';
import { RedisLink } from '../../src/redis/connection.ts';
import { type InstanceInfo, Instances } from '../../src/redis/instances.ts';
import { RedisSubscriber } from '../../src/redis/pubsub.ts';
import { HurriedTimers } from '../support/hurried-timers.ts';
import { forFile } from '../support/opened.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { monitorRedis, type RedisMonitor } from '../support/redis/monitor.ts';
import { launchRedis, onHost } from '../support/redis/server.ts';
import { redisSource } from '../support/redis/source.ts';
import { spawnCluster, type TestRedis } from '../support/redis.ts';
import { Watched } from '../support/watched.ts';

const TIMEOUT_MS = 5000;
const SOON = { timeout: 15_000 };

const redis = await forFile(onHost(await redisSource(), 1, (host, [port = 0]) => launchRedis(host, port)));
const raw = await connectWhenUp(redis.url);
afterAll(() => raw.disconnect());
beforeEach(() => raw.flushall());

async function openLink(url = redis.url): Promise<RedisLink> {
  const link = new RedisLink({ url, role: 'state', timeoutMs: TIMEOUT_MS });
  onTestFinished(() => link.close());
  await expect.poll(() => link.isUp() && link.subscriber.isUp(), SOON).toBe(true);
  return link;
}

async function monitor(...urls: readonly string[]): Promise<RedisMonitor> {
  const found = await monitorRedis(...urls);
  onTestFinished(() => found.close());
  return found;
}

describe('the probes of a link that is used all the time', () => {
  afterEach(() => void vi.useRealTimers());

  test.each([
    ['one server', /^get \S+:trial:probe/, false, (): Promise<TestRedis> => Promise.resolve(redis)],
    ['a Cluster, of which one node says nothing of the others', /^cluster info/, true, () => spawnCluster()],
  ] as const)('%s', async (_what, probe, areProbesSent, start) => {
    const server = await start();
    if (server !== redis) onTestFinished(() => server.close());
    // Before it is opened, so that all of its timers are faked.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const link = await openLink(server.url);
    const found = await monitor(...server.servers);
    for (let command = 0; command < 10; command += 1) {
      await link.run((client) => client.get('any'));
      await vi.advanceTimersByTimeAsync(900);
    }
    await link.run((client) => client.get('last'));
    await expect.poll(() => found.commands.some(([, key]) => key === 'last'), SOON).toBe(true);
    const probes = found.commands.filter((words) => probe.test(words.join(' ').toLowerCase()));
    expect(probes.length > 0).toBe(areProbesSent);
  });
});

describe('the heartbeat of a process', () => {
  const INSTANCES = 'evalgate:{members}';
  const BEATS = 'evalgate:{members}:beats';
  const VANISHED = 'evalgate:{members}:vanished';
  const ABOUT: InstanceInfo = {
    host: 'here',
    pid: 1,
    version: '0',
    startedAtMs: 0,
    status: 'ready',
    store: 'store',
    clockAheadMs: 0,
    forgetsPurges: true,
    usesJournal: true,
  };

  async function open() {
    const link = await openLink();
    const instances = new Instances({ link, about: ABOUT, atLeast: 1 });
    onTestFinished(() => instances.close());
    const beat = async (status: InstanceInfo['status'] = 'ready'): Promise<void> => {
      const before = await raw.zscore(BEATS, instances.id);
      instances.setStatus(status);
      await expect.poll(() => raw.zscore(BEATS, instances.id), SOON).not.toBe(before);
    };
    await beat();
    return { instances, beat };
  }

  test('finds those that have not been heard of for ten seconds, and remembers them', async () => {
    const { instances, beat } = await open();
    await raw.hset(INSTANCES, { gone: JSON.stringify(ABOUT), there: JSON.stringify(ABOUT) });
    await raw.zadd(BEATS, Date.now() - 11_000, 'gone');
    await raw.zadd(BEATS, Date.now() - 5000, 'there');
    await beat();
    const listed = (): readonly string[] => instances.list().map(({ id }) => id);
    await expect.poll(listed, SOON).toEqual([instances.id, 'there'].toSorted());
    expect(await raw.hkeys(INSTANCES)).toEqual(expect.arrayContaining([instances.id, 'there']));
    expect([await raw.hlen(INSTANCES), await raw.zrange(VANISHED, '0', '-1')]).toEqual([2, ['gone']]);
    expect(await instances.known([])).toEqual([instances.id, 'gone', 'there'].toSorted());
  });

  test('takes a process that comes back off those that vanished', async () => {
    const { instances, beat } = await open();
    await raw.multi().zrem(BEATS, instances.id).hdel(INSTANCES, instances.id).exec();
    await raw.zadd(VANISHED, Date.now(), instances.id);
    await raw.zadd(VANISHED, Date.now(), 'gone');
    await beat();
    expect(await raw.zrange(VANISHED, '0', '-1')).toEqual(['gone']);
  });

  test('announces a report only if it has changed', async () => {
    const { beat } = await open();
    const found = await monitor(redis.url);
    const announced = () =>
      found.commands.filter(([name, channel]) => name === 'PUBLISH' && channel === 'evalgate:channel:members').length;
    await beat('draining');
    await expect.poll(announced, SOON).toBe(1);
    for (let times = 0; times < 3; times += 1) await beat('draining');
    await raw.echo('over');
    await expect.poll(() => found.commands.some(([name]) => name === 'echo'), SOON).toBe(true);
    expect(announced()).toBe(1);
  });

  test('keeps what is in use from expiring, once per hour', async () => {
    const { instances, beat } = await open();
    const names = [BEATS, INSTANCES];
    const ttls = (): Promise<number[]> => Promise.all(names.map((name) => raw.ttl(name)));
    const month = 31 * 24 * 3600;
    expect(Math.min(...(await ttls()))).toBeGreaterThan(month - 60);
    for (const name of names) await raw.expire(name, 100);
    await beat();
    expect(Math.max(...(await ttls()))).toBeLessThanOrEqual(100);
    await raw.zadd(BEATS, Date.now() - 3_600_000, instances.id);
    await beat();
    expect(Math.min(...(await ttls()))).toBeGreaterThan(month - 60);
  });
});

describe('the report of what a process has seen', () => {
  async function open() {
    const [link, timers, watched] = [await openLink(), new HurriedTimers(), new Watched()];
    let isRefused = false;
    const sharing = new Sharing({
      clock: watched.clock,
      timers,
      link: {
        kind: 'single',
        subscriber: link.subscriber,
        isUp: () => true,
        run: async (send) => {
          if (isRefused) throw new Error('refused');
          return link.run(send);
        },
      },
      store: 'store',
      self: 'self',
      peers: () => ['self'],
      simulator: { add: () => undefined, addAll: () => undefined, countUnsampled: () => undefined, levels: () => [] },
      report: () => watched.whatIf.report(),
      onBroken: () => undefined,
    });
    onTestFinished(() => sharing.close());
    /** Whether one is published within so many quarters of a second. */
    const publishes = async (quarters: number): Promise<boolean> => {
      await raw.del(NAME);
      for (let quarter = 0; quarter < quarters; quarter += 1) timers.elapse(250);
      await link.run((client) => client.get(NAME));
      return (await raw.exists(NAME)) === 1;
    };
    const refuse = (refused: boolean): void => {
      isRefused = refused;
    };
    return { publishes, refuse, read: () => watched.read('any') };
  }
  const NAME = 'evalgate:{what-if-store}:self';

  test('is published each second with news, and every five seconds without', async () => {
    const { publishes, read } = await open();
    expect([await publishes(3), await publishes(1)]).toEqual([false, true]);
    expect([await publishes(15), await publishes(1)]).toEqual([false, true]);
    read();
    expect([await publishes(3), await publishes(1)]).toEqual([false, true]);
    expect(await publishes(4)).toBe(false);
  });

  test('is published again if Redis did not take it', async () => {
    const { publishes, refuse, read } = await open();
    expect(await publishes(4)).toBe(true);
    read();
    refuse(true);
    expect(await publishes(4)).toBe(false);
    refuse(false);
    expect(await publishes(4)).toBe(true);
  });
});

/** With faked timers `expect.poll` moves the time on, and this does not. */
async function untilIt(isWanted: boolean, isUp: () => boolean): Promise<void> {
  for (const beganAtMs = performance.now(); isUp() !== isWanted;) {
    if (performance.now() - beganAtMs > SOON.timeout) throw new Error(`It is not ${isWanted ? 'up' : 'down'}.`);
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

describe('the subscriber', () => {
  test('is down if its message to itself does not arrive, whatever becomes of the command', async () => {
    const options = {
      connect: () => new Redis(redis.url, { retryStrategy: () => null }),
      greet: () => Promise.resolve(),
      servers: () => [],
      timeoutMs: 50,
    };
    const deaf = new RedisSubscriber({ ...options, publish: () => Promise.resolve(1) });
    onTestFinished(() => deaf.close());
    const down = new Promise<Error>((resolve) => void deaf.onDown(resolve));
    expect((await down).message).toMatch(/did not answer within/);
    expect(deaf.isUp()).toBe(false);
  });

  test('hears again as soon as its link is up: before, its message could not be sent', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const link = await openLink();
    await raw.call('CLIENT', 'KILL', 'TYPE', 'normal');
    await untilIt(false, () => link.isUp());
    await expect(link.subscriber.ping()).rejects.toThrow('The connection to Redis is closed.');
    expect(link.subscriber.isUp()).toBe(false);
    // The link connects again, and the subscriber's own next try is not due yet.
    await vi.advanceTimersByTimeAsync(100);
    await untilIt(true, () => link.isUp() && link.subscriber.isUp());
  });

  test('hears what it listens to since it began to go over to another connection', async () => {
    const link = await openLink();
    const { subscriber } = link;
    const heard: string[] = [];
    const { promise: isOver, resolve } = Promise.withResolvers<void>();
    let greeted = 0;
    const connect = (): Redis => {
      const client = new Redis(redis.url, { retryStrategy: () => null });
      client.once('end', resolve);
      return client;
    };
    const greet = (): Promise<void> => {
      greeted += 1;
      // Once the new connection has sent which channels it subscribes to, and before it is in use.
      setImmediate(() => subscriber.listen('late', (message) => heard.push(message)));
      return Promise.resolve();
    };
    await subscriber.replace({ connect, greet });
    expect(greeted).toBe(1);
    await link.run((client) => client.publish('late', 'news'));
    await expect.poll(() => heard, SOON).toEqual(['news']);
    subscriber.close();
    await isOver;
  });
});
