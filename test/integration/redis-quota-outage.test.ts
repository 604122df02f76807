import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { QuotaDecision } from '../../src/quota/quota.ts';
import { type FleetQuota, openFleetQuota } from '../../src/quota/redis-open.ts';
import { quotaLogKey } from '../../src/redis/names.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import type { Instances } from '../../src/redis/instances.ts';
import { openMembers } from '../support/members.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const LIMITS = { perMinute: 20, perHour: 1000 };

interface Process {
  readonly link: RedisLink;
  readonly members: Instances;
  readonly quota: FleetQuota;
}

let redis: TestRedis;
let processes: Process[] = [];
beforeEach(async () => {
  redis = await startRedis({ controls: true });
  processes = [];
});
afterEach(async () => {
  for (const { quota, members, link } of processes) {
    quota.close();
    await members.close();
    await link.close();
  }
  await redis.close();
});

/** As a process of its own would: nothing is shared with others but Redis. */
function openProcess(url: string = redis.url): Process {
  const link = openRedis({ url, role: 'state' });
  const members = openMembers(link);
  const opened = { link, members, quota: openFleetQuota({ link, clock: systemClock, members }) };
  processes.push(opened);
  return opened;
}

async function openProcesses(count: number): Promise<readonly FleetQuota[]> {
  const opened = Array.from({ length: count }, () => openProcess());
  await Promise.all(opened.map(({ link }) => linkUp(link)));
  await vi.waitFor(async () => {
    expect(await opened[0]?.link.client.hlen('evalgate:{members}')).toBe(count);
  });
  // Those that came first hear of the later ones with their next beat.
  await vi.waitFor(() => expect(opened.map(({ quota }) => quota.processes())).toEqual(opened.map(() => count)), 5000);
  return opened.map(({ quota }) => quota);
}

interface Timed {
  readonly decision: QuotaDecision;
  readonly tookMs: number;
}

async function timedTake(quota: FleetQuota, quotaId: string): Promise<Timed> {
  const startMs = performance.now();
  const decision = await quota.take(quotaId, LIMITS);
  return { decision, tookMs: performance.now() - startMs };
}

async function takes(quota: FleetQuota, count: number, quotaId = 'q'): Promise<Timed[]> {
  const answers: Timed[] = [];
  for (let i = 0; i < count; i += 1) answers.push(await timedTake(quota, quotaId));
  return answers;
}

function admittedOf(answers: readonly Timed[]): number {
  return answers.filter(({ decision }) => decision.admitted).length;
}

function percentile(answers: readonly Timed[], share: number): number {
  const sorted = answers.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? NaN;
}

describe('a Redis that freezes', () => {
  test('R5: answers keep coming, p99 within 100 ms, each process within its share of what was left', async () => {
    const [first, second] = await openProcesses(2);
    if (first === undefined || second === undefined) throw new Error('Two processes were asked for.');
    await takes(first, 5);
    await takes(second, 5);
    await takes(first, 1);
    await redis.pause();
    const answers = await Promise.all([takes(first, 200), takes(second, 200)]);
    // Nine were left of the 20 as the first one knew it, ten as the second did: half of that each.
    expect(answers.map(admittedOf)).toEqual([4, 5]);
    expect(percentile(answers.flat(), 0.99)).toBeLessThanOrEqual(100);
    expect([first.isShared(), second.isShared()]).toEqual([false, false]);
  });

  test('R5: many keys at once wait for it only once', async () => {
    const [quota] = await openProcesses(1);
    if (quota === undefined) throw new Error('One process was asked for.');
    await redis.pause();
    const answers = await Promise.all(Array.from({ length: 500 }, (_, i) => timedTake(quota, `q${i}`)));
    expect(admittedOf(answers)).toBe(500);
    expect(Math.max(...answers.map(({ tookMs }) => tookMs))).toBeLessThanOrEqual(350);
    const after = await takes(quota, 200, 'later');
    expect(Math.max(...after.map(({ tookMs }) => tookMs))).toBeLessThanOrEqual(50);
  });

  test('a process that was itself held up does not take that for a Redis that is frozen', async () => {
    const [quota] = await openProcesses(1);
    if (quota === undefined) throw new Error('One process was asked for.');
    await takes(quota, 1);
    for (let i = 0; i < 3; i += 1) {
      const answer = quota.take('q', LIMITS);
      // Once it is sent, and until long after it should be answered.
      await new Promise((resume) => setImmediate(resume));
      const untilMs = performance.now() + 350;
      while (performance.now() < untilMs);
      await answer;
    }
    expect(quota.isShared()).toBe(true);
  });

  test('R1: once it goes on it decides again, and counts what was admitted meanwhile', async () => {
    const [quota] = await openProcesses(1);
    if (quota === undefined) throw new Error('One process was asked for.');
    await takes(quota, 4);
    await redis.pause();
    // The first of these times out, and Redis may count it too when it goes on.
    const alone = await takes(quota, 6);
    expect(admittedOf(alone)).toBe(6);
    await redis.resume();
    await vi.waitFor(() => expect(quota.isShared()).toBe(true), 5000);
    await vi.waitFor(async () => {
      const client = processes[0]?.link.client;
      const length = await client?.llen(quotaLogKey('q'));
      expect([10, 11]).toContain(length);
    }, 5000);
    const [next] = await takes(quota, 1);
    expect([8, 9]).toContain(next?.decision.minute.remaining);
    expect(admittedOf(await takes(quota, 20))).toBe(next?.decision.minute.remaining);
    const times = (await processes[0]?.link.client.lrange(quotaLogKey('q'), 0, -1))?.map(Number) ?? [];
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times.length).toBe(20);
  });
});

