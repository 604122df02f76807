/**
 * The one place where commands write. Much of what they print was written by others: names of keys, import files, answers of
 * whatever listens at an address. It could hold sequences that move the cursor, rename the window or reverse the line.
 */
import { fstatSync, statSync } from 'node:fs';
import { devNull } from 'node:os';
import { createInterface } from 'node:readline/promises';

/** Control characters, and those that change how others are shown. */
const CONTROLS = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** One line, with U+FFFD in place of line feeds and other controls. */
export function printable(text: string): string {
  return text.replaceAll(CONTROLS, '\uFFFD');
}

/** Prints lines for people. The text ends with a line feed if the last line is to end. */
export function write(stream: 'stdout' | 'stderr', text: string): void {
  process[stream].write(plainText(text));
}

function plainText(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** Prints one line per document, or with `space` an indented document. Controls are escaped, so the values stay the same. */
export function writeJson(document: unknown, space = 0): void {
  process.stdout.write(jsonText(document, space));
}

function jsonText(document: unknown, space: number): string {
  const text = JSON.stringify(document, null, space);
  return `${text.split('\n').map(escaped).join('\n')}\n`;
}

let isAwaited = false;

/** Whether a command deals with a failure of standard output by itself. */
export function isFailureAwaited(): boolean {
  return isAwaited;
}

/**
 * Prints the one answer of a command that nobody can get again. Rejects with the system's error if standard output does not
 * take it, and if it leads nowhere; standard output is then of no use any more.
 */
export async function deliver(answer: { readonly document: unknown } | { readonly text: string }): Promise<void> {
  if (isDiscarded()) throw new Error('standard output is closed or the null device');
  const text = 'text' in answer ? plainText(`${answer.text}\n`) : jsonText(answer.document, 2);
  isAwaited = true;
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
  isAwaited = false;
}

/** Whether standard output is the null device. Node.js opens it in place of a standard output that is closed (`>&-`). */
function isDiscarded(): boolean {
  // A stream that stands in for it has no descriptor.
  const fd: number | undefined = process.stdout.fd;
  const nullDevice = fd === undefined ? undefined : statSync(devNull, { throwIfNoEntry: false });
  if (fd === undefined || nullDevice === undefined) return false;
  const { dev, ino } = fstatSync(fd);
  return dev === nullDevice.dev && ino === nullDevice.ino;
}

/** JSON.stringify escapes only the controls of ASCII. */
function escaped(line: string): string {
  return line.replaceAll(CONTROLS, (control) =>
    control
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** Whether somebody is there to answer a question. */
export function isAtTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks on standard error: standard output holds only the answer of the command. Anything but a yes counts as no. */
export async function askYesOrNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  // At the end of the input question() stays pending; Ctrl-C rejects it.
  terminal.once('close', () => resolve(''));
  try {
    const reply = await Promise.race([terminal.question(`${printable(question)} [y/N] `), closed]);
    return /^y(?:es)?$/i.test(reply.trim());
  } catch {
    return false;
  } finally {
    terminal.close();
  }
}
