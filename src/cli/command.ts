/** The parts that all commands share: help with examples, `--json`, parsers of options, and errors with an exit status. */
import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { readSecret } from '../config/variable.ts';
import { ID_PATTERN } from '../domain/vocabulary.ts';
import { write, writeJson } from './output.ts';
import { DURATION_FORM, formatDuration, parseDuration } from '../time/duration.ts';

/** In a checkout, which runs its sources, npx finds it; an installed package has it on the PATH. */
export const COMMAND = import.meta.url.endsWith('.ts') ? 'npx evalgate' : 'evalgate';

/** A failure whose message is all that the user needs: what was given, what is allowed, what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
  /** 1: it failed. 2: it was called wrongly. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A wrong call: what is wrong, and what to do instead. */
export function wrongCall(message: string): CliError {
  return new CliError(message, 2);
}

export interface CommandTexts {
  readonly name: string;
  readonly summary: string;
  /** Follows the summary in the help of the command itself. */
  readonly details?: string;
  readonly examples: readonly string[];
}

/** A command that prints an answer. */
export function makeCommand(texts: CommandTexts): Command {
  return makeGroup(texts).option('--json', 'print one JSON document, and nothing else, on standard output');
}

/** A command that only holds others. */
export function makeGroup({ name, summary, details, examples }: CommandTexts): Command {
  return new Command(name)
    .summary(summary)
    .description(details === undefined ? summary : `${summary}\n\n${details}`)
    .addHelpText('after', `\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => write('stdout', text), writeErr: (text) => write('stderr', text) })
    .showHelpAfterError('Run with --help to see what is possible.');
}

/** A command of an earlier release: with any arguments, it fails and explains its replacement. */
export function makeRemoved(name: string, explanation: string): Command {
  return makeGroup({ name, summary: 'removed', examples: [] })
    .helpOption(false)
    .allowUnknownOption()
    .argument('[anything...]')
    .action(() => {
      throw wrongCall(explanation);
    });
}

/** Prints the answer of a command: the document with `--json`, else the text. */
export function print(command: Command, document: unknown, text: string): void {
  const { json } = command.opts<{ json?: boolean }>();
  if (json === true) writeJson(document, 2);
  else write('stdout', `${text}\n`);
}

/** A parser of an option or argument. `parse` returns null for what is not allowed; `allowed` says what is. */
export function parser<T>(parse: (text: string) => T | null, allowed: string): (text: string) => T {
  return (text) => {
    const value = parse(text);
    if (value === null) throw new InvalidArgumentError(`Allowed: ${allowed}.`);
    return value;
  };
}

export function integerBetween(min: number, max: number): (text: string) => number {
  return parser((text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : null;
  }, `an integer from ${min} to ${max}`);
}

/** A parser of a duration. It returns milliseconds. */
export function durationBetween(minMs: number, maxMs: number): (text: string) => number {
  return parser(
    (text) => {
      const value = parseDuration(text) ?? Number.NaN;
      return value >= minMs && value <= maxMs ? value : null;
    },
    `${DURATION_FORM}, from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`,
  );
}

/** A parser of what matches a pattern. */
export function matching(pattern: RegExp, allowed: string): (text: string) => string {
  return parser((text) => (pattern.test(text) ? text : null), allowed);
}

const keyId = matching(ID_PATTERN, 'the id of a key, as `evalgate keys list` shows it');

/** Parses the id of a key. An id is shown and logged, so a key in its place is refused and not repeated. */
export function parseKeyId(text: string): string {
  if (text.startsWith('evg_')) {
    throw wrongCall('Give the id of the key, not the key itself: `evalgate keys list` shows the ids.');
  }
  return keyId(text);
}

/** Makes a parser of one value a parser of an option that may be repeated. */
export function repeated<T>(
  parse: (text: string) => T,
): (text: string, previous: readonly T[] | undefined) => readonly T[] {
  return (text, previous = []) => [...previous, parse(text)];
}

/**
 * A secret from the variable `name` or the file that `<name>_FILE` names; null if neither is set. `parse` throws for an
 * invalid value. Throws CliError if it cannot be read.
 */
export function secretFrom<T>(name: string, parse: (written: string) => T): T | null {
  const reading = readSecret(name, process.env, (path) => readFileSync(path, 'utf8'));
  if (reading === null) return null;
  if (!('written' in reading)) {
    throw new CliError(`${reading.name}: given ${reading.given}; ${reading.problem}; allowed: ${reading.allowed}`);
  }
  try {
    return parse(String(reading.written));
  } catch (error) {
    throw new CliError(`${reading.name}: ${error instanceof Error ? error.message : 'it cannot be read'}`);
  }
}

/** Undefined if the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
