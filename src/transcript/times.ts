/**
 * The one grammar of times, for every form: clock times of any precision, with a day, a zone, AM or PM or not, amounts of
 * hours, minutes and seconds, and ranges of two. Every repetition in it has a bound, and no two that can match the same text
 * follow one another. Digits of other scripts are made ASCII ones before (digits.ts).
 */

const D = '\\d';
/** A space that may stand within a time. */
const S = '[ \\t\\u00a0\\u2009\\u202f]';
/** No letter or digit follows; scripts that write no spaces excepted. */
const NO_WORD = `(?![A-Za-z\\u00c0-\\u024f]|${D})`;

/** Few ranges of letters: a pattern with all of Unicode's takes long to compile. */
const MONTH = '[A-Za-z\\u00c0-\\u024f\\u0400-\\u04ff]{3,10}\\.?';
const WEEKDAY = `(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:s|nes|rs|ur)?(?:day)?[.,]?${S}{1,2})?`;
const DAY = [
  `${D}{4}[-/.]${D}{1,2}[-/.]${D}{1,2}`,
  `${D}{1,2}[-/.]${D}{1,2}[-/.]${D}{2,4}`,
  `${D}{1,2}\\.?${S}${MONTH},?${S}${D}{4}`,
  `${MONTH}${S}${D}{1,2},?${S}${D}{4}`,
  `${D}{4}年${D}{1,2}月${D}{1,2}日`,
  `${D}{1,2}[-/.]${D}{1,2}\\.?`,
  '(?:[Tt]oday|[Yy]esterday)',
  `${D}{1,2}\\.?${S}(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}`,
].join('|');
const DAY_BEFORE = `${WEEKDAY}(?:${DAY})(?:T|,?${S}{0,2}(?:at${S})?)`;
const OFFSET = `${S}?[+-]${D}{2}:?${D}{2}`;

/** The half of the day, which stands before the time in Chinese, Japanese and Korean. */
const HALF_DAY = '上午|下午|凌晨|早上|中午|晚上|午前|午後|오전|오후';
/** `am` may be a word as well, as in `am I late`. */
const AM_PM = `(?:[AP]M|[ap]m(?!${S}(?:[a-z\\u00df-\\u00ff]|I${NO_WORD}))|[AaPp]\\.${S}?[Mm]\\.?)`;
const HALF_DAY_AFTER = `${S}?(?:${AM_PM}(?:${S}[ECMP]T)?${NO_WORD}|[صم]${NO_WORD}|[πμΠΜ]\\.?[μΜ]\\.?|${HALF_DAY})`;
const ZONE = `Z|${S}?(?:(?:UTC|GMT)(?:[+-]${D}{1,2}(?::${D}{2})?)?|[CEW]E?S?T|[ECMP][SD]T|[BIJK]ST|MES?Z|AE[SD]T|Uhr|hrs|h)${NO_WORD}`;
const DIGITS = `${D}{1,3}(?:[:：]${D}{1,3}){1,3}(?:[.,;]${D}{1,9})?(?![:：]?${D})`;
/** Some programs write `00 : 00 : 01,000`. */
const SPACED_DIGITS = `${D}{1,2} : ${D}{2} : ${D}{2}(?:[.,]${D}{1,9})?(?!${D})`;
const CLOCK = `(?:(?:${HALF_DAY})${S}?)?(?:${DIGITS}|${SPACED_DIGITS})(?:${HALF_DAY_AFTER})?`;
const CLOCK_OF_DAY = `${DAY_BEFORE}${CLOCK}(?:${OFFSET}|${ZONE})?`;

