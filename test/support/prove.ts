/** Whether the bars are to be shown whole; otherwise tests do about a twentieth of them. */
export const isProving = process.env['EVALGATE_PROVE'] === '1';

/** That many, or a twentieth, rounded up. */
export function sized(whole: number): number {
  return isProving ? whole : Math.ceil(whole / 20);
}
