/** The options of the benchmark. Prints what is wrong with them, and ends the process with status 1. */
import { Command, InvalidArgumentError } from 'commander';

export interface BenchOptions {
  readonly only: readonly string[];
  readonly seconds: number;
  readonly rounds: number;
  readonly warmUpSeconds: number;
  readonly memorySeconds: number;
}

/** @param cases - All there are: what is run if none is named. */
export function readOptions(cases: readonly string[], argv: readonly string[]): BenchOptions {
  return new Command('npm run bench --')
    .description('Measures what a request costs, beside other servers with the same bodies. Status 1: a bar is missed.')
    .option('--only <names>', `these only, with commas between them: ${cases.join(', ')}`, namesIn(cases), cases)
    .option('--seconds <number>', 'of one round', positive, 2)
    .option('--rounds <number>', 'of each server; ratios are medians of theirs', positive, 9)
    .option('--warm-up-seconds <number>', 'of each server before it is measured', positive, 20)
    .option('--memory-seconds <number>', 'how long memory is watched under load', positive, 600)
    .allowExcessArguments(false)
    .parse(argv, { from: 'user' })
    .opts<BenchOptions>();
}

function positive(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new InvalidArgumentError('A number above 0 is wanted.');
  return number;
}

function namesIn(cases: readonly string[]): (text: string) => readonly string[] {
  return (text) => {
    const names = text.split(',').map((name) => name.trim());
    if (names.every((name) => cases.includes(name))) return names;
    throw new InvalidArgumentError(`Allowed: ${cases.join(', ')}.`);
  };
}
