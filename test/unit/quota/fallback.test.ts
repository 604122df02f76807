import { beforeEach, afterEach, expect, test, vi } from 'vitest';
import { FallbackQuota, type Unshared } from '../../../src/quota/fallback-quota.ts';
import { createResilientQuota, type ResilientQuota } from '../../../src/quota/fallback.ts';
import { createMemoryQuota } from '../../../src/quota/memory-quota.ts';
import type { QuotaDecision, QuotaStanding } from '../../../src/quota/quota.ts';
import type { SharedQuota } from '../../../src/quota/redis-quota.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const LIMITS = { perMinute: 6, perHour: 100 };

/** A shared log that a test can take away. */
class RemovableQuota implements SharedQuota {
  readonly clock = new ManualClock();
  readonly fallback = new FallbackQuota({ clock: this.clock, processes: () => 2 });
  readonly merged: { quotaId: string; mergeId: string; count: number }[] = [];
  readonly told: string[] = [];
  asked = 0;
  looks = 0;
  probes = 0;
  isThere = true;
  isMergeable = true;
  readonly #log = createMemoryQuota({ clock: this.clock });

  recall(): null {
    return null;
  }

  async take(quotaId: string): Promise<QuotaDecision> {
    this.asked += 1;
    if (!this.isThere) throw new Error('away');
    const decision = this.#log.take(quotaId, LIMITS);
    const { minute, hour, admitted, nowMicros } = decision;
    const counted = admitted ? 1 : 0;
    const use = {
      nowMicros,
      minuteUsed: minute.limit - minute.remaining - counted,
      hourUsed: hour.limit - hour.remaining - counted,
      newestMicros: nowMicros,
      admitted: counted,
    };
    this.fallback.see(quotaId, use, nowMicros);
    return decision;
  }

  async peek(quotaId: string): Promise<QuotaStanding> {
    this.looks += 1;
    if (!this.isThere) throw new Error('away');
    return this.#log.peek(quotaId, LIMITS);
  }

  async probe(): Promise<void> {
    this.probes += 1;
    if (!this.isThere) throw new Error('away');
  }

  async merge({ quotaId, admissions }: Unshared, mergeId: string): Promise<void> {
    if (!this.isMergeable) throw new Error('away');
    this.merged.push({ quotaId, mergeId, count: admissions.reduce((sum, [, count]) => sum + count, 0) });
  }
}

let shared: RemovableQuota;
let quota: ResilientQuota;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  shared = new RemovableQuota();
  quota = createResilientQuota({
    shared,
    fallback: shared.fallback,
    probe: () => shared.probe(),
    merge: (unshared, mergeId) => shared.merge(unshared, mergeId),
    hooks: { onAlone: () => shared.told.push('alone'), onShared: () => shared.told.push('shared') },
  });
});
afterEach(() => {
  quota.close();
  vi.useRealTimers();
});

async function admittedOf(count: number): Promise<number> {
  const decisions = [];
  for (let i = 0; i < count; i += 1) decisions.push(await quota.take('q', LIMITS));
  return decisions.filter((decision) => decision.admitted).length;
}

test('while the shared log answers, it decides', async () => {
  expect(await admittedOf(8)).toBe(6);
  expect(quota.isShared()).toBe(true);
  expect(shared.told).toEqual([]);
});

test('R5: without the shared log a process goes on from the use it last knew with its share', async () => {
  expect(await admittedOf(2)).toBe(2);
  shared.isThere = false;
  // Four are left for two processes.
  expect(await admittedOf(8)).toBe(2);
});

test('R5: a process that loses it before anything was known has its share of the limit', async () => {
  shared.isThere = false;
  expect(await admittedOf(8)).toBe(3);
});

test('R5: one request without an answer is enough to ask no more', async () => {
  shared.isThere = false;
  await admittedOf(50);
  expect(shared.asked).toBe(1);
  expect(shared.told).toEqual(['alone']);
});

test('the shared log decides again once it can be reached, and is told what was admitted without it', async () => {
  await admittedOf(1);
  shared.isThere = false;
  await admittedOf(1);
  await vi.advanceTimersByTimeAsync(100);
  expect(quota.isShared()).toBe(false);
  shared.isThere = true;
  await vi.advanceTimersByTimeAsync(200);
  expect(quota.isShared()).toBe(true);
  expect(shared.merged).toMatchObject([{ quotaId: 'q', count: 1 }]);
  expect(shared.told).toEqual(['alone', 'shared']);
  await admittedOf(1);
  expect(shared.asked).toBe(3);
});

test('one that can be reached and does not decide is told of once, and as back once it has decided', async () => {
  shared.isThere = false;
  await admittedOf(2);
  shared.isThere = true;
  shared.isMergeable = false;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(shared.probes).toBeGreaterThan(3);
  expect(shared.told).toEqual(['alone']);
  shared.isMergeable = true;
  await vi.advanceTimersByTimeAsync(2000);
  expect(shared.told).toEqual(['alone', 'shared']);
});

