import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createMemoryFailureLimiter, type FailureLimiter } from '../../../src/keys/failure-limiter.ts';

// The library reads the machine's clock and sets timers, so both are replaced here.
beforeEach(() => {
  vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ['Date', 'setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function failTimes(limiter: FailureLimiter, address: string, times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) await limiter.failed(address);
}

test('K9: an address has 60 failures within a minute, then none until the minute is over', async () => {
  const limiter = createMemoryFailureLimiter();
  expect(await limiter.allowance('a')).toEqual({ left: 60, retryAfterSeconds: 0 });
  await limiter.failed('a');
  expect(await limiter.allowance('a')).toEqual({ left: 59, retryAfterSeconds: 60 });
  vi.advanceTimersByTime(10_001);
  await failTimes(limiter, 'a', 58);
  expect(await limiter.allowance('a')).toEqual({ left: 1, retryAfterSeconds: 50 });
  await failTimes(limiter, 'a', 5);
  expect(await limiter.allowance('a')).toEqual({ left: 0, retryAfterSeconds: 50 });
  vi.advanceTimersByTime(49_998);
  expect(await limiter.allowance('a')).toEqual({ left: 0, retryAfterSeconds: 1 });
  vi.advanceTimersByTime(1);
  expect(await limiter.allowance('a')).toEqual({ left: 60, retryAfterSeconds: 0 });
});

test('K9: failures of one address are nothing to another', async () => {
  const limiter = createMemoryFailureLimiter();
  await failTimes(limiter, 'a', 60);
  expect(await limiter.allowance('b')).toEqual({ left: 60, retryAfterSeconds: 0 });
});

test('K9: the memory of addresses is bounded, and the one whose window is the oldest is forgotten first', async () => {
  const limiter = createMemoryFailureLimiter({ maxAddresses: 3 });
  for (const address of ['a', 'b', 'c']) await failTimes(limiter, address, 60);
  vi.advanceTimersByTime(60_000);
  // The window of a begins anew, after those of b and c would have; then d is one too many.
  for (const address of ['b', 'c', 'a', 'd']) await failTimes(limiter, address, 60);
  const left = await Promise.all(['a', 'b', 'c', 'd'].map((address) => limiter.allowance(address)));
  expect(left.map((allowance) => allowance.left)).toEqual([0, 60, 0, 0]);
});

test('the timers that end the windows do not keep the process alive', () => {
  const module = new URL('../../../src/keys/failure-limiter.ts', import.meta.url).href;
  const script = `import { createMemoryFailureLimiter } from '${module}'; await createMemoryFailureLimiter().failed('a');`;
  const { status, signal } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    timeout: 15_000,
  });
  expect({ status, signal }).toEqual({ status: 0, signal: null });
});
