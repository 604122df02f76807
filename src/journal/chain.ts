/** Whether what is read from the journal follows what this process knows. Pure: no I/O, no clock. */
import type { Position } from './journal.ts';

/** A position with the random word of its event, by which two events are told apart that came to have the same number. */
export interface ExactPosition extends Position {
  readonly word: string;
}

/** An event as the stream holds it. */
export interface Entry {
  readonly sequence: number;
  readonly word: string;
  /** The word of the event before it. */
  readonly after: string;
  readonly text: string;
}

/**
 * - `next`: it is the one after the position
 * - `known`: it was applied before
 * - `broken`: events between them are missing, or the position is not in that journal: they were cut off or lost
 */
export function follow(position: ExactPosition, entry: Entry): 'next' | 'known' | 'broken' {
  if (entry.sequence < position.sequence) return 'known';
  if (entry.sequence === position.sequence) return entry.word === position.word ? 'known' : 'broken';
  return entry.sequence === position.sequence + 1 && entry.after === position.word ? 'next' : 'broken';
}

/** The end of the journal by the stream, and by the hash beside it; null for what is not there. */
export interface End {
  readonly history: string | null;
  readonly last: string | null;
  readonly newest: Pick<Entry, 'sequence' | 'word'> | null;
}

/**
 * - `reached`: nothing follows the position
 * - `further`: there are newer events, or it can't be said without looking at more
 * - `lost`: the two contradict each other, or what this process knows
 */
export function compareEnd(position: ExactPosition, { history, last, newest }: End): 'reached' | 'further' | 'lost' {
  if (newest === null || history !== position.history) return 'lost';
  if (last !== `${newest.sequence} ${newest.word}` || newest.sequence < position.sequence) return 'lost';
  if (newest.sequence > position.sequence) return 'further';
  return newest.word === position.word ? 'reached' : 'lost';
}

/** Since when everything is known that was appended by then, in milliseconds of a clock that never goes back. */
export class Proof {
  #atMs = Number.NEGATIVE_INFINITY;

  get atMs(): number {
    return this.#atMs;
  }

  /** A question that was sent then has shown that nothing is missing. An answer that comes late changes nothing. */
  note(sentAtMs: number): void {
    this.#atMs = Math.max(this.#atMs, sentAtMs);
  }
}
