import { expect } from 'vitest';
import type { Row, Scale } from '../prove/row.ts';
import { isProving } from './prove.ts';

/** For tests that show a row of `npm run prove`: whole it takes minutes, short on a busy machine too. */
export const ROW_TIMEOUT_MS = isProving ? 600_000 : 120_000;

/** Measures the rows, short unless they are to be shown whole. */
export async function expectAllOk(run: (scale: Scale) => Promise<readonly Row[]>): Promise<void> {
  const rows = await run(isProving ? 'whole' : 'short');
  if (isProving) console.table(rows);
  expect(rows.filter(({ ok }) => !ok)).toEqual([]);
}
