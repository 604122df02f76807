/**
 * Shapes: how the lines that begin turns are written, as a sequence of time, name, what sets them off, words and line ends.
 * The shapes of a file are counted (evidence.ts), and the one with most evidence of speech says what each line is.
 */
import type { LineHead, NameEnd, TimePlace } from './line-head.ts';

/**
 * The kinds of a turn's first line, by what distinguishes it from the others:
 *
 * - `named`: a name that a colon ends (in hearings, a period), words beside or below it, a time anywhere or nowhere;
 * - `headed`: a name and a time, and nothing else, the words below;
 * - `inline`: a name that something else ends, words beside it;
 * - `timed`: a time and no name, words beside it; `under time`: the words below;
 * - `name, time` and `time, name`: on lines of their own, one below the other, then the words;
 * - `under name`: a name alone on its line, the words below.
 */
export type Kind = 'named' | 'headed' | 'inline' | 'timed' | 'under time' | 'name, time' | 'time, name' | 'under name';

/** The shape of a line as it is shown and counted, such as `[time] name: words`. */
export function sequenceOf(head: LineHead, kind: Kind): string {
  if (kind === 'name, time') return 'name ⏎ time ⏎ words';
  if (kind === 'time, name') return 'time ⏎ name ⏎ words';
  if (kind === 'under time') return `${timeOf(head)} ⏎ words`;
  const mark = head.mark === '' ? '' : `${head.mark} `;
  if (kind === 'under name') return `${mark}name ⏎ words`;
  if (kind === 'timed') return `${mark}${timeOf(head)} words`;
  const bold = head.isBold ? '**' : '';
  const before = head.timePlace === 'before' ? `${timeOf(head)} ` : '';
  const behind = head.timePlace === 'behind' ? `${head.gap === 'wide' ? '  ' : ' '}${timeOf(head)}` : '';
  if (kind === 'named') {
    const inside = head.timePlace === 'inside' ? ` ${timeOf(head)}` : '';
    return `${mark}${before}${bold}name${bold}${behind}:${inside} words`;
  }
  const words = kind === 'headed' ? '⏎ words' : 'words';
  return `${mark}${before}${nameOf(head, behind)} ${words}`;
}

function timeOf(head: LineHead): string {
  return head.time?.isInBrackets === true ? '[time]' : 'time';
}

function nameOf(head: LineHead, behind: string): string {
  if (head.nameEnds === 'bracket') return `[name${behind}]`;
  if (head.isBold) return `**name**${behind}`;
  if (head.nameEnds === 'dash') return `name${behind} -`;
  return `name${behind}`;
}

/** The kinds that one line shows; the others take two. */
const KINDS: readonly Kind[] = ['named', 'headed', 'inline', 'timed', 'under time', 'under name'];

/** The kinds of shape that a line may begin a turn of, apart from its neighbours. */
export function kindsOf(head: LineHead): Kind[] {
  return KINDS.filter((kind) => isOfKind(head, kind));
}

export function isOfKind(head: LineHead, kind: Kind): boolean {
  const { timePlace } = head;
  if (kind === 'timed') return timePlace === 'before' && !head.isOnlyTime;
  if (kind === 'under time') return head.isOnlyTime;
  // Cheap questions come first: whether a name is one takes a look at its characters.
  if (kind === 'headed' && (head.hasWords || timePlace === 'none')) return false;
  if (kind === 'inline' && !head.hasWords) return false;
  const { nameEnds } = head;
  if (kind === 'named') {
    if (nameEnds !== 'colon') return head.period !== -1;
    // The text after the colon of a heading is its title.
    return head.hasWords ? head.mark !== '#' : timePlace !== 'inside';
  }
  if (kind === 'under name') return timePlace === 'none' && (nameEnds === 'line' || head.isBareName);
  return nameEnds !== 'none' && (nameEnds !== 'colon' || (timePlace === 'inside' && !head.hasWords));
}

/** The features that lines of one sequence have in common, to compare a line with it quickly. */
export interface Features {
  readonly mark: string;
  readonly timePlace: TimePlace;
  readonly isTimeInBrackets: boolean;
  readonly nameEnds: NameEnd;
  readonly isBold: boolean;
  readonly gap: 'narrow' | 'wide';
}

export function featuresOf({ mark, timePlace, time, nameEnds, isBold, gap }: LineHead): Features {
  return { mark, timePlace, isTimeInBrackets: time?.isInBrackets === true, nameEnds, isBold, gap };
}

/** Whether the line has the features, its name aside if `kind` has none. */
export function hasFeatures(head: LineHead, features: Features, kind: Kind): boolean {
  if (head.timePlace !== features.timePlace || head.mark !== features.mark) return false;
  if ((head.time?.isInBrackets === true) !== features.isTimeInBrackets) return false;
  if (kind === 'timed' || kind === 'under time') return true;
  return head.nameEnds === features.nameEnds && head.isBold === features.isBold && head.gap === features.gap;
}
