/**
 * Fair shares of what a process has only so much of: connections to the store, requests at a time, memory. All of it is
 * reckoned per holder: an API key, or the client's address of a request without one.
 * - `Shares`: who holds how much, who may have more, and who gives up first.
 * - `FairQueue`: the same with a queue: whose turn it is, and whose place a full queue gives to another.
 *
 * Both hold state, and do no I/O; clock and timers are handed in. Nothing of another folder is imported.
 */

export interface ShareLimits {
  /** How much all holders may have together. */
  readonly capacity: number;
  /** The share of `capacity` that one holder leaves to the others, in percent. */
  readonly reservePercent: number;
  /** It leaves at least so much, unless there is no more: without it, nothing of a small capacity. */
  readonly leastReserve?: number;
}

/** The share that one holder leaves to the others unless a setting says otherwise: nobody takes the last fifth. */
export const RESERVE_PERCENT = 20;

/** Amounts are in units of the caller's choice, such as requests or bytes. */
export class Shares<H = string> {
  readonly #reserve: Omit<ShareLimits, 'capacity'>;
  #capacity = 0;
  #maxPerHolder = 1;
  readonly #amounts = new Map<H, number>();
  #total = 0;

  constructor({ capacity, ...reserve }: ShareLimits) {
    this.#reserve = reserve;
    this.resize(capacity);
  }

  /** From now on all holders may have that much together. Amounts held above it stay until they are given back. */
  resize(capacity: number): void {
    const { reservePercent, leastReserve = 0 } = this.#reserve;
    const reserve = Math.max(leastReserve, Math.floor((capacity * reservePercent) / 100));
    this.#capacity = capacity;
    this.#maxPerHolder = Math.max(1, capacity - reserve);
  }

  get total(): number {
    return this.#total;
  }

  of(holder: H): number {
    return this.#amounts.get(holder) ?? 0;
  }

  /** Whether there is that much left. An amount above the capacity is let in by itself: else it would wait for ever. */
  hasRoom(amount = 1): boolean {
    return this.#total === 0 || this.#total + amount <= this.#capacity;
  }

  /** Whether the holder leaves the others their share with that much more. A holder of nothing does. */
  isWithinShare(holder: H, amount = 1): boolean {
    const held = this.of(holder);
    return held === 0 || held + amount <= this.#maxPerHolder;
  }

  /**
   * Whether the holder may have that much more now, where nobody waits for it. The part that one holder leaves to the others is
   * then kept for those who have less than an equal share: so it is there for whoever comes, however many are greedy.
   */
  admits(holder: H, amount = 1): boolean {
    if (!this.hasRoom(amount) || !this.isWithinShare(holder, amount)) return false;
    return this.#total + amount <= this.#maxPerHolder || this.hasLessThanEqual(holder, amount);
  }

  /** Whether the holder has no more than an equal share with that much more, one more holder counted. One of nothing has. */
  hasLessThanEqual(holder: H, amount = 0): boolean {
    const held = this.of(holder);
    return held === 0 || held + amount <= this.#capacity / (this.#amounts.size + 1);
  }

  /** Adds it, whatever the limits. */
  take(holder: H, amount = 1): void {
    this.#total += amount;
    this.#amounts.set(holder, this.of(holder) + amount);
  }

  giveBack(holder: H, amount = 1): void {
    const left = this.of(holder) - amount;
    this.#total -= amount;
    if (left > 0) this.#amounts.set(holder, left);
    else this.#amounts.delete(holder);
  }

  /** The holder of most, who gives up first; undefined if nobody holds anything. */
  largest(): H | undefined {
    let largest: H | undefined;
    let most = 0;
    for (const [holder, amount] of this.#amounts) {
      if (amount > most) [largest, most] = [holder, amount];
    }
    return largest;
  }
}

/** Gives back what was granted; called once. */
export type Release = () => void;
/**
 * Why there is no turn:
 * - `queue-full`: as many as may wait were waiting, and its holder had most of them
 * - `queue-timeout`: it had waited as long as it may
 * - `refused`: the queue was cleared
 * - `abandoned`: nobody waits for it any more
 */
export type Refusal = 'queue-full' | 'queue-timeout' | 'refused' | 'abandoned';

/** `background`: nobody waits for it, so that what its holder awaits goes first. */
type Priority = 'awaited' | 'background';
const PRIORITIES = ['awaited', 'background'] as const satisfies readonly Priority[];

/** So many turns in a row may go to what is awaited while anything waits in the background. */
const AWAITED_IN_A_ROW = 9;

export interface Turn<H = string> {
  readonly holder: H;
  readonly amount?: number;
  readonly priority?: Priority;
  /** Within one holder and priority, what is worth more goes first; it may change while it waits. */
  readonly worth?: () => number;
  /** How long it may wait; without it as long as it takes. With 0 it has its turn at once or not at all. */
  readonly waitMs?: number;
  /** Aborted once nobody waits for it any more. */
  readonly signal?: AbortSignal;
}

