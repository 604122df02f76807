/**
 * Which shape a file is in (T12: evidence decides, and what is not understood is not speech): what speaks for each shape that
 * occurs, and what speaks against it.
 */
import type { Sample, ShapeCount } from './evidence.ts';

export interface Verdict {
  readonly shape: ShapeCount;
  /** The shape of most turns wins; a name counts as much as a turn, and so does a time beside a name. */
  readonly score: number;
  /** Why it is not speech; null if it is. */
  readonly refusal: string | null;
}

/** So many turns may have no name that recurs, if what stands behind the time may be a title. */
const MAX_UNKNOWN_TURNS = 3;
/** So many lines may have names before colons that do not recur; more are a list of terms. */
const MAX_TURNS_OF_NEW_NAMES = 20;
/** Records of so many keys, so many times in the same order, are no talk. */
const MIN_KEYS_OF_RECORD = 3;
const MIN_RECORDS = 3;
/** Chapters are minutes apart; those who talk with one another are not. */
const LONG_GAP_SECONDS = 60;
const CHAPTER_GAP_SECONDS = 30;
/** Speech is never as slow. */
const MIN_UNITS_PER_SECOND = 0.25;
/** The same for what may be an agenda. */
const TITLE_GAP_SECONDS = 10;
const MIN_TITLE_UNITS_PER_SECOND = 1;

/** The shapes of the sample, those that are speech first, by their score. */
export function judge(sample: Sample): Verdict[] {
  const areRecords = sample.shapes.some(hasLabels);
  const verdicts = sample.shapes.map((shape) => {
    const refusal = areRecords ? 'labels stand before speakers and words' : refusalOf(shape, sample);
    return { shape, score: scoreOf(shape), refusal };
  });
  return verdicts.toSorted((a, b) => Number(a.refusal !== null) - Number(b.refusal !== null) || b.score - a.score);
}

function scoreOf(shape: ShapeCount): number {
  const { kind, turns, times, recurring } = shape;
  if (kind === 'timed' || kind === 'under time') return turns;
  if (kind === 'under name') return recurring.turns * 1.5;
  return turns * (times * 2 > turns ? 3 : 2);
}

function refusalOf(shape: ShapeCount, sample: Sample): string | null {
  const { kind } = shape;
  if (kind === 'named') return refusalOfNamed(shape, sample);
  if (kind === 'under name') return refusalOfBareNames(shape);
  if (kind === 'inline' && shape.times === 0) return refusalOfUntimed(shape, sample);
  if (kind === 'timed' || kind === 'under time') return refusalOfTimes(shape, sample);
  if (kind !== 'inline' && shape.followed * 2 < shape.turns) return 'most have no words below';
  return refusalOfNames(shape, sample);
}

/** `name: words`. Whether names recur as in speech, the reading of all lines shows. */
function refusalOfNamed(shape: ShapeCount, { paragraphs, keys }: Sample): string | null {
  const { turns, cells, sentences, records, names, likely } = shape;
  if (cells * 2 > turns) return 'the words are cells of another format';
  if (shape.code * 2 > turns) return 'the lines are those of a program';
  if (shape.numbers * 2 > turns) return 'the words are numbers';
  const [[first, count] = ['', 0], ...others] = records;
  const isRecord = others.length === 0 && count > 1 && first.indexOf('\n') < first.length - 1;
  const keysOfRecord = new Set(first.split('\n')).size - 1;
  const hasManyKeys = keysOfRecord >= MIN_KEYS_OF_RECORD && count >= MIN_RECORDS;
  if (isRecord && (sentences === 0 || hasManyKeys)) return 'every paragraph has the same keys';
  const isUntimed = shape.times * 2 <= turns;
  if (isUntimed && shape.keys * 3 > turns) return 'keys stand among the names';
  if (isUntimed && names.repeats === 0 && likely * 2 < turns) return 'what stands before the colons is no name';
  if (!isUntimed && names.repeats === 0 && shape.meanGap > LONG_GAP_SECONDS) return 'no name recurs, as in an agenda';
  if (isUntimed && turns > MAX_TURNS_OF_NEW_NAMES && shape.recurring.turns * 4 < turns) return 'names do not recur';
  const isBlock =
    others.length === 0 && names.repeats === 0 && turns > 1 && (paragraphs > 1 || keys > 0) && sentences === 0;
  return isBlock ? 'one block of keys, none of which recurs' : null;
}

