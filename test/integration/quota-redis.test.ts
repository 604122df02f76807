/** The rate limit with quotas in Redis, shared by two gateways; by Redis's own clock. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { forFile } from '../support/opened.ts';
import { describeRateLimit, type QuotaDoor, SettableKey } from '../http/common/rate-limit-suite.ts';
import { type World, startFleet, WITHIN } from '../support/world.ts';
import { connectToAny, namesIn } from '../support/redis/client.ts';
import { monitorRedis } from '../support/redis/monitor.ts';
import { isOneServer, startRedis } from '../support/redis.ts';

const redis = await forFile(startRedis());
const client = await connectToAny(redis.url, 5000);
afterAll(() => client.disconnect());

/** A list of the times of admitted requests in Unix microseconds, the oldest first. */
async function logOf(quotaId: string): Promise<string> {
  const names = await namesIn(client, `evalgate:{quota-*}:${quotaId}:log`);
  expect(names).toHaveLength(1);
  return names[0] ?? '';
}

async function timesOf(quotaId: string): Promise<readonly number[]> {
  return (await client.lrange(await logOf(quotaId), 0, -1)).map(Number);
}

async function redisMicros(): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000_000 + Number(micros);
}

/** The first request names the log; then it holds what the test says. */
async function putLog(key: SettableKey, agesMicros: readonly number[]): Promise<readonly number[]> {
  expect((await key.ask()).status).toBe(200);
  const log = await logOf(key.keyId);
  const nowMicros = await redisMicros();
  const times = agesMicros.map((age) => nowMicros - age);
  await client
    .multi()
    .del(log)
    .rpush(log, ...times)
    .exec();
  return times;
}

async function openShared(): Promise<QuotaDoor> {
  const fleet = await startFleet(redis.url);
  return {
    gateways: fleet.gateways,
    nowMicros: redisMicros,
    behindMicros: 250_000,
    put: putLog,
    lastAdmitted: async ({ keyId }) => (await timesOf(keyId)).at(-1) ?? Number.NaN,
    outages: () =>
      fleet.gateways.flatMap(({ logLines }) => logLines).filter((line) => line.includes('"dependency":"quota"')).length,
    close: () => fleet.close(),
  };
}

describeRateLimit('two gateways over one Redis', openShared, 60);

