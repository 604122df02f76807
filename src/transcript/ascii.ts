/** ASCII characters as the formats' grammars name them. */

export function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

/** The first position from `start` that holds no space and no tab. */
export function skipBlanks(text: string, start: number, end: number): number {
  let i = start;
  while (i < end && (text.charCodeAt(i) === 0x20 || text.charCodeAt(i) === 0x09)) i += 1;
  return i;
}

/** The first position from `start` that holds no digit. */
export function skipDigits(text: string, start: number, end: number): number {
  let i = start;
  while (i < end && isDigit(text.charCodeAt(i))) i += 1;
  return i;
}
