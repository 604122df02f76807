import { describe, expect, test } from 'vitest';
import type { Row, Scale } from '../prove/row.ts';
import { run as isolation } from '../prove/rows/isolation.ts';
import { run as keys } from '../prove/rows/keys.ts';
import { run as quota } from '../prove/rows/quota.ts';
import { run as times } from '../prove/rows/times.ts';
import { run as transcripts } from '../prove/rows/transcripts.ts';
import { run as whatIfFleet } from '../prove/rows/what-if-fleet.ts';
import { run as whatIf } from '../prove/rows/what-if.ts';
import { isProving } from '../support/prove.ts';

const SCALE = isProving ? 'whole' : 'short';
const TIMEOUT_MS = isProving ? 900_000 : 60_000;

const BARS: readonly (readonly [what: string, run: (scale: Scale) => Promise<readonly Row[]>])[] = [
  ['R1, R2: the quota is exact, over four processes and to the second', quota],
  ['C8: a revocation is known everywhere at once, also where the word of it is lost', keys],
  ['K5, K6, C4: nothing crosses between tenants, whatever a fleet has cached', isolation],
  ['a time changed in one process rules in all of four within 1 s, outlives them all, and is in the audit', times],
  ['the what-if curves are what the cache then does, by a point at most, in 1 MB', whatIf],
  ['the what-if curves of a fleet are those of one process that sees all reads', whatIfFleet],
  ['T5, T7, T8: transcripts walk whole, at a cost that is known', transcripts],
];

// One after another: they measure.
describe('over real processes and a real Redis', () => {
  test.each(BARS)('%s', { timeout: TIMEOUT_MS }, async (_, run) => {
    const missed = (await run(SCALE)).filter(({ ok }) => !ok);
    expect(missed.map(({ name, measured }) => `${name}: ${measured}`)).toEqual([]);
  });
});
