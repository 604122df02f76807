/** The rate limit with quotas in memory: by the clock of the test, so that every answer is exact. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { forTest } from '../../support/opened.ts';
import { cases } from '../../support/cases.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { nth } from '../../support/world.ts';
import { HOUR_MICROS, MINUTE_MICROS, QuotaOracle } from '../../support/quota-oracle.ts';
import {
  anyLimits,
  describeRateLimit,
  expectDecision,
  expectLook,
  type QuotaDoor,
  SettableKey,
} from './rate-limit-suite.ts';

async function openMemory(): Promise<QuotaDoor> {
  const gateway = await startTestGateway();
  const { clock } = gateway;
  return {
    gateways: [gateway],
    nowMicros: async () => clock.nowMicros(),
    behindMicros: 0,
    lastAdmitted: async () => clock.nowMicros(),
    put: async (key, agesMicros) => {
      const nowMicros = clock.nowMicros() + (agesMicros[0] ?? 0);
      for (const age of agesMicros) {
        clock.advanceMicros(nowMicros - age - clock.nowMicros());
        expect((await key.ask()).status).toBe(200);
      }
      clock.advanceMicros(nowMicros - clock.nowMicros());
      return agesMicros.map((age) => nowMicros - age);
    },
    outages: () => 0,
    close: () => gateway.close(),
  };
}

describeRateLimit('memory', openMemory, cases(15));

/** Most waits end just at, before or after the edge of a window. */
const waits = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(0, 1, MINUTE_MICROS - 1, MINUTE_MICROS, MINUTE_MICROS + 1) },
    { weight: 2, arbitrary: fc.constantFrom(HOUR_MICROS - MINUTE_MICROS, HOUR_MICROS, HOUR_MICROS + 1) },
    { weight: 3, arbitrary: fc.nat(MINUTE_MICROS) },
  ),
  { minLength: 1, maxLength: 15 },
);

test('R1 to R4: on any walk along the edges of the windows every answer is exact to the microsecond', async () => {
  const door = await forTest(openMemory());
  const gateway = nth(door.gateways, 0);
  await fc.assert(
    fc.asyncProperty(anyLimits, waits, fc.integer({ min: 1, max: 3 }), async (limits, steps, burst) => {
      const it = { key: new SettableKey(gateway), oracle: new QuotaOracle(), limits };
      await it.key.setLimits(limits);
      for (const wait of steps) {
        gateway.clock.advanceMicros(wait);
        await expectLook(door, it);
        for (let i = 0; i < burst; i += 1) await expectDecision(door, it);
      }
    }),
    { numRuns: cases(15) },
  );
}, 120_000);

test('R2: Retry-After is true to the second: one second earlier is too early, then one request is admitted', async () => {
  const door = await forTest(openMemory());
  const gateway = nth(door.gateways, 0);
  const limitsArbitrary = fc.record({
    perMinute: fc.integer({ min: 1, max: 4 }),
    perHour: fc.integer({ min: 3, max: 9 }),
  });
  await fc.assert(
    fc.asyncProperty(limitsArbitrary, fc.array(fc.nat(40_000_000), { maxLength: 9 }), async (limits, pauses) => {
      const key = new SettableKey(gateway);
      await key.setLimits(limits);
      for (const pause of pauses) {
        await key.ask();
        gateway.clock.advanceMicros(pause);
      }
      let reply = await key.ask();
      while (reply.status === 200) reply = await key.ask();
      const seconds = Number(reply.headers['retry-after']);
      gateway.clock.advance((seconds - 1) * 1000);
      const early = seconds === 1 ? 429 : (await key.ask()).status;
      gateway.clock.advance(1000);
      expect([early, (await key.ask()).status]).toEqual([429, 200]);
    }),
    { numRuns: cases(15) },
  );
}, 120_000);

test('R1: a clock that goes back admits nothing extra', async () => {
  const door = await forTest(openMemory());
  const gateway = nth(door.gateways, 0);
  const key = new SettableKey(gateway);
  await key.setLimits({ perMinute: 2, perHour: 9 });
  const statuses: number[] = [];
  for (const ms of [0, -10_000, 0, -3_600_000]) {
    gateway.clock.advance(ms);
    statuses.push((await key.ask()).status);
  }
  expect(statuses).toEqual([200, 200, 429, 429]);
});
