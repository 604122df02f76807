/** A consumer that follows the feed of changes, at any gateway, and reads at once what an event names. */
import { WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import type { ChangesRoom } from '../../src/changes/open.ts';
import type { Fleet } from './fleet.ts';
import type { Following } from './history.ts';

type Feed = NonNullable<ChangesRoom['feed']>;
type Page = NonNullable<Awaited<ReturnType<Feed['read']>>>;

/** The place of a key that sees both workspaces. */
const KEY = 3;
const WORKSPACES = [WORKSPACE_A, WORKSPACE_B];
const EVERY_MS = 60;
/** A reading without an answer by then is given up: its gateway stands still, or has ended. */
const GIVEN_UP_MS = 600;

export class Follower {
  readonly #fleet: Fleet;
  readonly #following: Following = { begunMs: null, lastReadMs: 0, events: [], expiredMs: null };
  #place: Page['place'] | null = null;
  /** The number of the reading that counts, and since when it is under way; null if none is. */
  #reading = 0;
  #sinceMs: number | null = null;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  begin(): void {
    this.#fleet.history.followings.push(this.#following);
    this.#readOn();
  }

  #readOn(): void {
    const { schedule, random, plan } = this.#fleet;
    const { nowMs } = schedule;
    schedule.after(EVERY_MS, null, () => this.#readOn());
    if (this.#sinceMs !== null && nowMs - this.#sinceMs < GIVEN_UP_MS) return;
    this.#sinceMs = nowMs;
    this.#reading += 1;
    const reading = this.#reading;
    this.#fleet.as(random.integer(0, plan.gateways - 1), async ({ changes }) => {
      try {
        const query = { workspaces: WORKSPACES, wanted: WORKSPACES, after: this.#place, limit: 100 };
        const page = await changes.feed?.read(query);
        if (reading === this.#reading) this.#take(page ?? null);
      } finally {
        if (reading === this.#reading) this.#sinceMs = null;
      }
    });
  }

  #take(page: Page | null): void {
    const { schedule, history, random, plan } = this.#fleet;
    const { nowMs } = schedule;
    const following = this.#following;
    following.lastReadMs = nowMs;
    if (page === null) following.expiredMs ??= nowMs;
    this.#place = page?.place ?? null;
    following.begunMs ??= nowMs;
    for (const { id, kind, change, atMs } of page?.events ?? []) {
      following.events.push({ id, kind, atMs });
      history.note(nowMs, 'feed', `${kind} ${id} is ${change}`);
      if (kind === 'scorecard') continue;
      const target = { kind: kind === 'call' ? 'evaluation' : 'transcript', id } as const;
      this.#fleet.read(random.integer(0, plan.gateways - 1), KEY, target, atMs);
    }
  }
}
