/** Digits of all scripts as ASCII ones, at the same positions, so that the grammar of times knows no others. */
import { type Slices, STRIDE } from './slices.ts';

/** Where the digits of other scripts begin: Arabic, Persian, Devanagari, Bengali, ... and full-width. */
const ZEROS = [
  0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0e50, 0x0ed0,
  0x0f20, 0x1040, 0x17e0, 0x1810, 0xff10,
];

const BEYOND_LATIN = /[\u0660-\uff19]/;

/** ASCII digits by the units of those that they stand for; 0 for all other units. */
const ASCII_DIGITS = new Uint8Array(0x10000);
for (const zero of ZEROS) for (let digit = 0; digit < 10; digit += 1) ASCII_DIGITS[zero + digit] = 0x30 + digit;

/** A long text with ASCII digits only; the text itself if it has no others. */
export function* withAsciiDigits(text: string): Slices<string> {
  const chunks: string[] = [];
  let isChanged = false;
  for (let start = 0; start < text.length; start += STRIDE) {
    const chunk = text.slice(start, start + STRIDE);
    chunks.push(asciiDigits(chunk));
    isChanged ||= chunks.at(-1) !== chunk;
    yield;
  }
  return isChanged ? chunks.join('') : text;
}

/** The same for a short text. */
export function asciiDigits(text: string): string {
  if (!BEYOND_LATIN.test(text)) return text;
  let units: Buffer | null = null;
  for (let i = 0; i < text.length; i += 1) {
    const digit = ASCII_DIGITS[text.charCodeAt(i)] ?? 0;
    if (digit === 0) continue;
    units ??= Buffer.from(text, 'utf16le');
    units.writeUInt16LE(digit, 2 * i);
  }
  return units === null ? text : units.toString('utf16le');
}