test('a merge that failed is sent again as the same one', async () => {
  shared.isThere = false;
  await admittedOf(2);
  shared.isThere = true;
  shared.isMergeable = false;
  await vi.advanceTimersByTimeAsync(100);
  expect(quota.isShared()).toBe(false);
  shared.isMergeable = true;
  await vi.advanceTimersByTimeAsync(1000);
  expect(shared.merged).toMatchObject([{ quotaId: 'q', count: 2 }]);
  expect(quota.isShared()).toBe(true);
});

test('R1: a request is not decided on before its key’s admissions were sent, however many keys wait for that', async () => {
  shared.isThere = false;
  const quotaIds = Array.from({ length: 50 }, (_, i) => `q${i}`);
  for (const quotaId of quotaIds) await quota.take(quotaId, LIMITS);
  const sent: string[] = [];
  shared.merge = async ({ quotaId }) => {
    sent.push(quotaId);
    return new Promise(() => undefined);
  };
  shared.isThere = true;
  await vi.advanceTimersByTimeAsync(200);
  expect(quota.isShared()).toBe(true);
  expect(sent).not.toContain('q49');
  await quota.take('q49', LIMITS);
  expect(sent).toContain('q49');
});

test('each merge has a name of its own', async () => {
  for (let outage = 0; outage < 3; outage += 1) {
    shared.isThere = false;
    shared.clock.advance(3_600_001);
    await admittedOf(1);
    shared.isThere = true;
    await vi.advanceTimersByTimeAsync(5000);
  }
  expect(new Set(shared.merged.map(({ mergeId }) => mergeId)).size).toBe(3);
});

test('a log that can be reached but does not decide is asked less and less often', async () => {
  const failing = createResilientQuota({
    shared: {
      recall: () => null,
      take: () => Promise.reject(new Error('out of memory')),
      peek: () => Promise.reject(new Error('out of memory')),
    },
    fallback: shared.fallback,
    probe: () => shared.probe(),
    merge: async () => {},
  });
  for (let i = 0; i < 100; i += 1) {
    await failing.take('q', LIMITS);
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(shared.probes).toBeLessThanOrEqual(9);
  expect(shared.probes).toBeGreaterThanOrEqual(6);
  failing.close();
});

test('a refusal that is known to hold is given again at once, whether the shared log is there or not', async () => {
  const refused = { ...(await quota.take('q', LIMITS)), admitted: false };
  const knowing = createResilientQuota({
    shared: {
      recall: (quotaId) => (quotaId === 'q' ? refused : null),
      take: (quotaId) => (quotaId === 'q' ? refused : Promise.reject(new Error('away'))),
      peek: () => Promise.reject(new Error('away')),
    },
    fallback: shared.fallback,
    probe: () => Promise.reject(new Error('away')),
    merge: async () => {},
  });
  expect(knowing.take('q', LIMITS)).toBe(refused);
  expect(knowing.isShared()).toBe(true);
  await knowing.take('other', LIMITS);
  expect(knowing.isShared()).toBe(false);
  expect(knowing.take('q', LIMITS)).toBe(refused);
  expect(knowing.peek('q', LIMITS)).toBe(refused);
  knowing.close();
});

async function remaining(): Promise<readonly number[]> {
  const { minute, hour } = await quota.peek('q', LIMITS);
  return [minute.limit, minute.remaining, hour.limit, hour.remaining];
}

test('a look asks the shared log, and without it tells what is left of the share; no look is reason to go on alone', async () => {
  expect(await admittedOf(2)).toBe(2);
  expect(await remaining()).toEqual([6, 4, 100, 98]);
  shared.isThere = false;
  // What two processes have left, as far as this one knows.
  expect(await remaining()).toEqual([6, 2, 100, 49]);
  expect([shared.looks, quota.isShared(), shared.told]).toEqual([2, true, []]);
  expect(await admittedOf(1)).toBe(1);
  expect(quota.isShared()).toBe(false);
  for (let i = 0; i < 20; i += 1) expect(await remaining()).toEqual([6, 1, 100, 48]);
  expect(shared.looks).toBe(2);
  expect(await admittedOf(5)).toBe(1);
  expect(await remaining()).toEqual([6, 0, 100, 47]);
});

test('what a look finds of a quota that was never used leaves nothing behind', async () => {
  shared.isThere = false;
  expect(await remaining()).toEqual([6, 3, 100, 50]);
  expect(shared.fallback.logCount).toBe(0);
});

test('what was admitted alone is in the shared log before a look at it', async () => {
  await admittedOf(1);
  shared.isThere = false;
  await admittedOf(1);
  shared.isThere = true;
  shared.isMergeable = false;
  await vi.advanceTimersByTimeAsync(200);
  shared.isMergeable = true;
  await vi.advanceTimersByTimeAsync(5000);
  await remaining();
  expect(shared.merged).toMatchObject([{ quotaId: 'q', count: 1 }]);
});

test('once closed it asks no more whether the shared log is back', async () => {
  shared.isThere = false;
  await admittedOf(1);
  quota.close();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(shared.probes).toBe(0);
});
