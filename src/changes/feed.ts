/**
 * The feed of changes: per workspace, the events of the last days, numbered one by one. An incomplete feed is worse than none,
 * so an event is written by the step that appends the change to the journal, and every reading notices a gap: the numbers
 * of a workspace have none, and a place from which some are gone has expired.
 */
import { LIST_EVERY_MS } from '../cache/change-table.ts';
import type { EventOf } from '../journal/journal.ts';
import { CLOCK_TOLERANCE_MS } from '../time/clock.ts';
import type { FeedPlace } from './cursor.ts';
import type { EventsByWorkspace, FeedEvent } from './events.ts';

/** Events that are kept of one workspace. */
export const MAX_EVENTS = 100_000;
/**
 * An event can be read this long after it was announced, even if a process has not reported it: one that was held up for so
 * long looks at Redis before it uses its memory (C8: memory is used only with proof, at most 900 ms old).
 */
export const VISIBLE_AFTER_MS = 1000;
/**
 * The place of now lies so many milliseconds back: a list that is read after it was taken may be from before a change that is no
 * older. So a consumer that takes a place, then reads all calls, and then goes on from that place misses none.
 */
export const BEGIN_BEFORE_MS = LIST_EVERY_MS + CLOCK_TOLERANCE_MS;
/** How long the id of an announcement is remembered. */
export const REMEMBERED_MS = 24 * 60 * 60 * 1000;

export interface PlacedEvent extends FeedEvent {
  /** When it was announced. */
  readonly atMs: number;
}

export interface FeedPage {
  /** Oldest first. */
  readonly events: readonly PlacedEvent[];
  /** Where to go on. */
  readonly place: FeedPlace;
  readonly hasMore: boolean;
}

export interface FeedQuery {
  /** Those of the key. */
  readonly workspaces: readonly string[];
  /** Those whose events are wanted: all, or one of them. */
  readonly wanted: readonly string[];
  /** Null: from now on. */
  readonly after: FeedPlace | null;
  readonly limit: number;
}

export interface Appending {
  readonly event: EventOf<'changes'>;
  readonly events: EventsByWorkspace;
  /** Whether consumers have the feed here. If not, they may have it at another process, or may have had it, and have it again. */
  readonly hasFeed: boolean;
  /** Names the announcement; null if its caller has not named it. */
  readonly id: string | null;
}

/** The feed cannot be read at the moment: Redis does not answer. */
export class FeedUnavailableError extends Error {
  override readonly name = 'FeedUnavailableError';
}

export interface Appended {
  /** The number of the event in the journal: of the first one with that id, if there was one. */
  readonly sequence: number;
  /** Whether there was one: then nothing was appended. */
  readonly isRepeated: boolean;
}

/** Where announcements go, and where their events are read. */
export interface ChangeFeed {
  /**
   * Appends the event to the journal, its events to the feed, if anybody has one, and the id to those that are known, all or
   * nothing. Rejects as `Journal.append` does.
   */
  append(appending: Appending): Promise<Appended>;
  /** All events up to that number can be read now: every process has applied them. Never rejects. */
  settle(sequence: number): Promise<void>;
  /** Null if the place has expired: events after it are gone, or it is of another feed. Rejects with FeedUnavailableError. */
  read(query: FeedQuery): Promise<FeedPage | null>;
}