describe('a Redis that is gone', () => {
  test('R5: answers come at once, from the use last known', async () => {
    const [quota] = await openProcesses(1);
    if (quota === undefined) throw new Error('One process was asked for.');
    await takes(quota, 8);
    await redis.kill();
    const answers = await takes(quota, 100);
    expect(admittedOf(answers)).toBe(12);
    expect(answers[0]?.decision).toMatchObject({ minute: { limit: 20, remaining: 11 }, hour: { remaining: 991 } });
    expect(percentile(answers, 0.99)).toBeLessThanOrEqual(50);
  });

  test('R5: one that was never there leaves each process its whole share', async () => {
    await redis.kill();
    const { quota } = openProcess();
    expect(admittedOf(await takes(quota, 30))).toBe(20);
    expect(quota.isShared()).toBe(false);
  });

  test('R1: when it is back, even with nothing in it, what was admitted without it counts', async () => {
    const [quota] = await openProcesses(1);
    if (quota === undefined) throw new Error('One process was asked for.');
    await takes(quota, 1);
    await redis.kill();
    expect(admittedOf(await takes(quota, 10))).toBe(10);
    await redis.restart();
    await vi.waitFor(() => expect(quota.isShared()).toBe(true), 5000);
    expect(admittedOf(await takes(quota, 30))).toBe(10);
  });

  test('a refusal that was told before goes on without it', async () => {
    const [quota] = await openProcesses(1);
    if (quota === undefined) throw new Error('One process was asked for.');
    const before = (await takes(quota, 21)).at(-1)?.decision;
    await redis.kill();
    await sleep(20);
    const [after] = await takes(quota, 1);
    expect(after?.decision).toMatchObject({ admitted: false, retryAtMicros: before?.retryAtMicros });
  });
});

describe('processes that share the limits', () => {
  test('R5: are counted while they live, and a process that ends counts no more', async () => {
    await openProcesses(3);
    const [first, , third] = processes;
    await third?.members.close();
    expect(await first?.link.client.hlen('evalgate:{members}')).toBe(2);
  });

  test('R5: a Redis that forgot all is not at once taken for a fleet of one', async () => {
    const [quota] = await openProcesses(2);
    await processes[1]?.link.close();
    await redis.flush();
    await vi.waitFor(async () => expect(await processes[0]?.link.client.hlen('evalgate:{members}')).toBe(1));
    expect(quota?.processes()).toBe(2);
    await vi.waitFor(() => expect(quota?.processes()).toBe(1), 5000);
  });

  test('R5: the last known number of them holds without Redis', async () => {
    const [quota] = await openProcesses(2);
    await redis.kill();
    await sleep(50);
    expect(quota?.processes()).toBe(2);
    expect(quota === undefined ? 0 : admittedOf(await takes(quota, 30))).toBe(10);
  });
});
