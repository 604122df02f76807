/**
 * The changes that this process has heard of lately, by the journal: for operators, who see in every process the same ones in
 * the same order, and for those who watch whether the store still announces.
 */
import type { EventOf, Journal, Position } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';

/** So many events operators can look back at. */
const MAX_KEPT = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

export interface RecentEvent {
  readonly position: Position;
  readonly event: EventOf<'changes'>;
}

/** How the store announces. */
export interface AnnouncementRate {
  /** When it announced last, Unix milliseconds; null if it has not since this process joined the others. */
  readonly lastAtMs: number | null;
  /** Announced changes that this process has heard of in the last hour, or since it joined the others. */
  readonly inLastHour: number;
}

export class RecentChanges {
  readonly #clock: Pick<Clock, 'nowMs'>;
  readonly #journal: Pick<Journal, 'position'>;
  #kept: readonly RecentEvent[] = [];
  /** From where on all events are known. */
  #since: Position;
  #lastAtMs: number | null = null;
  /** Announced changes by minute, oldest first. */
  #minutes: readonly { readonly atMs: number; readonly count: number }[] = [];

  constructor(journal: Pick<Journal, 'on' | 'onSnapshot' | 'position'>, clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock;
    this.#journal = journal;
    this.#since = journal.position;
    journal.on('changes', (event, position) => this.#add({ event, position }));
    journal.onSnapshot(({ position }) => {
      this.#kept = [];
      this.#since = position;
    });
  }

  rate(): AnnouncementRate {
    const fromMs = this.#clock.nowMs() - HOUR_MS;
    const inLastHour = this.#minutes.reduce((sum, { atMs, count }) => (atMs > fromMs ? sum + count : sum), 0);
    return { lastAtMs: this.#lastAtMs, inLastHour };
  }

  /**
   * The events that follow the position, oldest first, and where to go on; without a position none, from now on. `isMissing`:
   * some between are not known here any more.
   */
  after(position: Position | null): {
    readonly events: readonly RecentEvent[];
    readonly end: Position;
    readonly isMissing: boolean;
  } {
    const end = this.#journal.position;
    if (position === null) return { events: [], end, isMissing: false };
    const isMissing = position.history !== this.#since.history || position.sequence < this.#since.sequence;
    const events = this.#kept.filter((kept) => isMissing || kept.position.sequence > position.sequence);
    return { events, end, isMissing };
  }

  #add(recent: RecentEvent): void {
    const kept = [...this.#kept, recent];
    for (const { position } of kept.slice(0, -MAX_KEPT)) this.#since = position;
    this.#kept = kept.slice(-MAX_KEPT);
    const { isAnnounced, changes } = recent.event;
    if (!isAnnounced) return;
    const nowMs = this.#clock.nowMs();
    this.#lastAtMs = nowMs;
    const last = this.#minutes.at(-1);
    const isSame = last !== undefined && Math.abs(nowMs - last.atMs) < MINUTE_MS;
    const now = isSame ? { ...last, count: last.count + changes.length } : { atMs: nowMs, count: changes.length };
    const before = isSame ? this.#minutes.slice(0, -1) : this.#minutes;
    this.#minutes = [...before, now].filter(({ atMs }) => nowMs - atMs < HOUR_MS);
  }
}
