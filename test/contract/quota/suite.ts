import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { QuotaWindows } from '../../../src/quota/log.ts';
import type { Quota, QuotaDecision, QuotaLimits, QuotaStanding } from '../../../src/quota/quota.ts';
import { SeededRandom } from '../../support/random.ts';
import { QuotaOracle } from './oracle.ts';

/** Short enough for a real clock, long enough that a few requests fit into the shorter one. */
const WINDOWS: QuotaWindows = { minuteMicros: 200_000, hourMicros: 800_000 };

export interface QuotaFixture {
  readonly quota: Quota;
  /** Lets at least that much time go by. */
  pass(micros: number): Promise<void>;
  close(): Promise<void>;
}

function countAdmitted(decisions: readonly QuotaDecision[]): number {
  return decisions.filter((decision) => decision.admitted).length;
}

/**
 * What every quota does, by its own clock: each decision is held against the plain oracle at the time that the decision
 * itself tells. `make` gives an empty quota with windows of the lengths asked for.
 */
export function describeQuota(name: string, make: (windows: QuotaWindows) => Promise<QuotaFixture>): void {
  describe(`quota: ${name}`, () => {
    let fixture: QuotaFixture;
    let oracle: QuotaOracle;
    beforeEach(async () => {
      fixture = await make(WINDOWS);
      oracle = new QuotaOracle(WINDOWS);
    });
    afterEach(() => fixture.close());

    async function take(limits: QuotaLimits): Promise<QuotaDecision> {
      const decision = await fixture.quota.take('q', limits);
      expect(decision).toEqual(oracle.take(decision.nowMicros, limits));
      return decision;
    }

    test('R1: requests are admitted up to the limit of the minute, then refused', async () => {
      const limits = { perMinute: 3, perHour: 100 };
      const decisions = [await take(limits), await take(limits), await take(limits), await take(limits)];
      expect(decisions.map((decision) => decision.admitted)).toEqual([true, true, true, false]);
      expect(decisions.map((decision) => decision.minute.remaining)).toEqual([2, 1, 0, 0]);
      expect(decisions.map((decision) => decision.hour.remaining)).toEqual([99, 98, 97, 97]);
    });

    test('R1: the hour holds back where the minute would not', async () => {
      const limits = { perMinute: 2, perHour: 3 };
      await take(limits);
      await take(limits);
      await fixture.pass(WINDOWS.minuteMicros + 1);
      expect((await take(limits)).admitted).toBe(true);
      const refused = await take(limits);
      expect(refused.admitted).toBe(false);
      expect(refused.minute.remaining).toBe(1);
      expect(refused.hour.remaining).toBe(0);
    });

    test('R1: a refused request costs nothing in either window', async () => {
      const limits = { perMinute: 2, perHour: 4 };
      for (let i = 0; i < 20; i += 1) await take(limits);
      await fixture.pass(WINDOWS.minuteMicros + 1);
      const after = [await take(limits), await take(limits)];
      expect(after.map((decision) => decision.hour.remaining)).toEqual([1, 0]);
    });

    test('R2: a request at the time told by the refusal is admitted', async () => {
      const limits = { perMinute: 2, perHour: 3 };
      for (let i = 0; i < 3; i += 1) await take(limits);
      for (let i = 0; i < 3; i += 1) {
        const refused = await take(limits);
        await fixture.pass((refused.retryAtMicros ?? 0) - refused.nowMicros);
        expect((await take(limits)).admitted).toBe(true);
        while ((await take(limits)).admitted);
      }
    });

    test('R1: of many requests at once exactly the limit is admitted, each told its own remainder', async () => {
      const limits = { perMinute: 20, perHour: 1000 };
      const decisions = await Promise.all(
        Array.from({ length: 50 }, async () => await fixture.quota.take('q', limits)),
      );
      expect(countAdmitted(decisions)).toBe(20);
      const remaining = decisions.filter((decision) => decision.admitted).map((decision) => decision.minute.remaining);
      expect(remaining.toSorted((a, b) => b - a)).toEqual(Array.from({ length: 20 }, (_, i) => 19 - i));
    });

    test('a look tells how both windows stand, and changes nothing', async () => {
      const limits = { perMinute: 3, perHour: 4 };
      const look = async (by: QuotaLimits = limits): Promise<QuotaStanding> => {
        const { nowMicros, minute, hour } = await fixture.quota.peek('q', by);
        expect({ nowMicros, minute, hour }).toEqual(oracle.peek(nowMicros, by));
        return { nowMicros, minute, hour };
      };
      const remaining: (readonly number[])[] = [];
      const lookFiveTimes = async (): Promise<void> => {
        for (let i = 0; i < 4; i += 1) await look();
        const { minute, hour } = await look();
        remaining.push([minute.remaining, hour.remaining]);
      };
      await lookFiveTimes();
      await take(limits);
      await lookFiveTimes();
      await take(limits);
      await take(limits);
      await lookFiveTimes();
      expect((await take(limits)).admitted).toBe(false);
      await lookFiveTimes();
      expect((await look({ perMinute: 2, perHour: 9 })).hour.remaining).toBe(6);
      await fixture.pass(WINDOWS.minuteMicros + 1);
      await lookFiveTimes();
      expect((await take(limits)).admitted).toBe(true);
      await lookFiveTimes();
      await fixture.pass(WINDOWS.hourMicros + 1);
      await lookFiveTimes();
      expect(remaining).toEqual([
        [3, 4],
        [2, 3],
        [0, 1],
        [0, 1],
        [3, 1],
        [2, 0],
        [3, 4],
      ]);
    });

    test('looks among many requests at once hold none of them up and admit none', async () => {
      const limits = { perMinute: 20, perHour: 1000 };
      const looks: Promise<QuotaStanding>[] = [];
      const decisions = await Promise.all(
        Array.from({ length: 50 }, async (_, i) => {
          looks.push(Promise.resolve(fixture.quota.peek('q', i % 2 === 0 ? limits : { perMinute: 5, perHour: 50 })));
          return await fixture.quota.take('q', limits);
        }),
      );
      expect(countAdmitted(decisions)).toBe(20);
      const limitsTold = (await Promise.all(looks)).map(({ minute, hour }) => [minute.limit, hour.limit]);
      expect(limitsTold).toEqual(looks.map((_, i) => (i % 2 === 0 ? [20, 1000] : [5, 50])));
      const { minute, hour } = await fixture.quota.peek('q', limits);
      expect([minute.remaining, hour.remaining]).toEqual([0, 980]);
    });

    test('R1: quotas are apart from each other', async () => {
      const limits = { perMinute: 1, perHour: 1 };
      const ids = ['q', 'q1', 'Q', '', '__proto__', 'constructor'];
      const first = await Promise.all(ids.map(async (id) => await fixture.quota.take(id, limits)));
      expect(countAdmitted(first)).toBe(ids.length);
      const second = await Promise.all(ids.map(async (id) => await fixture.quota.take(id, limits)));
      expect(countAdmitted(second)).toBe(0);
    });

    test('R1: limits that change take effect with the next request', async () => {
      const wide = { perMinute: 5, perHour: 50 };
      for (let i = 0; i < 5; i += 1) await take(wide);
      expect((await take({ perMinute: 2, perHour: 50 })).minute).toMatchObject({ limit: 2, remaining: 0 });
      expect((await take({ perMinute: 6, perHour: 50 })).admitted).toBe(true);
      const lowered = await take({ perMinute: 2, perHour: 50 });
      await fixture.pass((lowered.retryAtMicros ?? 0) - lowered.nowMicros);
      expect((await take({ perMinute: 2, perHour: 50 })).admitted).toBe(true);
    });

    test('R1: a random walk along the windows’ edges is decided as the oracle does, and no window is ever overfull', async () => {
      const random = new SeededRandom(3);
      const limits = { perMinute: 4, perHour: 10 };
      for (let burst = 0; burst < 12; burst += 1) {
        for (let i = random.integer(1, 6); i > 0; i -= 1) await take(limits);
        const edge = random.pick(WINDOWS.minuteMicros, WINDOWS.minuteMicros / 2, WINDOWS.hourMicros / 3);
        await fixture.pass(edge + random.integer(-1, 1));
      }
      expect(oracle.mostWithin(WINDOWS.minuteMicros)).toBe(limits.perMinute);
      expect(oracle.mostWithin(WINDOWS.hourMicros)).toBeLessThanOrEqual(limits.perHour);
    });
  });
}
