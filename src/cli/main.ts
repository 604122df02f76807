/** The command line: one program, its commands, and how their errors are reported. */
import { type Command, CommanderError } from 'commander';
import { ConfigError } from '../config/errors.ts';
import { StartError } from '../server/server.ts';
import { VERSION } from '../version.ts';
import { CliError, makeGroup } from './command.ts';
import { isFailureAwaited, write, writeJson } from './output.ts';
import { messageOf } from '../log/error.ts';

/** In the order of the help. Each is loaded only when it is run: a gateway needs none of the others. */
const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ['serve', async () => (await import('./serve.ts')).serveCommand()],
  ['sample-upstream', async () => (await import('./sample-upstream.ts')).sampleUpstreamCommand()],
  ['keys', async () => (await import('./keys/index.ts')).keysCommand()],
  ['state', async () => (await import('./state/index.ts')).stateCommand()],
  ['cache', async () => (await import('./cache/index.ts')).cacheCommand()],
  ['fleet', async () => (await import('./cache/stats.ts')).fleetCommand()],
  ['whoami', async () => (await import('./cache/stats.ts')).whoAmICommand()],
  ['health', async () => (await import('./health.ts')).healthCommand()],
  ['doctor', async () => (await import('./doctor/index.ts')).doctorCommand()],
  ['sync', async () => (await import('./sync/index.ts')).syncCommand()],
  ['transcript', async () => (await import('./transcript.ts')).transcriptCommand()],
  ['openapi', async () => (await import('./openapi.ts')).openapiCommand()],
]);

/** Runs the command of these arguments and sets the exit status of the process. */
export async function main(argv: readonly string[]): Promise<void> {
  // Without standard error only the exit status shows a failure.
  process.stderr.on('error', () => undefined);
  // A gateway serves on, whether its output is taken or not.
  process.stdout.on('error', argv[0] === 'serve' ? () => undefined : onOutputError);
  try {
    const program = await buildProgram(argv[0]);
    await program.parseAsync(argv, { from: 'user' });
  } catch (error) {
    process.exitCode = exitCodeOf(error);
    if (process.exitCode !== 0) report(error, argv);
  }
}

/** A reader that stopped early (`| head`) has what it wanted. Any other error has lost an answer. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (isFailureAwaited()) return;
  if (error.code === 'EPIPE') process.exit();
  write('stderr', `Standard output takes nothing (${error.code}).\n`);
  process.exit(1);
}

/** The program with the command of that name; with all of them if there is none, for help and "did you mean". */
async function buildProgram(name: string | undefined): Promise<Command> {
  const program = makeGroup({
    name: 'evalgate',
    summary: 'A read-through caching gateway in front of a store of sales-call coaching evaluations.',
    details:
      'Settings come from the environment and from a file; docs/configuration.md lists them.\n' +
      'Exit status: 0 for success, 1 for a failure, 2 for a wrong call.',
    examples: ['evalgate serve', 'evalgate keys create --help', 'evalgate doctor'],
  }).version(VERSION, '--version', 'print the version');
  const named = COMMANDS.get(name ?? '');
  for (const load of named === undefined ? COMMANDS.values() : [named]) program.addCommand(await load());
  return program;
}

/** 0: done. 1: it failed. 2: it was called wrongly. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode;
  // Commander also ends --help and --version with an error, whose status is 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  return 1;
}

/** Errors whose message is all that the user needs. Any other is a fault of the program, whose report needs the stack. */
const SELF_EXPLAINING = [CliError, ConfigError, CommanderError, StartError];

function report(error: unknown, argv: readonly string[]): void {
  const isExplained = SELF_EXPLAINING.some((kind) => error instanceof kind);
  const stack = error instanceof Error && !isExplained ? error.stack : undefined;
  const message = stack ?? messageOf(error);
  // Commander has printed its errors already.
  if (!(error instanceof CommanderError)) write('stderr', `${message}\n`);
  if (argv.includes('--json')) writeJson({ error: { message } }, 2);
}
