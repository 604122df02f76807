import { describe, expect, test } from 'vitest';
import type { Row } from '../prove/row.ts';
import { run as runFlights } from '../prove/rows/cache-flights.ts';
import { run as runLeaders } from '../prove/rows/cache-leaders.ts';
import { run as runPurges } from '../prove/rows/cache-purges.ts';
import { isProving } from '../support/prove.ts';

const SCALE = isProving ? 'whole' : 'short';
const TIMEOUT_MS = isProving ? 600_000 : 60_000;

function expectAllOk(rows: readonly Row[]): void {
  if (isProving) console.table(rows);
  expect(rows.filter(({ ok }) => !ok)).toEqual([]);
}

describe('over real processes, a real Redis and a real HTTP store', () => {
  test('a fleet asks once: cold herd, slow store, failing store, hot key', { timeout: TIMEOUT_MS }, async () => {
    expectAllOk(await runFlights(SCALE));
  });

  test(
    'a leader that is killed is replaced, one that is paused overwrites nothing',
    { timeout: TIMEOUT_MS },
    async () => {
      expectAllOk(await runLeaders(SCALE));
    },
  );

  test('a purge is seen everywhere, whatever is lost on the way', { timeout: TIMEOUT_MS }, async () => {
    expectAllOk(await runPurges(SCALE));
  });
});
