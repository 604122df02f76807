/** C9: `X-RateLimit-Reset` is a time of the wall clock, also after that was set while the gateway ran without Redis. */
import { expect, test } from 'vitest';
import { LocalShare } from '../../../src/quota/local-share.ts';
import { MemoryLimiter } from '../../../src/quota/memory-limiter.ts';

const START_MS = Date.UTC(2026, 0, 15, 12);
const STEP_MS = 3_600_000;
const LIMITS = { perMinute: 1, perHour: 10 };

/** The clock of a process whose machine's clock is set back by an hour while it runs. */
function steppedClock() {
  let stepMs = 0;
  return {
    step: () => void (stepMs = STEP_MS),
    nowMs: () => START_MS - stepMs,
    nowMicros: () => START_MS * 1000,
  };
}

test('without Redis', async () => {
  const clock = steppedClock();
  const limiter = new MemoryLimiter({ clock });
  expect((await limiter.consume('a', LIMITS)).minute.emptyAtMicros).toBe((START_MS + 60_000) * 1000);
  clock.step();
  const refused = await limiter.consume('a', LIMITS);
  const resetMs = START_MS - STEP_MS + 60_000;
  expect([refused.admitted, refused.minute.emptyAtMicros / 1000]).toEqual([false, resetMs]);
  expect(((refused.retryAtMicros ?? 0) - refused.nowMicros) / 1e6).toBeCloseTo(60, 3);
  expect((await limiter.usage('a', LIMITS)).minute.emptyAtMicros / 1000).toBe(resetMs);
});

test('while Redis has not answered since the start', () => {
  const clock = steppedClock();
  clock.step();
  const share = new LocalShare({ clock, processes: () => 1, maxQuotas: 10 });
  expect(share.consume('a', LIMITS).minute.emptyAtMicros / 1000).toBe(START_MS - STEP_MS + 60_000);
});