const NUMBER = `${D}{1,5}(?:[.,]${D}{1,9})?${S}?`;
const HOURS = `${NUMBER}(?:hours?|hrs?|h|[Ss]td|[Ss]tunden?|heures?|horas?|ч|час(?:а|ов)?|小时|小時|時間|时|時|시간|시)\\.?`;
const MINUTES = `${NUMBER}(?:minutes?|mins?|[Mm]in|m|[Mm]inuten?|minutos?|мин|минут[аы]?|分钟|分鐘|分|분)\\.?`;
const SECONDS = `${NUMBER}(?:seconds?|secs?|s|[Ss]ek|[Ss]ekunden?|secondes?|seg|segundos?|сек|с|секунд[аы]?|秒|초)\\.?`;
const AND = `,?${S}{0,2}(?:and${S})?`;
/** `10h04`, `0h 0m 3s`, `2.3s`, `0 minutes 5 seconds`. */
const AMOUNT = [
  `${D}{1,5}ms${NO_WORD}`,
  `${D}{1,3}['’′]${D}{2}(?:["”″]|${NO_WORD})`,
  `${D}{1,2}${S}h${S}${D}{2}(?:${S}min)?${NO_WORD}`,
  `${D}{1,2}h${D}{2}(?:m?${D}{2}s?|m)?${NO_WORD}`,
  `${HOURS}(?:${AND}${MINUTES})?(?:${AND}${SECONDS})?${NO_WORD}`,
  `${MINUTES}(?:${AND}${SECONDS})?${NO_WORD}`,
  `${SECONDS}${NO_WORD}`,
].join('|');

const TO = `${S}{0,8}(?:-{1,3}>|=>|[-–—~〜～→])${S}{0,8}|${S}{1,4}(?:to|bis|until)${S}{1,4}`;
/** The most frequent form comes first. */
const TIME = `(?:${CLOCK}(?:${ZONE})?|${CLOCK_OF_DAY}|${AMOUNT})`;
const SPAN = `${TIME}(?:(?:${TO})${TIME})?`;
/** Seconds without a unit are a time only if brackets or an arrow say so. */
const PLAIN_SECONDS = `${D}{1,6}[.,]${D}{1,9}`;
const ARROW = `${S}{0,8}-{1,2}>${S}{0,8}`;
const ANY_SECONDS = `(?:${DIGITS}|${PLAIN_SECONDS})`;
const SECONDS_SPAN = `${PLAIN_SECONDS}(?:(?:${TO})${PLAIN_SECONDS})?`;

/** Without brackets it is a day. */
const DOTTED = `${D}{1,2}\\.${D}{2}\\.${D}{2}`;

const EMPHASIS = '(?:\\*{1,3}|_{1,2})?';
/** A time may be a link to its place in a recording. */
const LINK = /\(https?:[^()\s]{1,300}\)/y;
const IN_BRACKETS = `\\\\?[\\[(（【<{]${S}{0,2}${EMPHASIS}(?:${SPAN}|${DOTTED}|${SECONDS_SPAN})${EMPHASIS}${S}{0,2}\\\\?[\\])）】>}]`;

/** The ways in which a clock time may go on. */
const MORE = new RegExp(`${HALF_DAY_AFTER}|${ZONE}|${TO}|${ARROW}|[:：.,;A-Za-z\\u00c0-\\u024f]`, 'y');
const BARE = new RegExp(`(?:${SPAN}|${ANY_SECONDS}${ARROW}${ANY_SECONDS})${NO_WORD}`, 'y');
const BRACKETED = new RegExp(IN_BRACKETS, 'y');
const OPENING: ReadonlySet<number> = new Set(Array.from('[(（【<{\\', (bracket) => bracket.charCodeAt(0)));
const CLOSING: ReadonlySet<number> = new Set(Array.from('])）】>}', (bracket) => bracket.charCodeAt(0)));

/** How sure a time range of a cue is: `loose` has no fractions, `damaged` is like a range but for an error in it. */
export type RangeQuality = 'exact' | 'loose' | 'damaged';

/** A time range on a line of a cue. */
export interface CueRange {
  readonly quality: RangeQuality;
  /** Whether its times have three parts. */
  readonly hasHours: boolean;
  /** Where the line goes on after the range. */
  readonly end: number;
}

/** White space or the end follows, behind marks of direction. */
const RANGE_ENDS = '[\\u200e\\u200f\\u202c\\u2069]{0,4}(?=[ \\t\\r\\n]|$)';
const CUE_TIME = `(?:${DIGITS}|${SPACED_DIGITS}|${PLAIN_SECONDS})`;
const ARROW_RANGE = new RegExp(`${CUE_TIME}${S}{0,16}-->${S}{0,16}${CUE_TIME}[.,]?${RANGE_ENDS}`, 'y');
const COMMA_RANGE = new RegExp(`${DIGITS},${S}{0,4}${DIGITS}${RANGE_ENDS}`, 'y');
const BAD_TIME = `-?${D}{1,3}(?::${D}{1,3}){1,3}(?:[.,] ?${D}{1,9})?`;
const BAD_RANGE = new RegExp(`${BAD_TIME}${S}{0,16}(?:-{1,3}>|-- >|[–—]>|→)${S}{0,16}${BAD_TIME}${RANGE_ENDS}`, 'y');
const FOUR_PARTS = /:\d+:\d+:/;