describe('logs in Redis', () => {
  let fleet: World;
  beforeAll(async () => {
    fleet = await startFleet(redis.url);
    return () => fleet.close();
  });

  async function limited(perMinute: number, perHour: number, agesMicros: readonly number[] = []): Promise<SettableKey> {
    const key = new SettableKey(fleet.here);
    await key.setLimits({ perMinute: 1_000_000, perHour: 1_000_000 });
    if (agesMicros.length > 0) await putLog(key, agesMicros);
    await key.setLimits({ perMinute, perHour });
    return key;
  }

  test('R2: who waits for Retry-After is admitted, and not before more than a minute has gone by', async () => {
    const key = await limited(2, 90, [59_000_000, 30_000_000]);
    const refused = await key.ask();
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
    await vi.waitFor(async () => expect((await key.ask()).status).toBe(200), WITHIN);
    const times = await timesOf(key.keyId);
    expect(times).toHaveLength(3);
    expect((times[2] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(60_000_000);
    expect((await key.ask(fleet.gateways[1])).status).toBe(429);
  });

  test('R1: what has left the hour is dropped with the next admitted request, and with no other', async () => {
    const key = await limited(1, 90, [3_601_000_000, 3_600_500_000, 1_800_000_000, 1000]);
    expect((await key.ask()).status).toBe(429);
    expect(await timesOf(key.keyId)).toHaveLength(4);
    await key.setLimits({ perMinute: 2, perHour: 90 });
    expect((await key.ask()).status).toBe(200);
    expect(await timesOf(key.keyId)).toHaveLength(3);
  });

  test('R1: a log of thousands of requests is decided on exactly, and keeps to its limit in a burst', async () => {
    const agesMicros = Array.from({ length: 5000 }, (_, i) => (5000 - i) * 700_000);
    const key = await limited(1_000_000, 5010, agesMicros);
    const replies = await Promise.all(Array.from({ length: 200 }, (_, i) => key.ask(fleet.gateways[i % 2])));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(10);
    const refused = replies.find(({ status }) => status === 429);
    expect(refused?.headers['x-ratelimit-active-window']).toBe('hour');
  });

  test('R6: after the clock of Redis went back, what is from the future counts for one window from now', async () => {
    const key = await limited(3, 90, [70_000_000, 30_000_000, -600_000_000, -3_000_000_000]);
    const lookedAtMicros = await redisMicros();
    expect((await key.look()).headers['x-ratelimit-minute-remaining']).toBe('0');
    const refused = await key.ask(fleet.gateways[1]);
    // The entry of 30 s ago leaves first, and makes room for one.
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, expect.stringMatching(/^(29|30)$/)]);
    expect(Number(refused.headers['x-ratelimit-minute-reset']) * 1_000_000 - lookedAtMicros).toBeLessThan(62_000_000);
    const [, , ...corrected] = await timesOf(key.keyId);
    expect(corrected).toHaveLength(2);
    for (const time of corrected) expect(time - lookedAtMicros).toBeLessThan(1_000_000);
    await key.setLimits({ perMinute: 4, perHour: 90 });
    expect((await key.ask()).status).toBe(200);
    expect((await timesOf(key.keyId)).slice(2, 4)).toEqual(corrected);
  });

  test('R1: the largest limits are taken at their word', async () => {
    const key = await limited(1_000_000_000, 1_000_000_000);
    const reply = await key.ask();
    expect(reply.headers['x-ratelimit-minute-remaining']).toBe('999999999');
    expect(reply.headers['x-ratelimit-hour-remaining']).toBe('999999999');
  });

  test('K3: keys that were imported with one quota share it', async () => {
    const [one, two] = [new SettableKey(fleet.here), new SettableKey(fleet.there)];
    await one.setLimits({ perMinute: 1, perHour: 9 }, 'shared-quota');
    await two.setLimits({ perMinute: 1, perHour: 9 }, 'shared-quota');
    expect([(await one.ask()).status, (await two.ask()).status]).toEqual([200, 429]);
    expect(await timesOf('shared-quota')).toHaveLength(1);
  });

  test('a log that holds something else stops no other key', async () => {
    const [broken, whole] = [await limited(9, 90), await limited(2, 90)];
    await broken.ask();
    const log = await logOf(broken.keyId);
    await client.set(log, 'no list');
    const [ofBroken, ofWhole] = await Promise.all([broken.ask(), whole.ask()]);
    expect([ofBroken.status, ofWhole.status]).toEqual([200, 200]);
    await client.del(log);
    await vi.waitFor(async () => {
      await broken.ask();
      expect(await client.llen(log)).toBeGreaterThan(0);
    }, WITHIN);
  });

  test.runIf(isOneServer)('K8a: requests for its details beyond 60 a minute cost a key hardly a command', async () => {
    const key = await limited(100, 1000);
    expect((await key.ask()).status).toBe(200);
    for (let request = 0; request < 60; request += 1) expect((await key.look()).status).toBe(200);
    // Once one is refused, no other costs a command; those that come at the same moment do.
    expect((await key.look()).status).toBe(429);
    const monitor = await monitorRedis(redis.url);
    const refused = await Promise.all(Array.from({ length: 300 }, () => key.look()));
    const commands = monitor.commands.filter((words) => words.some((word) => word.includes(key.keyId)));
    monitor.close();
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 429));
    expect(refused.map(({ headers }) => headers['x-ratelimit-minute-remaining'])).toEqual(refused.map(() => '99'));
    // The clock of the gateways runs: a look-up of the quota per second, and the first refusal of the limit itself.
    expect(commands.length).toBeLessThan(20);
  });
});
