/** What a speaker's name in front of a line may look like. */

const MAX_NAME_POINTS = 60;
const MAX_NAME_WORDS = 6;
const LETTER_OR_DIGIT = /^[\p{L}\p{Nd}]/u;
const WHITE_SPACE = /\s/u;
/** `!`, `"`, `;` and `?`: signs of a sentence, not of a name. */
const SENTENCE_MARKS: ReadonlySet<number> = new Set([0x21, 0x22, 0x3b, 0x3f]);

/**
 * Whether what stands between the two positions is a speaker: 1 to 60 code points, at most 6 words, beginning with a
 * letter or digit, without `!`, `?`, `;` or `"`. Reads at most 120 UTF-16 units, so a long line costs no more.
 */
export function isSpeaker(text: string, start: number, end: number): boolean {
  if (start >= end || end - start > 2 * MAX_NAME_POINTS) return false;
  if (!LETTER_OR_DIGIT.test(String.fromCodePoint(text.codePointAt(start) ?? 0))) return false;
  let points = 0;
  let words = 0;
  let inWord = false;
  for (let i = start; i < end; i += 1) {
    const unit = text.charCodeAt(i);
    if (SENTENCE_MARKS.has(unit)) return false;
    if (!isLowSurrogate(unit)) points += 1;
    const isSpace = isWhiteSpace(unit);
    if (!isSpace && !inWord) words += 1;
    inWord = !isSpace;
  }
  return points <= MAX_NAME_POINTS && words <= MAX_NAME_WORDS;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function isWhiteSpace(unit: number): boolean {
  if (unit < 0x80) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  return WHITE_SPACE.test(String.fromCharCode(unit));
}
