/** The short forms of the bars of the guard; `npm run prove -- --only guard` shows them whole. */
import { expect, test } from 'vitest';
import { run } from '../prove/rows/guard.ts';
import { isProving } from '../support/prove.ts';

test(
  'a store that fails is left alone, and one that bears little gets no more than it bears',
  { timeout: isProving ? 300_000 : 60_000 },
  async () => {
    const rows = await run(isProving ? 'whole' : 'short');
    expect(rows.filter(({ ok }) => !ok)).toEqual([]);
  },
);
