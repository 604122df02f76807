/** The feed of a gateway without Redis: in the memory of its one process, and over with it. */
import { randomUUID } from 'node:crypto';
import type { Journal } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';
import type { AnnouncedEvent } from './events.ts';
import {
  BEGIN_BEFORE_MS,
  type Appended,
  type Appending,
  type ChangeFeed,
  type FeedPage,
  type FeedQuery,
  MAX_EVENTS,
  type PlacedEvent,
  REMEMBERED_MS,
} from './feed.ts';

interface Kept extends PlacedEvent, AnnouncedEvent {
  /** The number of its announcement in the journal. */
  readonly sequence: number;
}

interface OfWorkspace {
  readonly events: Kept[];
  /** How many events there were before those that are kept. */
  dropped: number;
}

export interface MemoryFeedOptions {
  readonly journal: Pick<Journal, 'append' | 'position'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** How long an event is kept. */
  readonly keepMs: number;
}

export class MemoryFeed implements ChangeFeed {
  readonly #options: MemoryFeedOptions;
  readonly #feed = randomUUID();
  readonly #workspaces = new Map<string, OfWorkspace>();
  /** Announcements by their id, oldest first. */
  readonly #known = new Map<string, { readonly sequence: number; readonly atMs: number }>();

  constructor(options: MemoryFeedOptions) {
    this.#options = options;
  }

  async append({ event, events, hasFeed, id }: Appending): Promise<Appended> {
    const { journal, clock } = this.#options;
    const nowMs = clock.nowMs();
    for (const [known, { atMs }] of this.#known) {
      if (nowMs - atMs < REMEMBERED_MS) break;
      this.#known.delete(known);
    }
    const before = id === null ? undefined : this.#known.get(id);
    if (before !== undefined) return { sequence: before.sequence, isRepeated: true };
    // It is applied at once, so that no other announcement comes between.
    const appended = journal.append(event);
    const { sequence } = journal.position;
    if (id !== null) this.#known.set(id, { sequence, atMs: nowMs });
    for (const [workspace, added] of hasFeed ? events : []) {
      const of = this.#workspaces.get(workspace) ?? { events: [], dropped: 0 };
      this.#workspaces.set(workspace, of);
      of.events.push(...added.map((one) => ({ ...one, sequence, atMs: nowMs })));
      const kept = of.events.findIndex(({ atMs }) => nowMs - atMs <= this.#options.keepMs);
      const excess = Math.max(kept, of.events.length - MAX_EVENTS);
      of.events.splice(0, excess);
      of.dropped += excess;
    }
    await appended;
    return { sequence, isRepeated: false };
  }

  async settle(): Promise<void> {}

  async read({ workspaces, wanted, after, limit }: FeedQuery): Promise<FeedPage | null> {
    const ofWorkspace = (workspace: string): OfWorkspace =>
      this.#workspaces.get(workspace) ?? { events: [], dropped: 0 };
    if (after === null) {
      const fromMs = this.#options.clock.nowMs() - BEGIN_BEFORE_MS;
      const numbers = new Map(
        workspaces.map((workspace) => {
          const { events, dropped } = ofWorkspace(workspace);
          return [workspace, dropped + events.findLastIndex(({ atMs }) => atMs <= fromMs) + 1];
        }),
      );
      return { events: [], place: { feed: this.#feed, numbers }, hasMore: false };
    }
    if (after.feed !== this.#feed) return null;
    const found: (Kept & { readonly workspace: string })[] = [];
    for (const workspace of wanted) {
      const { events, dropped } = ofWorkspace(workspace);
      const number = after.numbers.get(workspace) ?? 0;
      if (number < dropped || number > dropped + events.length) return null;
      const unread = events.slice(number - dropped, number - dropped + limit + 1);
      found.push(...unread.map((one) => ({ ...one, workspace })));
    }
    found.sort((one, other) => one.sequence - other.sequence || one.order - other.order);
    const page = found.slice(0, limit);
    const numbers = new Map(after.numbers);
    for (const { workspace } of page) numbers.set(workspace, (numbers.get(workspace) ?? 0) + 1);
    const events = page.map(({ id, kind, change, atMs }) => ({ id, kind, change, atMs }));
    return { events, place: { feed: this.#feed, numbers }, hasMore: found.length > limit };
  }
}
