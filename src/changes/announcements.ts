/**
 * Each announcement of the store, from its arrival to its answer: the changes are in the journal, every process has applied them, and
 * their events can be read in the feed.
 */
import type { Changes } from '../cache/changes.ts';
import type { Journal, Position } from '../journal/journal.ts';
import type { Timers } from '../time/timers.ts';
import type { Announcement } from './announcement.ts';
import { eventsOf } from './events.ts';
import { type Appended, type ChangeFeed, VISIBLE_AFTER_MS } from './feed.ts';

/**
 * Resolves with how many processes have applied the journal up to that position, of how many there are, when all have or time is
 * over. Never rejects.
 */
export type Reach = (
  position: Position,
  withinMs: number,
) => Promise<{ readonly reached: number; readonly of: number }>;

export interface AnnouncementsOptions {
  readonly changes: Pick<Changes, 'announce'>;
  readonly journal: Pick<Journal, 'position'>;
  readonly feed: ChangeFeed;
  /** Whether consumers have the feed. */
  readonly hasFeed: boolean;
  readonly reach: Reach;
  readonly timers: Timers;
}

export interface Announced {
  /** Whether an announcement of that id was made before: then nothing was done. */
  readonly isRepeated: boolean;
  /** The processes in which it is known to be in force, of how many. */
  readonly reached: number;
  readonly of: number;
}

export class Announcements {
  /** How many changes this process has taken from the store since it started. */
  taken = 0;
  readonly #options: AnnouncementsOptions;
  /** Resolves when no announcement is being appended. */
  #appended: Promise<unknown> = Promise.resolve();

  constructor(options: AnnouncementsOptions) {
    this.#options = options;
  }

  /**
   * Resolves once the changes are in force in every process: each has reported the position of the journal, or a second has
   * passed (C8: after 900 ms without proof that it missed nothing, a process asks Redis before it uses memory). `id` names the
   * announcement; null if it has no name. Rejects as `Journal.append` does if the journal did not take them.
   */
  async announce({ mode, changes }: Announcement, id: string | null): Promise<Announced> {
    const { changes: cache, journal, feed, hasFeed, reach, timers } = this.#options;
    const append = (): Promise<Appended> =>
      cache.announce(mode, changes, (event) => feed.append({ event, events: eventsOf(event.changes), hasFeed, id }));
    // One after the other: large ones take Redis a while, and each has to be answered within its time-out (R6: 250 ms).
    const appending = this.#appended.then(append);
    this.#appended = appending.catch(() => undefined);
    const { sequence, isRepeated } = await appending;
    if (!isRepeated) this.taken += changes.length;
    const second = new Promise<void>((resolve) => void timers.after(VISIBLE_AFTER_MS, resolve));
    const { history } = journal.position;
    const { reached, of } = await reach({ history, sequence }, VISIBLE_AFTER_MS);
    if (reached < of) await second;
    else if (hasFeed) await feed.settle(sequence);
    return { isRepeated, reached, of };
  }
}
