/**
 * Measures what a request costs, beside other servers with the same bodies, and prints tables as Markdown. Exits with
 * status 1 if a bar is missed. Progress goes to stderr. Linux only: the CPU time comes from /proc.
 * Usage: node test/bench/run.ts --help
 */
import { describeMachine } from '../prove/machine.ts';
import { Bench } from './gateway/bench.ts';
import type { Case, CaseResult, Table } from './gateway/case.ts';
import { answers } from './gateway/cases/answers.ts';
import { earlier } from './gateway/cases/earlier.ts';
import { hotList } from './gateway/cases/hot-list.ts';
import { growth } from './gateway/cases/growth.ts';
import { codings, singles } from './gateway/cases/hot-reads.ts';
import { latency } from './gateway/cases/latency.ts';
import { miss, overLimit } from './gateway/cases/misses.ts';
import { memory } from './gateway/cases/memory.ts';
import { start } from './gateway/cases/start.ts';
import { tracing } from './gateway/cases/tracing.ts';
import { workers } from './gateway/cases/workers.ts';
import { installPeers } from './gateway/node-peers.ts';
import { readOptions } from './options.ts';

const CASES: Readonly<Record<string, Case>> = {
  'hot-list': hotList,
  answers,
  singles,
  codings,
  miss,
  earlier,
  'over-limit': overLimit,
  latency,
  memory,
  workers,
  start,
  growth,
  tracing,
};

const { only, ...effort } = readOptions(Object.keys(CASES), process.argv.slice(2));
installPeers();
const machine = describeMachine();
const bench = await Bench.open(effort);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void bench.close().finally(() => process.exit(1)));
}
const results: CaseResult[] = [];
try {
  for (const name of only) results.push(await runCase(name));
} finally {
  await bench.close();
}
const rows = results.flatMap((result) => result.rows);
const out = [
  `${machine}; ${effort.rounds} rounds of ${effort.seconds} s each, medians; server on one core, load on the other`,
  markdown(
    ['what', 'bar', 'measured', 'ok'],
    rows.map(({ name, bar, measured, ok }) => [name, bar, measured, ok ? 'yes' : '**no**']),
  ),
  ...results.flatMap(({ tables }) =>
    tables.map(({ title, head, lines }: Table) => `${title}\n\n${markdown(head, lines)}`),
  ),
];
process.stdout.write(`${out.join('\n\n')}\n`);
process.exitCode = rows.every(({ ok }) => ok) ? 0 : 1;

async function runCase(name: string): Promise<CaseResult> {
  const run = CASES[name];
  if (run === undefined) throw new Error(`There is no ${name}; there are: ${Object.keys(CASES).join(', ')}.`);
  say(`${name} ...`);
  try {
    const result = await run(bench);
    for (const { name: what, measured, ok } of result.rows) say(`  ${ok ? 'ok' : 'MISSED'}  ${what}: ${measured}`);
    return result;
  } finally {
    await bench.stopServers();
  }
}

function markdown(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...lines.map(line)].join('\n');
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
