/** A twentieth, rounded up. */
export function sized(whole: number): number {
  return Math.ceil(whole / 20);
}

export const isProving = false;
