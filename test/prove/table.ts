/** Bars as a Markdown table. */
import type { Bar } from './bar.ts';

export function tableOf(bars: readonly Bar[]): string {
  return [
    '| what | bar | measured | ok |',
    '|---|---|---|---|',
    ...bars.map(({ name, bar, measured, ok }) => line([name, bar, measured, ok ? 'yes' : '**no**'])),
  ].join('\n');
}

function line(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ')).join(' | ')} |`;
}
