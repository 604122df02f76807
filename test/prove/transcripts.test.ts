/** Transcripts: what walks through their pages give, on many random ones, and what parsing and paging cost. */
import { TRANSCRIPT_FORMATS } from '../../src/domain/vocabulary.ts';
import * as fc from 'fast-check';
import { join } from 'node:path';
import { test } from 'vitest';
import { BARS, BODY_UNITS, costsSchema, HOSTILE_UNITS, missedBars } from '../bench/transcript-bars.ts';
import { forTest } from '../support/opened.ts';
import { Fleet } from '../support/fleet.ts';
import { runProcess } from '../support/process.ts';
import { aTranscript } from '../support/records.ts';
import { pageLimits } from '../support/transcript-arbitraries.ts';
import { anyTranscript, expectPagesByOracle, expectWholeWalk } from '../support/transcript-properties.ts';
import { mixedBody, wordsOfTurns } from '../support/transcript-words.ts';
import { count, ms, p99, prove } from './bar.ts';

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

test('T2a: words', (context) => {
  const hint = fc.option(fc.constantFrom(...TRANSCRIPT_FORMATS));
  const property = fc.property(mixedBody, hint, (body, declared) => {
    const { written, read, isWhole } = wordsOfTurns(body, declared);
    return isWhole && read.join(' ') === written.join(' ');
  });
  const { failed, numRuns, counterexample } = fc.check(property, { numRuns: CASES });
  prove(context, {
    name: 'transcripts, no word of any mix of forms is lost or doubled',
    bar: `on ${count(CASES)} random bodies`,
    measured: failed ? `not on number ${numRuns}: ${JSON.stringify(counterexample)}` : `on ${count(numRuns)}`,
    ok: !failed,
  });
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
  const slowest = hostile.find(({ quickestCpuMs }) => quickestCpuMs === most(hostile, 'quickestCpuMs'))?.name ?? '';
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
      bar: `${hostile.length} bodies made to be slow: ${size} at most ${BARS.parseCpuMs} ms of CPU (best of the rounds); ${HOSTILE_UNITS / 1e6} MB and more under ${count(BARS.hostileCpuMs)} ms of CPU, no hold over ${BARS.holdMs} ms of the thread's CPU, at most ${BARS.hostileMB} MB held`,
      measured: `at most ${most(hostile, 'quickestCpuMs')} ms (${slowest}); ${hostileCpuMs} ms, ${most(hostile, 'holdCpuMs')} ms (${most(hostile, 'holdMs')} ms by the clock), ${most(hostile, 'heldMB')} MB`,
      ok: missed.hostile.length === 0,
    },
  );
});

/** Bodies whose every cut has to be thought about: 100 kB of accented letters, and 2 MB each. */
const PAGED = {
  accents: 'A: e\u0301\n'.repeat(16_000),
  'accents, 2 MB': 'A: e\u0301\n'.repeat(330_000),
  'Cyrillic, 2 MB': 'Аня: мы говорим о цене\n'.repeat(50_000),
  'emoji, 2 MB': 'A: 👩‍👩‍👧‍👦🇩🇪👍🏽 क्षत्रिय\n'.repeat(30_000),
};

test('one key pages a transcript in 120 ways', async (context) => {
  const [victimMs, grownMB, perSecond] = [30, 100, 50];
  const measured: string[] = [];
  const ok: boolean[] = [];
  for (const [name, body] of Object.entries(PAGED)) {
    const fleet = await forTest(Fleet.start({ isProbed: true }));
    fleet.store.server.put({ transcripts: [aTranscript({ evaluationId: 'paged', body })] });
    const [attacker, victim] = [await fleet.first.issueKey(), await fleet.first.issueKey({ perMinute: 100_000 })];
    const [attack, load] = [await fleet.load(), await fleet.load()];
    const path = '/v2/calls/paged/transcript?maxChars=1&pageSize=';
    await load.run(fleet.targets(['/v2/calls/warm'], victim), { perSecond, forMs: 2000 });
    await attack.burst(fleet.targets([`${path}200`], attacker), 1);
    const before = fleet.first.memory().nowBytes;
    fleet.first.forgetPeaks();
    await load.begin(fleet.targets(['/v2/calls/warm'], victim), perSecond);
    const pages = Array.from({ length: 120 }, (_, i) => `${path}${i + 1}`);
    const answers = await attack.burst(fleet.targets(pages, attacker), 1);
    const after = fleet.first.memory().peakBytes;
    const reads = await load.end();
    const { heldCpuMs } = fleet.first.hold();
    const grown = (after - before) / 1e6;
    measured.push(
      `${name}: p99 ${ms(p99(reads))}, ${grown.toFixed(0)} MB, event loop held ${ms(heldCpuMs)} of its CPU at most`,
    );
    ok.push(p99(reads) <= victimMs && grown <= grownMB && answers.every(({ status }) => status === 200));
    ok.push(reads.every(({ status }) => status === 200));
  }
  prove(context, {
    name: 'transcripts, 120 ways to page one',
    bar: `maxChars=1, pageSize=1 to 120 at once: another key reads from memory with a p99 of at most ${ms(victimMs)}, resident memory grows by at most ${grownMB} MB, everything is answered`,
    measured: measured.join('; '),
    ok: ok.every(Boolean),
  });
});
