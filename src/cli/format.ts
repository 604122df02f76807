/** Output for people at a terminal: tables, amounts and bars. */
import { printable } from './output.ts';

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

const BAR_CELLS = 24;
/** The last cell of a bar grows by eighths. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A bar of a ratio from 0 to 1. */
export function bar(ratio: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, ratio)) * BAR_CELLS * EIGHTHS.length);
  return '█'.repeat(Math.floor(eighths / EIGHTHS.length)) + (EIGHTHS[eighths % EIGHTHS.length] ?? '');
}
