/** Files of JSON lines, which imports take. */
import { readFile } from 'node:fs/promises';
import { text as readStream } from 'node:stream/consumers';
import { reasonOf } from '../config/errors.ts';
import { CliError, parseJson } from './command.ts';

export interface JsonLine {
  /** Its place in the file, from 1. */
  readonly number: number;
  /** Undefined if the line is not JSON. */
  readonly written: unknown;
}

export const NOT_JSON = 'not JSON; allowed: one JSON object per line';

/** Some editors and exports begin a file with one. */
const BYTE_ORDER_MARK = /^\u{FEFF}/u;

/** All lines but blank ones, of a file or, for `-`, of standard input. Rejects with CliError if it cannot be read. */
export async function readJsonLines(file: string): Promise<readonly JsonLine[]> {
  let text: string;
  try {
    text = file === '-' ? await readStream(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw new CliError(
      `${JSON.stringify(file)}: ${reasonOf(error)}. Give a file of JSON lines, or - for standard input.`,
    );
  }
  const lines = text.replace(BYTE_ORDER_MARK, '').split(/\r?\n/);
  return lines.flatMap((line, index) => (line.trim() === '' ? [] : [{ number: index + 1, written: parseJson(line) }]));
}
