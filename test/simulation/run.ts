/** `npm run simulate`: runs simulated fleets by their seeds, and shows what is against the rules. */
import { parseArgs } from 'node:util';
import { MUTATIONS, mutate } from './mutations.ts';

const HELP = `Simulates fleets: gateways, store, Redis, clients and operators in one process. A seed decides on everything that
happens, so the same seed does the same.

  npm run simulate -- --seed N              one fleet
  npm run simulate -- --seeds N [--from M]  so many fleets, up to the first that is against the rules
  --all                                     goes on after it
  --trace                                   shows what happened in any case
  --fault NAME                              with a fault put into the source, to see that it is found:
${Object.entries(MUTATIONS)
  .map(([name, { about }]) => `      ${name.padEnd(20)} ${about}`)
  .join('\n')}

The exit code is 1 if a fleet was against the rules.
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1' },
    from: { type: 'string', default: '1' },
    fault: { type: 'string' },
    all: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** Returns how many fleets were against the rules. */
async function run(): Promise<number> {
  if (values.fault !== undefined) mutate(values.fault);
  // Only now, so that the fault is in what is loaded.
  const { reportOf, simulate } = await import('./simulate.ts');
  const from = Number(values.seed ?? values.from);
  const count = values.seed === undefined ? Number(values.seeds) : 1;
  let bad = 0;
  for (let seed = from; seed < from + count; seed += 1) {
    const outcome = await simulate(seed);
    if (outcome.violations.length > 0) {
      bad += 1;
      process.stdout.write(`${reportOf(outcome, seed)}\n`);
      if (!values.all) break;
    } else if (values.trace) process.stdout.write(`${outcome.trace}\n`);
  }
  process.stdout.write(`${bad} of ${count} fleets were against the rules.\n`);
  return bad;
}

if (values.help) process.stdout.write(HELP);
else process.exitCode = (await run()) === 0 ? 0 : 1;
