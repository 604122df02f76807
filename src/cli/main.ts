/** The command line: one program, its commands, and what becomes of their errors. */
import { type Command, CommanderError } from 'commander';
import { ConfigError } from '../config/errors.ts';
import { StartError } from '../start-error.ts';
import { VERSION } from '../version.ts';
import { cacheCommand } from './cache/index.ts';
import { makeGroup } from './command.ts';
import { doctorCommand } from './doctor/index.ts';
import { CliError, exitCodeOf } from './errors.ts';
import { fleetCommand } from './fleet.ts';
import { keysCommand } from './keys/index.ts';
import { openapiCommand } from './openapi.ts';
import { sampleUpstreamCommand } from './sample-upstream.ts';
import { serveCommand } from './serve.ts';
import { processTerminal, type Terminal } from './terminal.ts';

/** Runs the command of these arguments and sets the exit status of the process. */
export async function main(argv: readonly string[]): Promise<void> {
  const terminal = processTerminal();
  // Whoever reads us may stop early (`| head`): then there is nothing left to say.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  try {
    await buildProgram(terminal).parseAsync(argv, { from: 'user' });
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    if (process.exitCode !== 0) report(error, argv, terminal);
  }
}

/** All commands. */
function buildProgram(terminal: Terminal): Command {
  const texts = {
    name: 'evalgate',
    summary: 'A read-through caching gateway in front of a store of sales-call coaching evaluations.',
    details:
      'Settings come from the environment and from a file; docs/configuration.md lists them.\n' +
      'Exit status: 0 done, 1 failed, 2 called wrongly.',
    examples: ['evalgate serve', 'evalgate keys create --help', 'evalgate doctor'],
  };
  return makeGroup(texts, terminal)
    .version(VERSION, '--version', 'print the version')
    .addCommand(serveCommand(terminal))
    .addCommand(sampleUpstreamCommand(terminal))
    .addCommand(keysCommand(terminal))
    .addCommand(cacheCommand(terminal))
    .addCommand(fleetCommand(terminal))
    .addCommand(doctorCommand(terminal))
    .addCommand(openapiCommand(terminal));
}

function report(error: unknown, argv: readonly string[], terminal: Terminal): void {
  const message = messageOf(error);
  // Commander has said its errors already.
  if (!(error instanceof CommanderError)) terminal.err(`${message}\n`);
  if (argv.includes('--json')) terminal.out(`${JSON.stringify({ error: { message } }, null, 2)}\n`);
}

/** Errors whose message says all that there is to say. */
const TOLD_IN_FULL = [CliError, ConfigError, CommanderError, StartError];

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return 'something failed that is no error';
  // Anything else is a fault of the program itself: whoever reports it needs the stack.
  return TOLD_IN_FULL.some((kind) => error instanceof kind) ? error.message : (error.stack ?? error.message);
}
