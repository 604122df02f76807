import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { LIST_CALLS } from './endpoints.ts';
import { putSubject, type Subject } from './subject.ts';

let gateway: TestGateway;
let subject: Subject;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());
beforeEach(() => {
  subject = putSubject(gateway.store);
});

const MINUTE_MICROS = 60_000_000;
const HOUR_MICROS = 3_600_000_000;

const windowSchema = z.object({ limit: z.int(), remaining: z.int(), reset: z.int() });
const bodySchema = z.object({
  key: z.object({ rate_limit: z.object({ minute: windowSchema, hour: windowSchema }) }),
});

type Windows = z.output<typeof bodySchema>['key']['rate_limit'];

function toldBy(reply: Reply): Windows {
  const windowOf = (name: string) => ({
    limit: Number(reply.headers[`x-ratelimit-${name}-limit`]),
    remaining: Number(reply.headers[`x-ratelimit-${name}-remaining`]),
    reset: Number(reply.headers[`x-ratelimit-${name}-reset`]),
  });
  return { minute: windowOf('minute'), hour: windowOf('hour') };
}

/** What a read of that moment is told of the windows, given what the key was told of them. */
function afterRead({ minute, hour }: Windows, nowSeconds: number): { status: number; windows: Windows } {
  if (minute.remaining === 0 || hour.remaining === 0) return { status: 429, windows: { minute, hour } };
  return {
    status: 200,
    windows: {
      minute: { ...minute, remaining: minute.remaining - 1, reset: Math.ceil(nowSeconds + 60) },
      hour: { ...hour, remaining: hour.remaining - 1, reset: Math.ceil(nowSeconds + 3600) },
    },
  };
}

/** Most end just at, before or after the edge of a window. */
const waits = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(0, 1, MINUTE_MICROS - 1, MINUTE_MICROS, MINUTE_MICROS + 1) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(HOUR_MICROS - MINUTE_MICROS, HOUR_MICROS - 1, HOUR_MICROS, HOUR_MICROS + 1),
    },
    { weight: 3, arbitrary: fc.nat(MINUTE_MICROS) },
  ),
  { minLength: 1, maxLength: 12 },
);
const limits = fc.record({ perMinute: fc.integer({ min: 1, max: 3 }), perHour: fc.integer({ min: 1, max: 5 }) });

test('what a key is told of its windows is what its next read finds, at whatever edge of them', async () => {
  await fc.assert(
    fc.asyncProperty(limits, waits, async (given, steps) => {
      const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId], ...given });
      for (const wait of steps) {
        gateway.clock.advanceMicros(wait);
        const look = await gateway.get('/v2/key', { key });
        const told = bodySchema.parse(look.json).key.rate_limit;
        expect(toldBy(look)).toEqual(told);
        expect([told.minute.limit, told.hour.limit]).toEqual([given.perMinute, given.perHour]);
        const read = await gateway.get(LIST_CALLS.path(subject), { key });
        const { status, windows } = afterRead(told, gateway.clock.nowMicros() / 1_000_000);
        expect([read.status, toldBy(read)]).toEqual([status, windows]);
        expect(read.headers['retry-after'] === undefined).toBe(status === 200);
      }
    }),
    { numRuns: 20 },
  );
}, 60_000);
