/**
 * The rows of `npm run prove` about bad days, at a fraction of their size. They wait more than they work, so they run side
 * by side; times are only bounded there, not measured.
 */
import { describe, test } from 'vitest';
import { run as runEvil } from '../prove/rows/faults-evil.ts';
import { run as runInputs } from '../prove/rows/faults-inputs.ts';
import { run as runRedis } from '../prove/rows/faults-redis.ts';
import { run as runReplies } from '../prove/rows/faults-replies.ts';
import { run as runSlowClients } from '../prove/rows/faults-slow-clients.ts';
import { run as runStore } from '../prove/rows/faults-store.ts';
import { expectAllOk, ROW_TIMEOUT_MS } from '../support/prove-rows.ts';

describe.concurrent('over real processes, a real Redis and a real HTTP store', { timeout: ROW_TIMEOUT_MS }, () => {
  test('slow clients keep nobody out', () => expectAllOk(runSlowClients));

  test('C8, R5: without Redis keys in use go on within their limits, no others; C4: its late answers are nobody else’s', async () => {
    await expectAllOk(runRedis);
    await expectAllOk(runReplies);
  });

  test('without the store who reads what is cached is answered; S2: one that does its worst is a clear failure', async () => {
    await expectAllOk(runStore);
    await expectAllOk(runEvil);
  });

  test('S1: whatever is sent is answered as documented', () => expectAllOk(runInputs));
});
