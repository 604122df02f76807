/** The command line: one program, its commands, and how their errors are reported. */
import { fileURLToPath } from 'node:url';
import { type Command, CommanderError } from 'commander';
import { ConfigError } from '../config/errors.ts';
import { VERSION } from '../version.ts';
import { CliError, makeGroup } from './command.ts';
import { isFailureAwaited, write, writeJson } from './output.ts';
import { messageOf } from '../log/error.ts';
import { type CommandName, SUMMARIES } from './summaries.ts';

/** The root of the checkout or the package. */
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Each is loaded only when it is run. */
const COMMANDS: Readonly<Record<CommandName, () => Promise<Command>>> = {
  serve: async () => (await import('./commands.ts')).serveCommand(),
  'sample-upstream': async () => (await import('./sample-upstream.ts')).sampleUpstreamCommand(),
  keys: async () => (await import('./keys/index.ts')).keysCommand(),
  state: async () => (await import('./state/index.ts')).stateCommand(),
  cache: async () => (await import('./cache/index.ts')).cacheCommand(),
  changes: async () => (await import('./changes/index.ts')).changesCommand(),
  fleet: async () => (await import('./cache/stats.ts')).fleetCommand(),
  whoami: async () => (await import('./cache/stats.ts')).whoAmICommand(),
  health: async () => (await import('./health.ts')).healthCommand(),
  doctor: async () => (await import('./commands.ts')).doctorCommand(),
  sync: async () => (await import('./commands.ts')).syncCommand(),
  transcript: async () => (await import('./commands.ts')).transcriptCommand(),
  openapi: async () => (await import('./openapi.ts')).openapiCommand(),
};

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
    if (process.exitCode !== 0) await report(error, argv);
  }
}

/** A reader that stopped early (`| head`) has what it wanted. Any other error has lost an answer. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (isFailureAwaited()) return;
  if (error.code === 'EPIPE') process.exit();
  write('stderr', `Standard output takes nothing (${error.code}).\n`);
  process.exit(1);
}

/** The program with the command that the arguments begin with; with all of them, by name only, if they begin with none. */
async function buildProgram(name: string | undefined): Promise<Command> {
  const program = makeGroup({
    name: 'evalgate',
    summary: 'A read-through caching gateway in front of a store of sales-call coaching evaluations.',
    details:
      'Settings come from the environment and from a file; docs/configuration.md lists them.\n' +
      'Exit status: 0 for success, 1 for a failure, 2 for a wrong call.\n' +
      `docs/ is in this folder; begin with docs/index.md:\n${ROOT}`,
    examples: ['evalgate serve', 'evalgate keys create --help', 'evalgate doctor'],
  }).version(VERSION, '--version', 'print the version');
  const names = Object.keys(SUMMARIES).filter((one): one is CommandName => one in SUMMARIES);
  const named = names.find((one) => one === name);
  if (named !== undefined) return program.addCommand(await COMMANDS[named]());
  for (const one of names) program.addCommand(makeGroup({ name: one, summary: SUMMARIES[one], examples: [] }));
  return program;
}

/** 0: done. 1: it failed. 2: it was called wrongly. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode;
  // Commander also ends --help and --version with an error, whose status is 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  return 1;
}

async function report(error: unknown, argv: readonly string[]): Promise<void> {
  const stack = error instanceof Error && !(await isExplained(error)) ? error.stack : undefined;
  const message = stack ?? messageOf(error);
  // Commander has printed its errors already.
  if (!(error instanceof CommanderError)) write('stderr', `${message}\n`);
  if (argv.includes('--json')) writeJson({ error: { message } }, 2);
}

/** Whether the message is all that the user needs. Any other error is a fault of the program, whose report needs the stack. */
async function isExplained(error: Error): Promise<boolean> {
  if ([CliError, ConfigError, CommanderError].some((kind) => error instanceof kind)) return true;
  const { StartError } = await import('../server/server.ts');
  return error instanceof StartError;
}
