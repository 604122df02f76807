import { describe, expect, test } from 'vitest';
import type { Row, Scale } from '../prove/row.ts';
import { run as isolation } from '../prove/rows/isolation.ts';
import { run as keys } from '../prove/rows/keys.ts';
import { run as quota } from '../prove/rows/quota.ts';
import { run as transcripts } from '../prove/rows/transcripts.ts';
import { isProving } from '../support/prove.ts';

const SCALE = isProving ? 'whole' : 'short';
const TIMEOUT_MS = isProving ? 900_000 : 60_000;

const BARS: readonly (readonly [what: string, run: (scale: Scale) => Promise<readonly Row[]>])[] = [
  ['R1, R2: the quota is exact, over four processes and to the second', quota],
  ['C8: a revocation is known everywhere at once, also where the word of it is lost', keys],
  ['K5, K6, C4: nothing crosses between tenants, whatever a fleet has cached', isolation],
  ['T5, T7, T8: transcripts walk whole, at a cost that is known', transcripts],
];

// One after another: they measure.
describe('over real processes and a real Redis', () => {
  test.each(BARS)('%s', { timeout: TIMEOUT_MS }, async (_, run) => {
    expect((await run(SCALE)).filter(({ ok }) => !ok)).toEqual([]);
  });
});
