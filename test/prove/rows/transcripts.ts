/** Transcripts: the properties of parser and pager on many cases, and what both cost. Each in a process of its own. */
import { type ExecFileException, execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { BARS, BODY_UNITS, type Costs, costsSchema } from '../../bench/transcript-bars.ts';
import { CASES_FILE } from '../../support/prove.ts';
import { count, type Row, type Scale } from '../row.ts';

const ROOT = join(import.meta.dirname, '../../..');
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const BENCH = join(ROOT, 'test/bench/transcript.ts');
const TEST_TIMEOUT_MS = 600_000;
const HOSTILE_UNITS = { whole: BODY_UNITS, short: BODY_UNITS / 4 };

export async function run(scale: Scale): Promise<readonly Row[]> {
  return [await properties(scale), ...(await costs(scale))];
}

const reportSchema = z.object({ numPassedTests: z.int(), numFailedTests: z.int(), success: z.boolean() });

async function properties(scale: Scale): Promise<Row> {
  const least = scale === 'whole' ? 10_000 : 200;
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-prove-'));
  try {
    const [report, cases] = [join(folder, 'report.json'), join(folder, 'cases.txt')];
    const files = scale === 'whole' ? 'test/unit/transcript' : 'test/unit/transcript/pages.test.ts';
    const { output } = await runNode(
      [VITEST, 'run', files, '--reporter=json', `--outputFile=${report}`, `--testTimeout=${TEST_TIMEOUT_MS}`],
      { ...withoutVitest(), EVALGATE_PROVE: scale === 'whole' ? '1' : '0', [CASES_FILE]: cases },
    );
    const written = await readFile(report, 'utf8').catch(() => null);
    if (written === null) throw new Error(`The tests wrote no report: ${output}`);
    const { numPassedTests, numFailedTests, success } = reportSchema.parse(JSON.parse(written));
    const counts = (await readFile(cases, 'utf8')).trim().split('\n').map(Number);
    const all = counts.reduce((sum, one) => sum + one, 0);
    return {
      name: 'transcripts, properties',
      bar: `each on at least ${count(least)} random transcripts: walks are whole, raw pages rejoin to the body, no cap is broken, every page as by a plain oracle`,
      measured: `${counts.length} properties on ${count(all)} cases, ${numPassedTests} tests passed, ${numFailedTests} failed`,
      ok: success && numPassedTests > 0 && counts.every((one) => one >= least),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const benchSchema = z.object({
  costs: costsSchema,
  missed: z.object({ parsing: z.array(z.string()), paging: z.array(z.string()), hostile: z.array(z.string()) }),
});

async function costs(scale: Scale): Promise<readonly Row[]> {
  const effort = scale === 'whole' ? { rounds: 30, slack: 1 } : { rounds: 10, slack: 2 };
  const options = Object.entries({ 'hostile-units': HOSTILE_UNITS[scale], ...effort }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ]);
  const { output, errors } = await runNode([BENCH, '--json', ...options], process.env);
  if (output === '') throw new Error(`The benchmark printed nothing: ${errors}`);
  const { costs: measured, missed } = benchSchema.parse(JSON.parse(output));
  const rows = [
    parsingRow(measured.parsing, effort.slack),
    pagingRow(measured.paging, effort.slack),
    hostileRow(measured.hostile, HOSTILE_UNITS[scale], effort.slack),
  ];
  const groups = [missed.parsing, missed.paging, missed.hostile];
  return rows.map((row, i) => ({ ...row, ok: groups[i]?.length === 0 }));
}

function parsingRow(costsOf: Costs['parsing'], slack: number): Omit<Row, 'ok'> {
  return {
    name: 'transcripts, parse',
    bar: `${megabytes(BODY_UNITS)} of each format: under ${slack * BARS.parseCpuMs} ms of CPU the first time, at most ${slack * BARS.growth} × a tenth of it (best of the rounds), no hold of the event loop over ${slack * BARS.holdMs} ms of its thread's CPU`,
    measured: `at most ${most(costsOf, 'firstCpuMs')} ms, ${most(costsOf, 'ratio')} ×, ${most(costsOf, 'holdCpuMs')} ms (${most(costsOf, 'holdMs')} ms by the clock)`,
  };
}

function pagingRow(costsOf: Costs['paging'], slack: number): Omit<Row, 'ok'> {
  return {
    name: 'transcripts, pages',
    bar: `${megabytes(BODY_UNITS)}, ${costsOf.length} kinds of pages: by best times, the last page costs at most ${slack * BARS.pageRatio} × page 1, the last dozen at most ${slack * BARS.pageRatio} × the first`,
    measured: `at most ${most(costsOf, 'ratio')} ×; late pages take ${most(costsOf, 'lateMicros')} µs each at most`,
  };
}

function hostileRow(costsOf: Costs['hostile'], units: number, slack: number): Omit<Row, 'ok'> {
  const cpuMs = Math.max(most(costsOf, 'parseCpuMs'), most(costsOf, 'tinyPagesCpuMs'));
  return {
    name: 'transcripts, hostile',
    bar: `${costsOf.length} bodies made to be slow, ${megabytes(units)} and more: under ${count(slack * BARS.hostileCpuMs)} ms of CPU, no hold over ${slack * BARS.holdMs} ms of the thread's CPU, at most ${slack * BARS.hostileMB} MB held`,
    measured: `at most ${cpuMs} ms, ${most(costsOf, 'holdCpuMs')} ms (${most(costsOf, 'holdMs')} ms by the clock), ${most(costsOf, 'heldMB')} MB`,
  };
}

function megabytes(units: number): string {
  return `${units / 1e6} MB`;
}

function most<K extends string>(rows: readonly Readonly<Record<K, number>>[], column: K): number {
  return Math.max(...rows.map((row) => row[column]));
}

/** Those that a test of this run would hand on to a run of its own. */
function withoutVitest(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name)));
}

/** Also where the status is not 0: what the process has printed tells more. */
function runNode(args: readonly string[], env: NodeJS.ProcessEnv): Promise<{ output: string; errors: string }> {
  return new Promise((resolve) => {
    const done = (_: ExecFileException | null, output: string, errors: string): void => resolve({ output, errors });
    execFile(process.execPath, args, { cwd: ROOT, env, maxBuffer: 1e8 }, done);
  });
}