export interface QueueLimits extends ShareLimits {
  readonly maxWaiting: number;
}

export interface QueueParts {
  /** Only `nowMicros`, which is never set back. */
  readonly clock: { nowMicros(): number };
  /** Calls `run` once after that time, unless the returned function is called first. */
  readonly timers: { after(delayMs: number, run: () => void): () => void };
  /** Asked right before each grant: false if it must wait, and then `serve` is called once it need not. */
  readonly mayGrant?: () => boolean;
}

/** Takes one that waits out of the queue, with that result. */
interface Waiting {
  readonly amount: number;
  readonly worth: () => number;
  readonly leave: (result: Release | Refusal) => void;
}

/** One holder's place in the queue. Those that wait are in order of arrival. */
interface Line<H> extends Readonly<Record<Priority, Set<Waiting>>> {
  readonly holder: H;
  /** Amounts, times the milliseconds for which they were held. It begins with what the holder had used that was served last. */
  used: number;
}

/**
 * - The next turn is that of the holder who has least; among equals, of the one that has used least, else of the one that was
 *   served longest ago. So one whose turns are long has fewer of them, and nobody's waiting readers keep others from their
 *   renewals. Nothing is saved up by a holder that does not wait (start-time fair queueing).
 * - The turns of one holder that are awaited go before those that are not, and those worth more before those worth less; but
 *   every tenth turn is one in the background, if any waits.
 * - A full queue drops what is worth least in the background, else the last one, of the holder that has most of it waiting.
 * - If the one whose turn it is needs more room than there is, all wait until it has it.
 */
export class FairQueue<H = string> {
  readonly #shares: Shares<H>;
  #maxWaiting: number;
  readonly #clock: QueueParts['clock'];
  readonly #timers: QueueParts['timers'];
  readonly #mayGrant: () => boolean;
  /** Holders that have something or wait; the one that was served last is last. */
  readonly #lines = new Map<H, Line<H>>();
  #waiting = 0;
  /** The `used` of the line that was served last, as of then. */
  #used = 0;
  /** Turns in a row. */
  #awaitedTurns = 0;

  constructor(limits: QueueLimits, { clock, timers, mayGrant = () => true }: QueueParts) {
    this.#shares = new Shares(limits);
    this.#clock = clock;
    this.#maxWaiting = limits.maxWaiting;
    this.#timers = timers;
    this.#mayGrant = mayGrant;
  }

  /** From now on that much may be held in all, and so many may wait; grants what can be granted then. */
  resize({ capacity, maxWaiting }: Pick<QueueLimits, 'capacity' | 'maxWaiting'>): void {
    this.#maxWaiting = maxWaiting;
    this.#shares.resize(capacity);
    this.serve();
  }

