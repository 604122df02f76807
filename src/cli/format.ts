/** Output for people at a terminal, and questions to them: tables, amounts, durations and bars. */
import { createInterface } from 'node:readline/promises';
import { DURATION_UNITS } from '../duration.ts';

/**
 * Replaces control and format characters: names come from others, and could hold sequences that move the cursor or
 * rename the window.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\uFFFD');
}

/** Null is shown as `-`. */
export type Cell = string | number | null;

/** A table: columns as wide as their widest cell, two spaces between them. The first row is the heading. */
export function columns(rows: readonly (readonly Cell[])[]): string {
  const cells = rows.map((row) => row.map((cell) => printable(String(cell ?? '-'))));
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => width(row[column] ?? ''))));
  const line = (row: readonly string[]): string =>
    row.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell))).join('  ');
  return cells.map((row) => line(row).trimEnd()).join('\n');
}

function width(text: string): number {
  return Array.from(text).length;
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** A number of bytes with three significant digits, in units of 1000 like the configuration. */
export function bytesText(bytes: number): string {
  const thousands = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), BYTE_UNITS.length - 1);
  const amount = bytes / 1000 ** thousands;
  const digits = thousands === 0 || amount >= 99.95 ? 0 : 1;
  return `${amount.toFixed(digits)} ${BYTE_UNITS[thousands] ?? 'B'}`;
}

/** `1 list`, `2 lists`. */
export function countText(count: number, one: string, more: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : more}`;
}

/** A ratio from 0 to 1. */
export function percentText(ratio: number): string {
  return `${(ratio * 100).toFixed(1)} %`;
}

/** A rate per second with about three significant digits. */
export function rateText(perSecond: number): string {
  if (perSecond > 0 && perSecond < 0.01) return '<0.01';
  return perSecond.toFixed(perSecond >= 99.5 ? 0 : perSecond >= 9.95 ? 1 : 2);
}

const FROM_SECONDS = [...DURATION_UNITS].filter(([unit]) => unit !== 'ms');

/** A duration in its two largest units, such as `1h 5m` or `4s`; below a second in milliseconds with three digits. */
export function durationText(durationMs: number): string {
  const first = FROM_SECONDS.findIndex(([, unitMs]) => durationMs >= unitMs);
  if (first < 0) return `${Number(durationMs.toPrecision(3))}ms`;
  const parts: string[] = [];
  let leftMs = durationMs;
  for (const [unit, unitMs] of FROM_SECONDS.slice(first, first + 2)) {
    const amount = Math.floor(leftMs / unitMs);
    leftMs -= amount * unitMs;
    if (amount > 0) parts.push(`${amount}${unit}`);
  }
  return parts.join(' ');
}

const BAR_CELLS = 24;
/** The last cell of a bar grows by eighths. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A bar of a ratio from 0 to 1. */
export function bar(ratio: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, ratio)) * BAR_CELLS * EIGHTHS.length);
  return '█'.repeat(Math.floor(eighths / EIGHTHS.length)) + (EIGHTHS[eighths % EIGHTHS.length] ?? '');
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
    const reply = await Promise.race([terminal.question(`${question} [y/N] `), closed]);
    return /^y(?:es)?$/i.test(reply.trim());
  } catch {
    return false;
  } finally {
    terminal.close();
  }
}
