import { appendFileSync } from 'node:fs';

/** Whether the bars are to be shown whole; otherwise tests do about a twentieth of them. */
export const isProving = process.env['EVALGATE_PROVE'] === '1';

/** That many, or a twentieth, rounded up. */
export function sized(whole: number): number {
  return isProving ? whole : Math.ceil(whole / 20);
}

/** A file to which each property adds a line with how many cases it is tried on, where somebody wants to count them. */
export const CASES_FILE = 'EVALGATE_PROVE_CASES';

/** For a property that fails its test unless it holds in that many cases. */
export function noteCases(cases: number): void {
  const file = process.env[CASES_FILE];
  if (file !== undefined) appendFileSync(file, `${cases}\n`);
}
