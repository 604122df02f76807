/** Amounts for tables, with three figures. Pure. */
import { figures } from './capacity-coefficients.ts';

export function percent(share: number): string {
  return `${figures(100 * share)} %`;
}

export function short(value: number): string {
  return figures(value);
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const;
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${figures(value / 1000 ** power)} ${units[power]}`;
}