/** Whether the same speakers stand behind a label again and again, or most lines have a label. */
function hasLabels({ labelled, turns }: ShapeCount): boolean {
  const counts = [...labelled.values()];
  return counts.some((count) => count > 1) || counts.length * 2 > turns;
}

/** Names with a time. */
function refusalOfNames(shape: ShapeCount, { lines }: Sample): string | null {
  const { turns, likely, meanGap, features } = shape;
  const { repeats, once } = shape.names;
  const isWeak = features.gap === 'narrow' || features.timePlace === 'before';
  if (features.gap === 'narrow' && turns === 1) return 'a sentence may end with a time';
  // Names in small letters are names if nearly all recur.
  const areFew = shape.recurring.turns * 10 >= turns * 9 && shape.names.size * 2 <= turns;
  if (isWeak && likely * 2 < turns && !areFew) return 'what stands beside the times is no name';
  if (shape.kind === 'inline' && shape.titles * 2 > turns && shape.meanGap >= CHAPTER_GAP_SECONDS)
    return 'titles stand beside the names';
  const isDash = features.nameEnds === 'dash' || features.nameEnds === 'gap';
  if (isDash && turns * 2 <= lines - shape.firstLine) return 'most lines begin otherwise';
  if (repeats > 0 && once <= 2 * repeats + 2) return null;
  if (!shape.isOrdered) return 'its times go back, and no name recurs';
  if (shape.kind === 'inline' && turns * 2 <= lines - shape.firstLine)
    return 'most lines begin otherwise, and no name recurs';
  if (likely < turns || (turns > MAX_UNKNOWN_TURNS && isWeak)) return 'no name recurs';
  return turns > 1 && meanGap > LONG_GAP_SECONDS ? 'no name recurs, as in a list of chapters' : null;
}

function refusalOfTimes(shape: ShapeCount, { paragraphs, units }: Sample): string | null {
  const { kind, turns, titles, meanGap, followed } = shape;
  if (turns < 2) return 'one time is no evidence';
  if (!shape.isOrdered) return 'its times go back';
  if (kind === 'under time' && followed * 2 < turns) return 'most have no words below';
  if (kind === 'timed' && turns * 2 < paragraphs) return 'most paragraphs begin otherwise';
  const unitsPerSecond = units / (meanGap * turns);
  if (meanGap >= CHAPTER_GAP_SECONDS && unitsPerSecond < MIN_UNITS_PER_SECOND) return 'the times are too far apart';
  const areTitles = titles * 2 > turns;
  if (areTitles && meanGap >= TITLE_GAP_SECONDS && unitsPerSecond < MIN_TITLE_UNITS_PER_SECOND)
    return 'titles stand beside the times, and these are too far apart';
  if (areTitles && followed * 2 > turns) return 'titles stand beside the times';
  return null;
}

/** `**name** words`, `[name] words`, `name<tab>words`, `name - words`: no time, so names must be few and recur. */
function refusalOfUntimed(shape: ShapeCount, { lines, paragraphs }: Sample): string | null {
  const { turns, names, likely, features } = shape;
  if (names.repeats < 2 || names.size * 2 > turns) return 'names do not recur';
  if (features.mark === '-' && !features.isBold) return 'they are items of a list';
  if (likely * 2 < turns) return 'most are no names';
  const isWeak = features.nameEnds === 'gap' || features.nameEnds === 'dash';
  const isMost = isWeak ? turns * 2 > lines - shape.firstLine : turns * 2 >= paragraphs;
  return isMost ? null : 'most lines begin otherwise';
}

/** A name alone on its line. */
function refusalOfBareNames(shape: ShapeCount): string | null {
  const { recurring, turns, followed, names } = shape;
  if (recurring.turns < 4 || recurring.names * 2 > recurring.turns || recurring.names < 2) return 'names do not recur';
  if (names.once > recurring.turns) return 'most lines like it are no names';
  if (shape.lists * 2 > turns) return 'lists stand below';
  return followed * 10 < turns * 8 ? 'some have no words below' : null;
}
