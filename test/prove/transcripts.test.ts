/** Transcripts: what walks through their pages give, on many random ones, and what parsing and paging cost. */
import * as fc from 'fast-check';
import { join } from 'node:path';
import { test } from 'vitest';
import { BARS, BODY_UNITS, costsSchema, missedBars } from '../bench/transcript-bars.ts';
import { runProcess } from '../support/process.ts';
import { pageLimits } from '../support/transcript-arbitraries.ts';
import { anyTranscript, expectPagesByOracle, expectWholeWalk } from '../support/transcript-properties.ts';
import { count, prove } from './bar.ts';

const CASES = 10_000;
const BENCH = join(import.meta.dirname, '../bench/transcript-costs.ts');

/** Held for as many transcripts as are asked for, or the smallest one for which it isn't. */
function proveProperty(context: Parameters<typeof prove>[0], name: string, holds: typeof expectWholeWalk): void {
  const { failed, numRuns, errorInstance } = fc.check(fc.property(anyTranscript, pageLimits, fc.boolean(), holds), {
    numRuns: CASES,
  });
  prove(context, {
    name: `transcripts, ${name}`,
    bar: `on ${count(CASES)} random transcripts`,
    measured: failed ? `not on number ${numRuns}: ${String(errorInstance).split('\n')[0]}` : `on ${count(numRuns)}`,
    ok: !failed,
  });
}

test('T5, T6: pages', (context) => {
  proveProperty(context, 'every page as by a plain oracle', expectPagesByOracle);
});

test('T7, T8: walks', (context) => {
  proveProperty(context, 'walks are whole, raw pages are the body, no cap is broken', expectWholeWalk);
});

function most<K extends string>(rows: readonly Readonly<Record<K, number>>[], column: K): number {
  return Math.max(...rows.map((row) => row[column]));
}

test('costs', async (context) => {
  // In a process of its own, as a gateway runs it.
  const { stdout, stderr } = await runProcess(process.execPath, [BENCH]);
  if (stdout === '') throw new Error(`The benchmark printed nothing: ${stderr}`);
  const costs = costsSchema.parse(JSON.parse(stdout));
  const { parsing, paging, hostile } = costs;
  const missed = missedBars(costs);
  const size = `${BODY_UNITS / 1e6} MB`;
  const steepest = parsing.find(({ ratio }) => ratio === most(parsing, 'ratio'))?.format ?? '';
  const hostileCpuMs = Math.max(most(hostile, 'parseCpuMs'), most(hostile, 'tinyPagesCpuMs'));
  prove(
    context,
    {
      name: 'transcripts, parse',
      bar: `${size} of each format: under ${BARS.parseCpuMs} ms of CPU the first time, at most ${BARS.growth} × a tenth of it (best of the rounds), no hold of the event loop over ${BARS.holdMs} ms of its thread's CPU`,
      measured: `at most ${most(parsing, 'firstCpuMs')} ms, ${most(parsing, 'ratio')} × (${steepest}), ${most(parsing, 'holdCpuMs')} ms (${most(parsing, 'holdMs')} ms by the clock)`,
      ok: missed.parsing.length === 0,
    },
    {
      name: 'transcripts, pages',
      bar: `${size}, ${paging.length} kinds of pages: by best times, the last page costs at most ${BARS.pageRatio} × page 1, the last dozen at most ${BARS.pageRatio} × the first`,
      measured: `at most ${most(paging, 'ratio')} ×; late pages take ${most(paging, 'lateMicros')} µs each at most`,
      ok: missed.paging.length === 0,
    },
    {
      name: 'transcripts, hostile',
      bar: `${hostile.length} bodies made to be slow, ${size} and more: under ${count(BARS.hostileCpuMs)} ms of CPU, no hold over ${BARS.holdMs} ms of the thread's CPU, at most ${BARS.hostileMB} MB held`,
      measured: `at most ${hostileCpuMs} ms, ${most(hostile, 'holdCpuMs')} ms (${most(hostile, 'holdMs')} ms by the clock), ${most(hostile, 'heldMB')} MB`,
      ok: missed.hostile.length === 0,
    },
  );
});
