import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hash32 } from '../../src/cache/hash.ts';
import { AdjustableTimes } from '../../src/cache/times.ts';
import { WhatIfModel } from '../../src/cache/what-if/model.ts';
import { redisBoard, redisMessages } from '../../src/cache/what-if/redis-what-if.ts';
import { fleetWhatIf, type WhatIf } from '../../src/cache/what-if/what-if.ts';
import { systemClock } from '../../src/clock.ts';
import { heartbeatsKey, instancesKey, whatIfChannel, whatIfReportKey } from '../../src/redis/names.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import type { Instances } from '../../src/redis/instances.ts';
import { systemTimers } from '../../src/timers.ts';
import { until } from '../support/key-fleet.ts';
import { openMembers } from '../support/members.ts';
import { linkDown, linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { aRead } from '../support/what-if-fleet.ts';

const WITHIN_MS = 5000;
const KEYS = Array.from({ length: 200 }, (_, index) => `v1:{list:${index}}`);

interface Process {
  readonly link: RedisLink;
  readonly members: Instances;
  readonly whatIf: WhatIf;
  /** The hashes of the keys of all reads that its model was told of. */
  readonly followed: number[];
  readonly broken: string[];
}

let redis: TestRedis;
let processes: Process[] = [];
beforeEach(async () => {
  redis = await startRedis({ controls: true });
});
afterEach(async () => {
  await Promise.all(processes.map(end));
  processes = [];
  await redis.close();
});

async function end({ whatIf, members, link }: Process): Promise<void> {
  whatIf.close();
  await members.close();
  await link.close();
}

async function open(store = 'test'): Promise<Process> {
  const link = openRedis({ url: redis.url, role: 'state' });
  await linkUp(link);
  await until(() => link.subscriber.isUp(), WITHIN_MS);
  const members = openMembers(link, { store });
  const place = { link, store, self: members.id };
  const model = new WhatIfModel({ clock: systemClock, times: new AdjustableTimes() });
  const followed: number[] = [];
  const broken: string[] = [];
  const read: WhatIfModel['read'] = (cacheClass, keyHash, atMs) => {
    followed.push(keyHash);
    model.read(cacheClass, keyHash, atMs);
  };
  const parts = { model: { read, refreshed: () => {}, snapshot: () => model.snapshot() }, clock: systemClock };
  const whatIf = fleetWhatIf(parts, {
    self: members.id,
    peers: () => members.peers(),
    messages: redisMessages(place),
    board: redisBoard(place),
    timers: systemTimers,
    hooks: { onBroken: (what) => broken.push(what) },
  });
  const opened = { link, members, whatIf, followed, broken };
  processes.push(opened);
  return opened;
}

/** They know each other. */
async function openFleet(size: number): Promise<readonly Process[]> {
  const fleet: Process[] = [];
  for (let index = 0; index < size; index += 1) fleet.push(await open());
  await until(() => fleet.every(({ members }) => members.peers().length === size), WITHIN_MS);
  return fleet;
}

function readAll(fleet: readonly Process[]): void {
  for (const { whatIf } of fleet) for (const key of KEYS) whatIf.hooks.onRead?.(aRead(key));
}

function count(fleet: readonly Process[]): number {
  return fleet.reduce((sum, { followed }) => sum + followed.length, 0);
}

/** How many processes each key was followed by. */
function followers(fleet: readonly Process[]): readonly number[] {
  return KEYS.map((key) => fleet.filter(({ followed }) => followed.includes(hash32(key))).length);
}

describe('over a real Redis', () => {
  test('all reads of a key reach one process, and all of them what each has learned', async () => {
    const fleet = await openFleet(4);
    readAll(fleet);
    await until(() => count(fleet) === fleet.length * KEYS.length, WITHIN_MS);
    expect(new Set(followers(fleet))).toEqual(new Set([1]));
    expect(fleet.every(({ followed }) => followed.length > 0)).toBe(true);
    await until(async () => (await fleet[3]?.whatIf.reports())?.length === 4, WITHIN_MS);
    const [report] = (await fleet[3]?.whatIf.reports()) ?? [];
    expect(report?.measured).toMatchObject([{ class: 'list', reads: KEYS.length }]);
  });

  test('the keys of a process that was killed find another one', async () => {
    const [one, two, killed] = await openFleet(3);
    if (one === undefined || two === undefined || killed === undefined) throw new Error('Three were asked for.');
    await killed.link.close();
    // As it is once its beats are too long ago.
    await one.link.client.zadd(heartbeatsKey(), 1, killed.members.id);
    const left = [one, two];
    await until(() => left.every(({ members }) => members.peers().length === 2), WITHIN_MS);
    readAll(left);
    await until(() => count(left) === 2 * KEYS.length, WITHIN_MS);
    expect(new Set(followers(left))).toEqual(new Set([1]));
  });

  test('processes in front of another store follow and say nothing of this one', async () => {
    const [here, there] = [await open(), await open('other')];
    await until(() => [here, there].every(({ members }) => members.count() === 2), WITHIN_MS);
    readAll([here]);
    await until(() => here.followed.length === KEYS.length, WITHIN_MS);
    await until(async () => (await here.link.client.exists(whatIfReportKey('test', here.members.id))) === 1, WITHIN_MS);
    expect([await here.whatIf.reports(), await there.whatIf.reports()]).toMatchObject([
      [{ measured: [{ reads: KEYS.length }] }],
      [{ measured: [] }],
    ]);
    expect(there.followed).toEqual([]);
  });

  test('what others send in another form is left out, and the next that is well is not', async () => {
    const [one, two] = await openFleet(2);
    if (one === undefined || two === undefined) throw new Error('Two were asked for.');
    const channel = whatIfChannel('test', one.members.id);
    for (const message of ['', 'hello', '{"version":2}', 'AQAB']) await two.link.client.publish(channel, message);
    await two.link.client.set(whatIfReportKey('test', two.members.id), '{"snapshot":{}}');
    expect(await one.whatIf.reports()).toHaveLength(1);
    readAll([two]);
    await until(() => count([one, two]) === KEYS.length, WITHIN_MS);
    await until(() => one.broken.length === 5, WITHIN_MS);
    expect(new Set(one.broken)).toEqual(new Set(['reads of another process', 'what-if curves of another process']));
  });

  test('while Redis is frozen reads go on at once, and each process follows its own', async () => {
    const [one, two] = await openFleet(2);
    if (one === undefined || two === undefined) throw new Error('Two were asked for.');
    await redis.pause();
    const beganMs = performance.now();
    for (let round = 0; round < 20; round += 1) readAll([one]);
    expect(performance.now() - beganMs).toBeLessThan(1000);
    await linkDown(one.link);
    one.followed.length = 0;
    readAll([one]);
    await until(() => new Set(one.followed).size === KEYS.length, WITHIN_MS);
    expect(await one.whatIf.reports()).toHaveLength(1);
    await redis.resume();
    await linkUp(one.link);
    await until(async () => (await one.whatIf.reports()).length === 2, WITHIN_MS);
  });

  test('a process that ends takes its word with it', async () => {
    const one = await open();
    readAll([one]);
    const { client } = one.link;
    await until(async () => (await client.exists(whatIfReportKey('test', one.members.id))) === 1, WITHIN_MS);
    expect(await client.pttl(whatIfReportKey('test', one.members.id))).toBeGreaterThan(0);
    one.whatIf.close();
    await until(async () => (await client.exists(whatIfReportKey('test', one.members.id))) === 0, WITHIN_MS);
    expect(await client.hlen(instancesKey())).toBe(1);
  });
});
