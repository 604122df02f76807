/** A primary that Sentinels watch: who takes over is found, and the old one is left, dead or alive. */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { isProving } from '../support/prove.ts';
import { connectWhenUp, withClient } from '../support/redis/client.ts';
import { linkDown, linkUp } from '../support/redis-link.ts';
import { spawnSentinels, type TestSentinels } from '../support/redis.ts';
import { evalgate } from '../unit/cli/support.ts';

let group: TestSentinels;
beforeAll(async () => {
  group = await spawnSentinels({ replicas: 1, downAfterMs: 600 });
});
afterAll(async () => {
  await group.close();
});

async function open(url = group.url): Promise<RedisLink> {
  const link = openRedis({ url, role: 'state', timeoutMs: 300 });
  onTestFinished(() => link.close());
  await linkUp(link);
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true), 5000);
  return link;
}

const reportSchema = z.object({
  checks: z.array(z.object({ name: z.string(), status: z.string(), message: z.string() })),
});

async function doctor(url: string): Promise<readonly string[]> {
  const args = ['doctor', '--json', '--admin', 'http://127.0.0.1:1'];
  const { stdout } = await evalgate(args, { env: { REDIS_URL: url } });
  const { checks } = reportSchema.parse(JSON.parse(stdout));
  return checks.filter(({ name }) => name === 'redis').map(({ status, message }) => `${status} ${message}`);
}

test('the doctor asks the Sentinels, and says what is wrong with a name or a password', async () => {
  const { host } = new URL((await group.primary()).url);
  expect(await doctor(group.url)).toContain(`ok REDIS_URL: 3 of 3 Sentinels name the same primary, ${host}`);
  const [unknown] = await doctor(group.url.replace(/\/main$/, '/other'));
  expect(unknown).toMatch(
    /^fail REDIS_URL: the primary other of the Sentinels at .* can't be used \(the Sentinels know no primary of that name\)$/,
  );
  const [refused] = await doctor(group.url.replace('://', '://someone:s3cret@'));
  expect(refused).toMatch(/^fail REDIS_URL: the primary main of the Sentinels at [\d.:, ]* can't be used \(WRONGPASS/);
});

test('of a primary that the Sentinels name and that does not answer, the doctor says which one it is', async () => {
  const url = group.url.replace(/\/main$/, '/gone');
  const hosts = group.url.replace(/^.*:\/\/|\/main$/g, '').split(',');
  const each = (...words: readonly string[]) =>
    Promise.all(hosts.map((host) => withClient(`redis://${host}`, (client) => client.call('SENTINEL', [...words]))));
  await each('MONITOR', 'gone', '127.0.0.1', '1', '2');
  try {
    const [failure, named] = await doctor(url);
    expect(failure).toMatch(/^fail REDIS_URL: the primary gone of the Sentinels at .* can't be used \(ECONNREFUSED\)$/);
    expect(named).toBe('ok REDIS_URL: 3 of 3 Sentinels name the same primary, 127.0.0.1:1');
  } finally {
    await each('REMOVE', 'gone');
  }
});

test('what is no Sentinel is told as such', async () => {
  const { host } = new URL(group.servers[0] ?? '');
  const { stdout } = await evalgate(['doctor', '--json', '--admin', 'http://127.0.0.1:1'], {
    env: { REDIS_URL: `redis+sentinel://${host}/main` },
  });
  expect(stdout).toContain('It is a Redis and no Sentinel: ');
});

test('Redis and its Sentinels each have a password of their own in the address', async () => {
  const hosts = group.url.replace('redis+sentinel://', '').replace('/main', '').split(',');
  const sentinels = await Promise.all(hosts.map((host) => connectWhenUp(`redis://${host}`, 5000)));
  const servers = await Promise.all(group.servers.map((url) => connectWhenUp(url, 5000)));
  const demand = async (user: string, password: string): Promise<void> => {
    for (const one of sentinels) await one.acl('SETUSER', 'default', 'resetpass', user);
    for (const one of servers) {
      await one.config('SET', 'masterauth', password);
      await one.config('SET', 'requirepass', password);
    }
  };
  try {
    await demand('>s3ntinel', 's3rver');
    const withBoth = group.url.replace('://', '://:s3rver@').concat('?sentinelPassword=s3ntinel');
    const link = await open(withBoth);
    expect(await link.client.set('kept', '0')).toBe('OK');
    const [refused] = await doctor(group.url.replace('://', '://:s3rver@'));
    expect(refused).toMatch(/^fail REDIS_URL: .* can't be used \(no Sentinel answers: NOAUTH/);
    expect(JSON.stringify(await doctor(withBoth))).not.toMatch(/s3rver|s3ntinel/);
  } finally {
    await demand('nopass', '');
    for (const one of [...sentinels, ...servers]) one.disconnect();
  }
});

test('a primary that freezes is left for the new one, and never returned to', async () => {
  const link = await open();
  const heard: string[] = [];
  await link.subscriber.subscribe('news', (message) => heard.push(message));
  await link.client.set('kept', '1');
  const old = await group.primary();
  await old.pause();
  await linkDown(link);
  const next = await group.replaced(old);
  const replacedAtMs = performance.now();
  await linkUp(link);
  expect(performance.now() - replacedAtMs).toBeLessThan(5000);
  expect(await link.client.get('kept')).toBe('1');
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true), 5000);
  await withClient(next.url, (client) => client.publish('news', 'after'));
  await vi.waitFor(() => expect(heard).toEqual(['after']));
  await old.resume();
  await link.client.set('kept', '2');
  expect(await withClient(next.url, (client) => client.get('kept'))).toBe('2');
});

// Only after some time the Sentinels make the old one a replica, which can take over in its turn.
test.runIf(isProving)('a primary that dies while a Sentinel is gone too: the others name the new one', async () => {
  const link = await open();
  await vi.waitFor(async () => {
    await link.client.set('kept', '3');
    // Else it may be lost, which is no fault.
    expect(await link.client.wait(1, 100)).toBe(1);
  }, 15_000);
  const old = await group.primary();
  await group.killSentinel(0);
  await old.kill();
  await linkDown(link);
  await group.replaced(old);
  await linkUp(link);
  expect(await link.client.get('kept')).toBe('3');
  expect(await link.client.set('kept', '4')).toBe('OK');
  expect(await doctor(group.url)).toContainEqual(
    expect.stringMatching(/^warn REDIS_URL: 1 of 3 Sentinels do not name the primary/),
  );
});
