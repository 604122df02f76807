/** `evalgate sample-upstream`: the bundled store alone, with its faults on request. */
import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { readSecret } from '../config/environment.ts';
import {
  createSampleData,
  SampleUpstream,
  FAULT_OPTIONS,
  FaultOptionError,
  type Faults,
  parseFaults,
} from '../sample/index.ts';
import { answer, integerBetween, makeCommand } from './command.ts';
import { CliError, EXIT_CODES } from './errors.ts';
import type { Terminal } from './terminal.ts';

const DEFAULT_TOKEN = 'sample-token';

interface SampleOptions {
  readonly host: string;
  readonly port: number;
  readonly evaluations: number;
  readonly latency: number;
  readonly seed: number;
}

export function sampleUpstreamCommand(terminal: Terminal): Command {
  const command = makeCommand(
    {
      name: 'sample-upstream',
      summary: 'run the bundled sample store alone',
      details: `It asks for the bearer token of UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE, and for "${DEFAULT_TOKEN}" where neither is set.`,
      examples: [
        'evalgate sample-upstream',
        'evalgate sample-upstream --port 9090 --evaluations 500 --latency 0',
        'evalgate sample-upstream --error-rate 0.2 --hang-rate 0.05',
      ],
    },
    terminal,
  )
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <n>', 'port to listen on; 0 takes any free one', integerBetween(0, 65_535), 9090)
    .option('--evaluations <n>', 'how many evaluations it holds', integerBetween(1, 1_000_000), 5000)
    .option('--latency <ms>', 'median latency in milliseconds; 0 is none', integerBetween(0, 60_000), 120)
    .option('--seed <n>', 'another number, other data', integerBetween(0, 4_294_967_295), 1)
    .optionsGroup('Faults:');
  for (const { flag, kind, description } of FAULT_OPTIONS) {
    command.addOption(new Option(kind === 'switch' ? flag : `${flag} <${kind}>`, description));
  }
  return command.action(() => run(command, terminal));
}

async function run(command: Command, terminal: Terminal): Promise<void> {
  const { host, port, evaluations, latency, seed } = command.opts<SampleOptions>();
  const faults = faultsFrom(command.opts<Record<string, unknown>>());
  const givenToken = tokenFrom(terminal);
  const token = givenToken ?? DEFAULT_TOKEN;
  const data = createSampleData({ seed, evaluations });
  const store = new SampleUpstream({ data, token, latency, faults, seed });
  const { url } = await listen(() => store.listen(port, host), `${host}:${port}`);
  const { workspaceIds } = data;
  answer(terminal, command, {
    // A token that somebody chose is theirs to know.
    document: { url, token: givenToken === null ? token : null, evaluations, workspaceIds },
    text: [
      `The sample store listens on ${url} with ${evaluations} evaluations in ${workspaceIds.length} workspaces:`,
      ...workspaceIds.map((id) => `  ${id}`),
      'A gateway in front of it:',
      `  UPSTREAM_URL=${url} UPSTREAM_TOKEN=${givenToken === null ? token : '...'} npm start`,
    ].join('\n'),
  });
  await stopSignal();
  await store.close();
}

function faultsFrom(options: Readonly<Record<string, unknown>>): Faults {
  try {
    return parseFaults(options);
  } catch (error) {
    throw error instanceof FaultOptionError ? new CliError(error.message, EXIT_CODES.usage) : error;
  }
}

/** Null where the environment has none. */
function tokenFrom({ env }: Terminal): string | null {
  const reading = readSecret('UPSTREAM_TOKEN', env, (path) => readFileSync(path, 'utf8'));
  if (reading === null) return null;
  if ('written' in reading) return String(reading.written);
  throw new CliError(`${reading.name}: given ${reading.given}; ${reading.problem}; allowed: ${reading.allowed}`);
}

async function listen<T>(start: () => Promise<T>, where: string): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new CliError(`It cannot listen on ${where} (${code}). Give another --port or --host.`);
  }
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}
