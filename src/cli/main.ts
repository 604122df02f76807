/** The command line: one program, its commands, and what becomes of their errors. */
import { type Command, CommanderError } from 'commander';
import { ConfigError } from '../config/errors.ts';
import { StartError } from '../server.ts';
import { VERSION } from '../version.ts';
import { makeGroup } from './command.ts';
import { CliError, exitCodeOf } from './errors.ts';
import { processTerminal, type Terminal } from './terminal.ts';

type Make = (terminal: Terminal) => Command;

/** In the order of the help. Each is loaded where it is run: a gateway needs none of the others. */
const COMMANDS: ReadonlyMap<string, () => Promise<Make>> = new Map([
  ['serve', async () => (await import('./serve.ts')).serveCommand],
  ['sample-upstream', async () => (await import('./sample-upstream.ts')).sampleUpstreamCommand],
  ['keys', async () => (await import('./keys/index.ts')).keysCommand],
  ['cache', async () => (await import('./cache/index.ts')).cacheCommand],
  ['fleet', async () => (await import('./fleet.ts')).fleetCommand],
  ['doctor', async () => (await import('./doctor/index.ts')).doctorCommand],
  ['openapi', async () => (await import('./openapi.ts')).openapiCommand],
]);

/** Runs the command of these arguments and sets the exit status of the process. */
export async function main(argv: readonly string[]): Promise<void> {
  const terminal = processTerminal();
  // Whoever reads us may stop early (`| head`): then there is nothing left to say.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  try {
    const program = await buildProgram(argv[0], terminal);
    await program.parseAsync(argv, { from: 'user' });
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    if (process.exitCode !== 0) report(error, argv, terminal);
  }
}

/** With the command of that name, or with all of them where there is none: for help, and to say what may have been meant. */
async function buildProgram(name: string | undefined, terminal: Terminal): Promise<Command> {
  const texts = {
    name: 'evalgate',
    summary: 'A read-through caching gateway in front of a store of sales-call coaching evaluations.',
    details:
      'Settings come from the environment and from a file; docs/configuration.md lists them.\n' +
      'Exit status: 0 done, 1 failed, 2 called wrongly.',
    examples: ['evalgate serve', 'evalgate keys create --help', 'evalgate doctor'],
  };
  const program = makeGroup(texts, terminal).version(VERSION, '--version', 'print the version');
  const named = COMMANDS.get(name ?? '');
  for (const load of named === undefined ? COMMANDS.values() : [named]) {
    const make = await load();
    program.addCommand(make(terminal));
  }
  return program;
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