/** The range of WebVTT and SubRip, `00:01.000 --> 00:02.000`, at the position; null if there is none. */
export function arrowRangeAt(text: string, start: number): CueRange | null {
  const unit = text.charCodeAt(start);
  if (!isDigit(unit) && unit !== MINUS) return null;
  const plain = plainRangeAt(text, start);
  if (plain !== null) return plain;
  const sound = matchEnd(ARROW_RANGE, text, start, text.length);
  const end = sound ?? matchEnd(BAD_RANGE, text, start, text.length);
  if (end === null) return null;
  const range = text.slice(start, end);
  if (sound !== null && !FOUR_PARTS.test(range)) {
    return { quality: /[.,]\d/.test(range) ? 'exact' : 'loose', hasHours: /:\s?\d+\s?:/.test(range), end };
  }
  return /[.,:] ?\d+\s*[-–—→]/.test(range) && (FRACTION.test(range) || FOUR_PARTS.test(range))
    ? { quality: 'damaged', hasHours: true, end }
    : null;
}

const FRACTION = /[.,] ?\d/;
const MINUS = 0x2d;

/** A range as nearly all programs write it, at most a space on either side of the arrow. */
function plainRangeAt(text: string, start: number): CueRange | null {
  const from = clockAt(text, start, text.length);
  if (from === null) return null;
  const arrow = skipSpace(text, from.end);
  if (!text.startsWith('-->', arrow)) return null;
  const to = clockAt(text, skipSpace(text, arrow + '-->'.length), text.length);
  if (to === null || !endsRange(text.charCodeAt(to.end))) return null;
  const parts = Math.max(from.parts, to.parts);
  if (parts > 3 || from.fraction === ';' || to.fraction === ';') return null;
  const isExact = from.fraction !== '' || to.fraction !== '';
  return { quality: isExact ? 'exact' : 'loose', hasHours: parts > 2, end: to.end };
}

function skipSpace(text: string, position: number): number {
  return text.charCodeAt(position) === SPACE ? position + 1 : position;
}

/** Whether it is white space, or the end of the text. */
function endsRange(unit: number): boolean {
  return unit === 0x0a || unit === 0x0d || unit === SPACE || unit === 0x09 || Number.isNaN(unit);
}

/** The range of SBV, `0:00:01.000,0:00:03.000`. */
export function commaRangeAt(text: string, start: number): CueRange | null {
  const end = matchEnd(COMMA_RANGE, text, start, text.length);
  return end === null ? null : { quality: 'exact', hasHours: true, end };
}

/** A time, or a range of two, and where it ends. */
export interface Time {
  readonly end: number;
  readonly isInBrackets: boolean;
}

/** The time that begins at the position, bare or in brackets; null if none does. */
export function timeAt(text: string, start: number, end: number): Time | null {
  if (start >= end) return null;
  const unit = text.charCodeAt(start);
  const isInBrackets = !isDigit(unit) && OPENING.has(unit);
  if (!(isInBrackets ? mayHoldTime(text, start, end) : mayBeginTime(text, start, unit))) return null;
  const plain = isInBrackets ? bracketedClockEnd(text, start, end) : bareClockEnd(text, start, end);
  if (plain !== null) return { end: plain, isInBrackets };
  const last = matchEnd(isInBrackets ? BRACKETED : BARE, text, start, end) ?? linkInParenthesesEnd(text, start, end);
  if (last === null) return null;
  return { end: isInBrackets ? linkEnd(text, last, end) : last, isInBrackets };
}

/** Where a link in parentheses that begins at the position ends; the position if there is none. */
export function linkEnd(text: string, position: number, end: number): number {
  return matchEnd(LINK, text, position, end) ?? position;
}

