/**
 * The command line for tests, through its entry function in the test's own process: with an environment, streams and an
 * exit status of its own, as a shell would give it. One runs at a time.
 *
 *     const { status, stdout, stderr } = await runCli(['keys', 'list', '--admin', gateway.adminUrl]);
 */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { vi } from 'vitest';
import { z } from 'zod';
import { main } from '../../src/cli/main.ts';

export interface CliOptions {
  /** All that the command finds in its environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** The input of somebody at a terminal; without it there is no terminal. */
  readonly typed?: string;
}

export interface CliResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCli {
  /** Standard output and standard error so far. */
  readonly output: { stdout: string; stderr: string };
  readonly signal: (name: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void;
  readonly ended: Promise<CliResult>;
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

export function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return startCli(args, options).ended;
}

/** The document that a command prints with `--json`. Throws unless it ends with 0 and prints nothing else. */
export async function runJson(args: readonly string[], options: CliOptions = {}): Promise<unknown> {
  const { status, stdout, stderr } = await runCli([...args, '--json'], options);
  if (status !== 0 || stderr !== '') throw new Error(`evalgate ${args.join(' ')} ended with ${status}: ${stderr}`);
  const document: unknown = JSON.parse(stdout);
  return document;
}

/** Starts a command; resolves once its standard output matches. */
export async function startCliUntil(
  printed: RegExp,
  args: readonly string[],
  options: CliOptions = {},
): Promise<RunningCli> {
  const running = startCli(args, options);
  const early = running.ended.then(({ status, stderr }) => {
    throw new Error(`evalgate ${args.join(' ')} ended with ${status}: ${stderr}`);
  });
  const isPrinted = vi.waitUntil(() => printed.test(running.output.stdout), { timeout: 15_000, interval: 10 });
  await Promise.race([isPrinted, early]);
  early.catch(() => undefined);
  return running;
}

function startCli(args: readonly string[], { env = {}, stdin = '', typed }: CliOptions): RunningCli {
  const output = { stdout: '', stderr: '' };
  const input = new PassThrough();
  input.end(typed ?? stdin);
  const isTTY = typed !== undefined;
  const stdout = sink((text) => (output.stdout += text));
  const stderr = sink((text) => (output.stderr += text));
  const restore = [
    replace('stdout', stdout),
    replace('stderr', Object.assign(stderr, { isTTY })),
    replace('stdin', Object.assign(input, { isTTY })),
    replace('env', { ...env }),
  ];
  const before = new Map(SIGNALS.map((name) => [name, process.listeners(name)]));
  const added = (name: (typeof SIGNALS)[number]) =>
    process.listeners(name).filter((listener) => before.get(name)?.includes(listener) !== true);
  process.exitCode = 0;
  const run = async (): Promise<CliResult> => {
    try {
      await main(args);
      return { status: Number(process.exitCode), ...output };
    } finally {
      process.exitCode = 0;
      for (const name of SIGNALS) for (const listener of added(name)) process.off(name, listener);
      for (const put of restore) put();
    }
  };
  return {
    output,
    signal: (name) => {
      for (const listener of added(name)) listener(name);
    },
    ended: run(),
  };
}

function sink(write: (text: string) => void): PassThrough {
  const stream = new PassThrough();
  stream.setEncoding('utf8').on('data', write);
  return stream;
}

/** Puts another value in the place of a member of `process`; returns what takes it back. */
function replace(name: 'stdout' | 'stderr' | 'stdin' | 'env', value: unknown): () => void {
  const original = Object.getOwnPropertyDescriptor(process, name);
  if (original === undefined) throw new Error(`process has no ${name}`);
  Object.defineProperty(process, name, { value, configurable: true, writable: true, enumerable: true });
  return () => void Object.defineProperty(process, name, original);
}

const findingsSchema = z.object({
  ok: z.boolean(),
  checks: z.array(
    z.object({ name: z.string(), status: z.string(), message: z.string(), advice: z.string().nullable() }),
  ),
});

/** An admin address where nothing listens. */
export const NO_GATEWAY = ['--admin', 'http://127.0.0.1:1'];

/** The findings of `evalgate doctor`, with one line per finding. */
export async function runDoctor(env: Readonly<Record<string, string>>, args: readonly string[] = NO_GATEWAY) {
  const { status, stdout, stderr } = await runCli(['doctor', '--json', ...args], { env });
  const { ok, checks } = findingsSchema.parse(JSON.parse(stdout));
  assert.deepEqual([status, stderr], [ok ? 0 : 1, '']);
  return { ok, checks, lines: checks.map(({ name, status: found, message }) => `${found} ${name}: ${message}`) };
}

/** The cells of a table that a command printed, by lines. */
export function cellsOf(text: string): readonly (readonly string[])[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
}
