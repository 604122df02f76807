/**
 * Renews records that the store has announced to have changed, before they are read, so that their next reader need not wait for
 * the store: `cache.refreshRate` a second, of all processes together, while the store has room. A process renews what it has
 * in memory and what was read here within the `stale` of its class. A copy that another process has renewed leaves memory, so
 * a record costs one call however many processes held it.
 *
 * Each read pays for one renewal at most, so a record that changes again and again between two reads costs one call, however many
 * changes come. The copy is looked at when its turn has come: one that a reader has renewed meanwhile costs nothing. A copy with
 * another validator than the store has announced waits again, for the time after which it counts as changed (change-table.ts).
 *
 * Nothing depends on a renewal (C11: a copy from before a change is renewed before it is served): the next reader makes good one
 * that failed, came too late or was followed by another change.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import type { Changed } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import type { CallRate } from '../upstream/call-rate.ts';
import type { MaintenanceWatch } from '../upstream/maintenance.ts';
import { type Address, addressText } from './address.ts';
import { requestOf } from './change-table.ts';
import type { CacheListener } from './events.ts';
import type { ReadThrough } from './read-through.ts';
import type { CacheRequest } from './request.ts';
import type { TtlPolicy } from './ttl-policy.ts';

interface LastRead {
  readonly atMs: number;
  readonly keyId: string | undefined;
}

/** A copy that waits for its renewal. */
interface Waiting {
  readonly request: CacheRequest<unknown>;
  readonly owner: string;
  /** Who read it last, of a copy that is renewed again. */
  readonly again?: LastRead;
}

/** Records whose last read is remembered, and copies that wait; all others wait for their next reader. */
const MAX_KNOWN = 50_000;
/** The store's room counts a call only once it is sent: so many may be on their way there. */
const MAX_UNDER_WAY = 10;
/** While the store has no room, it is looked at again after so long. */
const NO_ROOM_WAIT_MS = 100;

/** When each record was last read here, until it is renewed. The copy does not show it: what refreshes it is no read. */
export class LastReads {
  readonly #byKey = new LRUCache<string, LastRead>(atMost(MAX_KNOWN));
  readonly listener: CacheListener;

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.listener = {
      onRead: ({ class: cacheClass, key, keyId, outcome }) => {
        // A reader who gets nothing does not count: it must not change what others get (K7a: a foreign record looks like none).
        if (cacheClass === 'list' || cacheClass === 'notFound' || outcome === 'failed') return;
        this.#byKey.set(key, { atMs: clock.nowMs(), keyId });
      },
    };
  }

  of(key: string): LastRead | null {
    return this.#byKey.peek(key) ?? null;
  }

  forget(key: string): void {
    this.#byKey.delete(key);
  }
}

export interface ChangedRenewalOptions {
  readonly lastReads: Pick<LastReads, 'of' | 'forget'>;
  readonly reads: Pick<ReadThrough, 'renewChanged'>;
  /** In how long the copy in memory is to be renewed again; null if it is not. */
  readonly againInMs: (address: Address) => number | null;
  readonly ttl: Pick<TtlPolicy, 'of'>;
  readonly rate: CallRate;
  /** Whether the store may be called at once, and nobody waits for it. */
  readonly hasRoom: () => boolean;
  readonly maintenance: MaintenanceWatch;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly timers: Timers;
}

export class ChangedRenewal {
  readonly #options: ChangedRenewalOptions;
  /** By address, in the order of the first change. */
  readonly #waiting = new Map<string, Waiting>();
  /** By address: what ends the wait of a copy that is renewed again. */
  readonly #later = new Map<string, () => void>();
  #underWay = 0;
  /** Whether a timer, or the rate, is about to go on with those that wait. */
  #willWake = false;
  #isClosed = false;

  constructor(options: ChangedRenewalOptions) {
    this.#options = options;
  }

  /** To be called once the changes are in force here. Deleted records are not asked for. */
  onChanges({ isAnnounced, changes }: Pick<Changed, 'isAnnounced' | 'changes'>): void {
    if (!isAnnounced) return;
    for (const { tag, workspace, kinds, isDeleted } of changes) {
      if (isDeleted) continue;
      for (const kind of kinds) {
        const request = requestOf({ tag, kind });
        if (request === null || this.#lastReadOf(request) === null || this.#waiting.size >= MAX_KNOWN) continue;
        this.#waiting.set(addressText({ key: request.key, owner: workspace }), { request, owner: workspace });
      }
    }
    this.#goOn();
  }

  close(): void {
    this.#waiting.clear();
    for (const cancel of this.#later.values()) cancel();
    this.#isClosed = true;
  }

  /** The last read of the record, unless that is too long ago. */
  #lastReadOf({ kind, key }: Waiting['request']): LastRead | null {
    const { lastReads, ttl, clock } = this.#options;
    const last = lastReads.of(key);
    return last !== null && clock.nowMs() - last.atMs < ttl.of(kind).staleMs ? last : null;
  }

  /** Begins renewals until it has to wait. */
  #goOn(): void {
    const { rate, hasRoom, maintenance, timers } = this.#options;
    const wake = (): void => {
      this.#willWake = false;
      this.#goOn();
    };
    while (!this.#willWake && this.#underWay < MAX_UNDER_WAY && this.#waiting.size > 0) {
      if (!hasRoom() || maintenance.current() !== null) {
        this.#willWake = true;
        timers.after(NO_ROOM_WAIT_MS, wake);
      } else if (rate.take(wake)) this.#renewNext();
      else this.#willWake = true;
    }
  }

  /** Renews the first that is still to be renewed. */
  #renewNext(): void {
    const { reads, lastReads } = this.#options;
    for (const [name, waiting] of this.#waiting) {
      this.#waiting.delete(name);
      const { request, owner, again } = waiting;
      const last = again ?? this.#lastReadOf(request);
      if (last === null) continue;
      const renewing = reads.renewChanged(request, owner, last.keyId);
      if (renewing === null) {
        this.#renewAgain({ request, owner, again: last });
        continue;
      }
      lastReads.forget(request.key);
      this.#underWay += 1;
      void renewing.finally(() => {
        this.#underWay -= 1;
        this.#renewAgain({ request, owner, again: last });
        this.#goOn();
      });
      return;
    }
  }

  /** Lets the copy wait again once it counts as changed, if its answer was not the one that the store has announced. */
  #renewAgain(waiting: Waiting): void {
    const { againInMs, timers } = this.#options;
    const { request, owner } = waiting;
    const address = { key: request.key, owner };
    const name = addressText(address);
    const delayMs = againInMs(address);
    if (delayMs === null || this.#isClosed || this.#later.has(name) || this.#later.size >= MAX_KNOWN) return;
    const wait = (): void => {
      this.#later.delete(name);
      this.#waiting.set(name, waiting);
      this.#goOn();
    };
    this.#later.set(name, timers.after(delayMs, wait));
  }
}