/** Where `([0:03](https://...))` ends; null if it does not stand there. */
function linkInParenthesesEnd(text: string, start: number, end: number): number | null {
  if (!text.startsWith('([', start)) return null;
  const time = timeAt(text, start + 1, end);
  return time !== null && time.end < end && text.charCodeAt(time.end) === PARENTHESIS_CLOSE ? time.end + 1 : null;
}

/** `0:03` or `上午10:04` that nothing goes on with, seen without trying the whole grammar; null if it takes that to see. */
function bareClockEnd(text: string, start: number, end: number): number | null {
  const isHalfDay = HALF_DAYS.has(pairOf(text.charCodeAt(start), text.charCodeAt(start + 1)));
  const clock = clockAt(text, isHalfDay ? start + 2 : start, end);
  if (clock === null) return null;
  if (clock.end >= end) return end;
  MORE.lastIndex = clock.end;
  return MORE.test(text) ? null : clock.end;
}

/** The same for `[0:03]` and `(0:03)`, which may be a link. */
function bracketedClockEnd(text: string, start: number, end: number): number | null {
  const opening = text.charCodeAt(start);
  if (opening !== BRACKET_OPEN && opening !== PARENTHESIS_OPEN) return null;
  const clock = clockAt(text, start + 1, end);
  if (clock === null || clock.end >= end) return null;
  const isClosed = text.charCodeAt(clock.end) === (opening === BRACKET_OPEN ? BRACKET_CLOSE : PARENTHESIS_CLOSE);
  return isClosed && text.charCodeAt(clock.end + 1) !== PARENTHESIS_OPEN ? clock.end + 1 : null;
}

/** A clock time of two to four parts, without anything else. */
interface Clock {
  readonly end: number;
  readonly parts: number;
  /** The separator before its fraction; empty if it has none. */
  readonly fraction: string;
}

/** The digits, colons and fraction that stand at the position; null if there are none, or not as `DIGITS` has them. */
function clockAt(text: string, start: number, end: number): Clock | null {
  let i = digitsEnd(text, start, end);
  let parts = 1;
  for (let first = start; ; parts += 1) {
    if (i === first || i > first + 3 || parts > 4) return null;
    if (!isColon(text.charCodeAt(i)) || i >= end) break;
    const next = digitsEnd(text, i + 1, end);
    if (next === i + 1) break;
    first = i + 1;
    i = next;
  }
  if (parts === 1) return null;
  const point = text.charAt(i);
  if (i >= end || !(point === '.' || point === ',' || point === ';')) return { end: i, parts, fraction: '' };
  const fractionEnd = digitsEnd(text, i + 1, end);
  if (fractionEnd === i + 1) return { end: i, parts, fraction: '' };
  if (fractionEnd > i + 10 || isColon(text.charCodeAt(fractionEnd))) return null;
  return { end: fractionEnd, parts, fraction: point };
}

function digitsEnd(text: string, start: number, end: number): number {
  let i = start;
  while (i < end && isDigit(text.charCodeAt(i))) i += 1;
  return i;
}

function isColon(unit: number): boolean {
  return unit === COLON || unit === WIDE_COLON;
}

const COLON = 0x3a;
const WIDE_COLON = 0xff1a;
const SPACE = 0x20;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const PARENTHESIS_OPEN = 0x28;
const PARENTHESIS_CLOSE = 0x29;

/** A quick look at the first characters. */
function mayBeginTime(text: string, start: number, unit: number): boolean {
  if (isDigit(unit)) return goesOnAfterDigits(text, start + 1);
  if (unit < 0x80) {
    const second = text.charCodeAt(start + 1);
    return second > 0x60 && second < 0x7b && MONTHS.has(pairOf(second, text.charCodeAt(start + 2)));
  }
  return HALF_DAYS.has(pairOf(unit, text.charCodeAt(start + 1))) && !isLetter(text.charCodeAt(start + 2));
}

/** Whether a time may go on behind its first digits. */
function goesOnAfterDigits(text: string, position: number): boolean {
  let i = position;
  while (isDigit(text.charCodeAt(i))) i += 1;
  const unit = text.charCodeAt(i);
  if (unit !== SPACE) return unit >= 0x80 || AFTER_DIGITS.has(unit);
  // `12 Mar`, `3 min`, `00 : 03`.
  const next = text.charCodeAt(i + 1);
  return next >= 0x41 || next === COLON;
}