  /** How much is held, and how many wait. */
  load(): { readonly held: number; readonly waiting: number } {
    return { held: this.#shares.total, waiting: this.#waiting };
  }

  /** Resolves as soon as it is decided; never rejects. */
  async acquire(turn: Turn<H>): Promise<Release | Refusal> {
    const { holder, amount = 1, priority = 'awaited', worth = () => 0, waitMs, signal } = turn;
    const line = this.#lineOf(holder);
    const isAlone = line.awaited.size + line.background.size === 0;
    if (isAlone) line.used = Math.max(line.used, this.#used);
    // Those that wait while this one may go wait for the gate, or for more than their holders may have.
    const isFirst = isAlone && this.#next(PRIORITIES) === undefined;
    const mayGo = isFirst && this.#shares.hasRoom(amount) && this.#shares.isWithinShare(holder, amount);
    if (mayGo && this.#mayGrant()) return this.#grant(line, amount, priority);
    if (waitMs === 0) return 'queue-timeout';
    if (this.#waiting >= this.#maxWaiting && !this.#makeRoomFor(line, priority, worth())) return 'queue-full';
    const { promise, resolve } = Promise.withResolvers<Release | Refusal>();
    const waiting: Waiting = {
      amount,
      worth,
      leave: (result) => {
        cancel?.();
        signal?.removeEventListener('abort', abandon);
        line[priority].delete(waiting);
        this.#waiting -= 1;
        this.#forgetIfIdle(line);
        resolve(result);
      },
    };
    const giveUp = (why: Refusal): void => {
      waiting.leave(why);
      // Others may have waited behind it for room.
      this.serve();
    };
    const abandon = (): void => giveUp('abandoned');
    signal?.addEventListener('abort', abandon);
    const cancel = waitMs === undefined ? undefined : this.#timers.after(waitMs, () => giveUp('queue-timeout'));
    line[priority].add(waiting);
    this.#waiting += 1;
    this.#lines.set(holder, line);
    return promise;
  }

  /** Takes it at once, whatever the limits: it is there already. */
  take(holder: H, amount: number): Release {
    return this.#grant(this.#lineOf(holder), amount, 'awaited');
  }

  /** Does the work once its turn has come. Rejects as the work does, and with an Error if the turn is refused. */
  async run<T>(turn: Turn<H>, work: () => Promise<T>): Promise<T> {
    const release = await this.acquire(turn);
    if (typeof release === 'string') throw new Error(`there was no turn: ${release}`);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Grants what can be granted now. */
  serve(): void {
    while (this.#shares.hasRoom()) {
      const isBackgrounds = this.#awaitedTurns >= AWAITED_IN_A_ROW;
      const next = (isBackgrounds ? this.#next(['background']) : undefined) ?? this.#next(PRIORITIES);
      if (next === undefined) return;
      const { line, first, priority } = next;
      if (!this.#shares.hasRoom(first.amount) || !this.#mayGrant()) return;
      first.leave(this.#grant(line, first.amount, priority));
    }
  }

  /** Refuses all that wait. */
  clear(): void {
    for (const { awaited, background } of this.#lines.values()) {
      for (const { leave } of [...awaited, ...background]) leave('refused');
    }
  }

  /**
   * Drops one that waits so that one more of that line can; false if that one is to be dropped itself. One in the background
   * gives up its place to one that is awaited, and in the same line to one that is worth more.
   */
  #makeRoomFor(line: Line<H>, priority: Priority, worth: number): boolean {
    const background = this.#longest('background');
    const dropped = background === undefined ? 'awaited' : 'background';
    const longest = background ?? this.#longest('awaited');
    if (longest === undefined || (priority === 'background' && dropped === 'awaited')) return false;
    const all = [...longest[dropped]];
    // The one that waited longest of those worth the same; the last of awaited ones, which would be served last.
    const least = all.toSorted((one, other) => one.worth() - other.worth())[0];
    const one = dropped === 'background' ? least : all.at(-1);
    const isWorthMore = longest === line && one !== undefined && worth > one.worth();
    if (priority === dropped && line[priority].size + 1 >= longest[dropped].size && !isWorthMore) return false;
    one?.leave('queue-full');
    return one !== undefined;
  }

  /** The line with most waiting of that priority; undefined if there are none. */
  #longest(priority: Priority): Line<H> | undefined {
    let longest: Line<H> | undefined;
    for (const line of this.#lines.values()) {
      if (line[priority].size > (longest?.[priority].size ?? 0)) longest = line;
    }
    return longest;
  }

  /** Whose turn it is among those of the priorities: of those whose first may be let in as far as its own share goes. */
  #next(priorities: readonly Priority[]): ({ readonly line: Line<H> } & First) | undefined {
    let next: ({ readonly line: Line<H> } & First) | undefined;
    for (const line of this.#lines.values()) {
      const first = firstOf(line, priorities);
      if (first === undefined || !this.#shares.isWithinShare(line.holder, first.first.amount)) continue;
      if (next === undefined || this.#goesBefore(line, next.line)) next = { line, ...first };
    }
    return next;
  }

  /** Whether the one, who was served after the other, goes first all the same. */
  #goesBefore(one: Line<H>, other: Line<H>): boolean {
    const [held, othersHeld] = [this.#shares.of(one.holder), this.#shares.of(other.holder)];
    return held < othersHeld || (held === othersHeld && one.used < other.used);
  }

  #grant(line: Line<H>, amount: number, priority: Priority): Release {
    const { holder } = line;
    this.#awaitedTurns = priority === 'awaited' ? this.#awaitedTurns + 1 : 0;
    this.#shares.take(holder, amount);
    this.#lines.delete(holder);
    this.#lines.set(holder, line);
    this.#used = Math.max(this.#used, line.used);
    const sinceMs = this.#nowMs();
    return () => {
      line.used += amount * (this.#nowMs() - sinceMs);
      this.#shares.giveBack(holder, amount);
      this.#forgetIfIdle(line);
      this.serve();
    };
  }

  #lineOf(holder: H): Line<H> {
    return this.#lines.get(holder) ?? { holder, awaited: new Set(), background: new Set(), used: this.#used };
  }

  #nowMs(): number {
    return this.#clock.nowMicros() / 1000;
  }

  #forgetIfIdle({ holder, awaited, background }: Line<H>): void {
    if (this.#shares.of(holder) + awaited.size + background.size === 0) this.#lines.delete(holder);
  }
}

interface First {
  readonly first: Waiting;
  readonly priority: Priority;
}

/** The first of the line: what is awaited before what is not; of these what is worth most, else what came first. */
function firstOf<H>(line: Line<H>, priorities: readonly Priority[]): First | undefined {
  for (const priority of PRIORITIES) {
    let [first] = line[priority];
    if (first === undefined || !priorities.includes(priority)) continue;
    for (const waiting of line[priority]) if (waiting.worth() > first.worth()) first = waiting;
    return { first, priority };
  }
  return undefined;
}
