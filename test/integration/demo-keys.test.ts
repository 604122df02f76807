/** In front of the bundled sample, what is said of keys while Redis is away is true of the demo keys, too. */
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { type Gateway, startGateway } from '../../src/gateway.ts';
import { createLogger } from '../../src/log/logger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { forTest } from '../support/opened.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { WITHIN } from '../support/world.ts';

let redis: TestRedis;
let gateway: Gateway;
let log: string;
const clock = new ManualClock();
beforeEach(async () => {
  redis = await forTest(startRedis());
});

async function start(): Promise<void> {
  log = '';
  const env = { PORT: '0', ADMIN_PORT: '0', REDIS_URL: redis.url, KEY_GRACE: '1m' };
  const logger = createLogger({ level: 'info', destination: { write: (text) => void (log += text) } });
  gateway = await startGateway(loadConfig({ env }), { logger, clock });
  onTestFinished(() => gateway.stop(0));
}

async function call(token: string): Promise<number> {
  const answer = await fetch(`${gateway.publicUrl}/v2/calls`, { headers: { authorization: `Bearer ${token}` } });
  return answer.status;
}

/** /readyz says so of keys, and the log. */
async function isSaid(detail: string, message: string): Promise<void> {
  await vi.waitFor(async () => {
    expect(await (await fetch(`${gateway.adminUrl}/readyz`)).text()).toContain(detail);
    expect(log).toContain(message);
  }, WITHIN);
}

test('before Redis has ever answered, only the demo keys are let in', async () => {
  await redis.kill();
  await start();
  await isSaid(
    'Redis could not be asked since this process started: only the demo keys are let in until it answers',
    'keys: Redis could not be asked since the start; only the demo keys are let in until it answers',
  );
  expect(await call(gateway.demo?.v2Key ?? '')).toBe(200);
  expect(log).not.toContain('no key is let in');
});

test('in an outage the demo keys go on, also when it takes longer than keys stay good', async () => {
  await start();
  expect(await call(gateway.demo?.v2Key ?? '')).toBe(200);
  await redis.kill();
  await isSaid(
    'besides them, only the demo keys are let in',
    'keys: Redis cannot be asked; only keys that it confirmed lately and the demo keys are let in',
  );
  clock.advance(60_001);
  await isSaid(
    'Redis could not be asked for 1m: only the demo keys are let in',
    'keys: Redis could not be asked for too long; only the demo keys are let in until it answers',
  );
  expect(await call(gateway.demo?.v2Key ?? '')).toBe(200);
  expect(log).not.toContain('no key is let in');
});
