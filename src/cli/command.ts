/** How every command is made: help with examples, `--json`, and errors that come back as exceptions. */
import { Command, InvalidArgumentError } from 'commander';
import { DURATION_FORM, formatDuration, parseDuration } from '../duration.ts';
import { CliError, EXIT_CODES } from './errors.ts';
import type { Terminal } from './terminal.ts';

export interface CommandTexts {
  readonly name: string;
  readonly summary: string;
  /** What there is to say beyond the summary. */
  readonly details?: string;
  readonly examples: readonly string[];
}

/** A command that answers. */
export function makeCommand(texts: CommandTexts, terminal: Terminal): Command {
  return makeGroup(texts, terminal).option('--json', 'print one JSON document, and nothing else, on standard output');
}

/** A command that only holds others. */
export function makeGroup({ name, summary, details, examples }: CommandTexts, terminal: Terminal): Command {
  return new Command(name)
    .summary(summary)
    .description(details === undefined ? summary : `${summary}\n\n${details}`)
    .addHelpText('after', `\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => terminal.out(text), writeErr: (text) => terminal.err(text) })
    .showHelpAfterError('Run with --help to see what is possible.');
}

/** A command of an earlier release: whatever follows its name, it fails and says what takes its place. */
export function makeRemoved(name: string, explanation: string, terminal: Terminal): Command {
  return makeGroup({ name, summary: 'removed', examples: [] }, terminal)
    .helpOption(false)
    .allowUnknownOption()
    .argument('[anything...]')
    .action(() => {
      throw new CliError(explanation, EXIT_CODES.usage);
    });
}

/** Gives the answer: the document with `--json`, else the text. */
export function answer(
  terminal: Terminal,
  command: Command,
  { document, text }: { document: unknown; text: string },
): void {
  const { json } = command.opts<{ json?: boolean }>();
  terminal.out(json === true ? `${JSON.stringify(document, null, 2)}\n` : `${text}\n`);
}

/** A parser of an option that is an integer. */
export function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Allowed: an integer from ${min} to ${max}.`);
  };
}

/** A parser of an option that is a duration, in milliseconds. */
export function durationBetween(minMs: number, maxMs: number): (text: string) => number {
  return (text) => {
    const value = parseDuration(text) ?? Number.NaN;
    if (value >= minMs && value <= maxMs) return value;
    throw new InvalidArgumentError(
      `Allowed: ${DURATION_FORM}, from ${formatDuration(minMs)} to ${formatDuration(maxMs)}.`,
    );
  };
}

/** A parser of an option or argument of that form; `allowed` says it in words. Repeated, it collects. */
export function matching(pattern: RegExp, allowed: string): (text: string) => string {
  return (text) => {
    if (pattern.test(text)) return text;
    throw new InvalidArgumentError(`Allowed: ${allowed}.`);
  };
}

/** Makes a parser of one value a parser of an option that may be repeated. */
export function repeated<T>(
  parse: (text: string) => T,
): (text: string, previous: readonly T[] | undefined) => readonly T[] {
  return (text, previous = []) => [...previous, parse(text)];
}
