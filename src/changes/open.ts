/** Opens the room of announced changes: how they come in, the feed that consumers read, and what operators see of them. */
import type { Changes } from '../cache/changes.ts';
import type { Config } from '../config/config.ts';
import type { Journal } from '../journal/journal.ts';
import type { RedisJournal } from '../journal/redis-journal.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { Instances } from '../redis/instances.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import { Announcements } from './announcements.ts';
import type { ChangeFeed } from './feed.ts';
import { MemoryFeed } from './memory-feed.ts';
import { RecentChanges } from './recent.ts';
import { RedisFeed } from './redis-feed.ts';
import { redisReach } from './redis-reach.ts';

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

/** From this share of refreshes on that find a change which was not announced, the store announces too little. */
export const MAX_UNANNOUNCED = 0.01;

export interface ChangesContext {
  readonly changes: Changes;
  readonly journal: Journal;
  /** Null for a gateway without Redis, whose feed is in memory. */
  readonly redis: { readonly state: RedisLink; readonly journal: RedisJournal } | null;
  readonly instances: Instances;
  readonly config: Config['changes'];
  /** The share of refreshes that found a change which nobody had announced; null if there were too few. */
  readonly unannouncedShare: () => number | null;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** To be called in the turn of the event loop in which the journal was opened. */
export function openChanges(context: ChangesContext): ChangesRoom {
  const { changes, journal, redis, instances, config, unannouncedShare, clock, timers } = context;
  const { announced: hasFeed, keepMs } = config;
  const feed =
    redis === null
      ? new MemoryFeed({ journal, clock, keepMs })
      : new RedisFeed({ link: redis.state, journal: redis.journal, keepMs });
  const reach =
    redis === null
      ? async () => ({ reached: 1, of: 1 })
      : redisReach({ link: redis.state, journal, instances, timers });
  return {
    announcements: new Announcements({ changes, journal, feed, reach, hasFeed, timers }),
    recentChanges: new RecentChanges(journal, clock),
    feed: hasFeed
      ? {
          read: (query) => feed.read(query),
          isUnannounced: () => (unannouncedShare() ?? 0) > MAX_UNANNOUNCED,
        }
      : null,
  };
}