/** Colons, signs of days and fractions, and what units of time begin with. */
const AFTER_DIGITS: ReadonlySet<number> = new Set(Array.from(":-/.,\t'hmsMS", (sign) => sign.charCodeAt(0)));

/** Whether a digit stands behind the bracket, and at most a weekday and a month before it. */
function mayHoldTime(text: string, start: number, end: number): boolean {
  const last = Math.min(end, start + MAX_UNITS_IN_BRACKETS);
  for (let i = start + 1; i < last; i += 1) {
    const unit = text.charCodeAt(i);
    if (isDigit(unit)) return goesOnAfterDigits(text, i + 1);
    if (CLOSING.has(unit)) return false;
  }
  return false;
}

const MAX_UNITS_IN_BRACKETS = 32;

/** The second and third letters of the months, of today and yesterday, and the two of each half of the day. */
const MONTHS = pairsOf('an|eb|ar|pr|ay|un|ul|ug|ep|ct|ov|ec|od|es');
const HALF_DAYS = pairsOf(HALF_DAY);

function pairsOf(words: string): ReadonlySet<number> {
  return new Set(words.split('|').map((word) => pairOf(word.charCodeAt(0), word.charCodeAt(1))));
}

function pairOf(first: number, second: number): number {
  return first * 0x10000 + second;
}

function isLetter(unit: number): boolean {
  return (unit >= 0x3040 && unit <= 0x9fff) || (unit >= 0xac00 && unit <= 0xd7a3);
}

/** Where a match at `start` ends; null if there is none before `end`. The pattern must be sticky. */
export function matchEnd(pattern: RegExp, text: string, start: number, end: number): number | null {
  pattern.lastIndex = start;
  if (!pattern.test(text) || pattern.lastIndex > end) return null;
  return pattern.lastIndex;
}

export function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

const CLOCK_PARTS = /(\d+) ?[:：] ?(\d+)(?: ?[:：] ?(\d+))?(?:[.,:](\d+))?/;
const PRIMES = /(\d+)['’′](\d+)/;
const AMOUNT_PARTS = /(\d+(?:[.,]\d+)?)\s?(\p{L}*)/gu;
const RANGE_MARK = /-{1,3}>|[–—~]|\s-\s/;
const AFTER_NOON = /[Pp]\.?\s?[Mm]|下午|午後|오후|م|μ\.?μ/;
const UNIT_SECONDS: ReadonlyMap<string, number> = new Map([
  ...Array.from('h小时時시ч', (unit) => [unit, 3600] as const),
  ...Array.from('mM分분м', (unit) => [unit, 60] as const),
]);

/** A time that `timeAt` found, or the first of its range, in seconds of its day or of the recording. */
export function secondsOf(text: string): number {
  const [single = ''] = text.split(RANGE_MARK, 1);
  const [clock, first = '0', second = '0', third, fraction = '0'] = CLOCK_PARTS.exec(single) ?? [];
  if (clock !== undefined) {
    const hours = third === undefined ? 0 : Number(first);
    const seconds = third === undefined ? Number(first) * 60 + Number(second) : Number(second) * 60 + Number(third);
    const noon = AFTER_NOON.test(single) && Number(first) < 12 ? 12 : 0;
    const scale = third === undefined && noon + Number(AM_OR_PM.test(single)) > 0 ? 60 : 1;
    return (hours + noon) * 3600 + seconds * scale + Number(`0.${fraction}`);
  }
  const [, minutes, rest] = PRIMES.exec(single) ?? [];
  if (minutes !== undefined) return Number(minutes) * 60 + Number(rest);
  let seconds = 0;
  for (const [, amount = '0', unit = ''] of single.matchAll(AMOUNT_PARTS)) {
    seconds += Number(amount.replace(',', '.')) * (UNIT_SECONDS.get(unit.charAt(0)) ?? 1);
    if (unit === '') break;
  }
  return seconds;
}

const AM_OR_PM = /[AaPp]\.?\s?[Mm]|上午|下午|午前|午後|오전|오후/;
