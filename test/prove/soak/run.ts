/**
 * Runs the steady soak, with a line of progress each minute, and prints a table of what was measured as Markdown. Exits with
 * status 1 if a bar is missed. Linux only: memory comes from /proc.
 * Usage: node test/prove/soak/run.ts --help
 */
import { writeFile } from 'node:fs/promises';
import { Command, InvalidArgumentError } from 'commander';
import { describeMachine } from '../machine.ts';
import { tableOf } from '../table.ts';
import { steady } from './steady.ts';

const { minutes, rate, out } = new Command('npm run soak --')
  .description('Steady load through edits, key changes, purges, failovers and rollouts. Status 1: a bar is missed.')
  .option('--minutes <number>', 'how long; trends are judged from 20 on', positive, 60)
  .option('--rate <number>', 'reads per second', positive, 300)
  .option('--out <file>', 'writes the results there too')
  .allowExcessArguments(false)
  .parse()
  .opts<{ readonly minutes: number; readonly rate: number; readonly out?: string }>();

const machine = describeMachine();
const results = await steady({ minutes, rate, say: (line) => void process.stderr.write(`${line}\n`) });
const missed = results.bars.filter(({ ok }) => !ok).length;
const text = [
  machine,
  tableOf(results.bars),
  results.minutes.map((line) => `- ${line}`).join('\n'),
  `${results.bars.length} bars, ${missed} missed`,
].join('\n\n');
if (out !== undefined) await writeFile(out, `${text}\n`);
process.stdout.write(`${text}\n`);
process.exitCode = missed === 0 ? 0 : 1;

function positive(value: string): number {
  const number = Number(value);
  if (!(number > 0)) throw new InvalidArgumentError('A number above 0 is wanted.');
  return number;
}
