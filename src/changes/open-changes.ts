/** Opens the room of announced changes: how they come in, the feed that consumers read, and what operators see of them. */
import type { Changes } from '../cache/changes.ts';
import type { Journal } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import { Announcements, type Reach } from './announcements.ts';
import type { ChangeFeed } from './feed.ts';
import { RecentChanges } from './recent.ts';

export interface ChangesRoom {
  readonly announcements: Announcements;
  readonly recentChanges: RecentChanges;
  /** Null unless the store announces all changes. */
  readonly feed: ReadableFeed | null;
}

/** The feed for consumers. */
export interface ReadableFeed extends Pick<ChangeFeed, 'read'> {
  /** Whether the store changes too many records without a word, so that the feed is not all. */
  isUnannounced(): boolean;
}

/** The share of changes that may be found without an announcement. */
const MAX_UNANNOUNCED = 0.01;

export interface ChangesContext {
  readonly changes: Changes;
  readonly journal: Journal;
  readonly feed: ChangeFeed;
  readonly reach: Reach;
  /** Whether the store announces all changes. */
  readonly isAnnounced: boolean;
  /** The share of refreshes that found a change which nobody had announced; null if there were too few. */
  readonly unannouncedShare: () => number | null;
  readonly clock: Clock;
  readonly timers: Timers;
}

export function openChanges({ feed, isAnnounced, unannouncedShare, clock, ...parts }: ChangesContext): ChangesRoom {
  return {
    announcements: new Announcements({ ...parts, feed, hasFeed: isAnnounced }),
    recentChanges: new RecentChanges(parts.journal, clock),
    feed: isAnnounced
      ? {
          read: (query) => feed.read(query),
          isUnannounced: () => (unannouncedShare() ?? 0) > MAX_UNANNOUNCED,
        }
      : null,
  };
}
