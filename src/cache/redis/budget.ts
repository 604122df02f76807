/**
 * The memory of Redis that the shared cache may use: a budget of bytes for its copies, and what a server's `maxmemory` leaves to
 * them. API keys share it as they share the memory of a process:
 * - From nine tenths of the limit on, copies make room: first those that came in a list and were never read by themselves, then
 *   those of the keys with more than an equal share. Copies that come in lists are stored up to there.
 * - All else is stored up to 95 % of it.
 * - The rest, and 5 % more, is for the keys that have less than an equal share. Beyond that nothing is stored.
 * Copies that are there are read and replaced, negative entries and purges go on.
 *
 * How much there is, and whose, is an estimate: the number of names times the mean of some random ones, averaged over the last
 * samples, and what this process has added since. It is some 5 % off if copies are alike, and up to a third if a few of them hold
 * most of the bytes. Near a limit samples are a quarter of a second apart: so much all processes may add before they notice.
 */
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import { CacheNames } from '../../redis/names.ts';
import type { RedisServer } from '../../redis/open-connection.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import { settingsOf } from '../../redis/settings.ts';
import { Shares } from '../../shares/shares.ts';
import type { Timers } from '../../time/timers.ts';
import { withOwners } from './entry-format.ts';

export interface RedisBudgetOptions {
  readonly cache: RedisLink;
  readonly names: Pick<CacheNames, 'entryPrefix'>;
  /** Most bytes that copies, with all that lies beside them, may take in all servers together; null for no such limit. */
  readonly maxBytes: number | null;
  /** Whether keys and limits are in the same Redis: the cache leaves a reserve there. */
  readonly isOne: boolean;
  /** How many processes use it, as far as is known. */
  readonly processes: () => number;
  readonly timers: Timers;
  /** Called when copies begin to make room, with the limit that is near, and when there is room again (null). */
  readonly onBudget: (excess: BudgetExcess | null) => void;
}

export interface BudgetExcess {
  /** `budget`: `cache.redis`. `reserve`: what a server's `maxmemory` leaves beside keys and limits. */
  readonly limit: 'budget' | 'reserve';
  readonly usedBytes: number;
  readonly maxBytes: number;
}

/** A copy that is to be stored where there is none. */
export interface NewCopy {
  /** The API key that reads it. */
  readonly holder: string;
  readonly bytes: number;
  /** Whether it came in a list, and was never read alone. */
  readonly isBackfill: boolean;
}

const SAMPLE_EVERY_MS = 2000;
/** So often near a limit, because much can be stored in two seconds. */
const SAMPLE_OFTEN_MS = 250;
const NEAR = 0.7;
/** Share of `maxmemory` that the cache leaves to keys and limits, and to Redis itself where it is alone. */
const RESERVE = 0.1;
const OWN_RESERVE = 0.05;
/** Shares of the limit up to which there is room: for what lists bring, for anybody, and for those who have less than others. */
const MOST_FOR_LISTS = 0.9;
const MOST_FOR_ALL = 0.95;
const MOST = 1.05;
/** Above this share copies make room, down to the other one. */
const FULL = 0.9;
const ROOM_BELOW = 0.85;
/** Reported as within the limit again below this share of it, so that nothing flaps. */
const WITHIN_AGAIN = 0.8;
/** Random names that are weighed in one sample of a server. */
const DRAWS = 100;
/** How often names are drawn, at most, to make room after one sample. */
const MAX_DRAWS = 20;
/** Weight of the newest sample in the average; the rest is that of the estimate before, with what was added since. */
const NEWEST = 0.3;
/** Its weight if it differs by more than a third from that: then something else has changed. */
const NEWEST_IF_OTHER = 0.7;
const OTHER = 1 / 3;
/** The most for what was seen of calls (redis-seen-calls.ts), whose copies may be gone long before. */
const MOST_FOR_SEEN = 0.1;
/**
 * The bytes beside a copy's own: its name, the list of its owners, Redis's structures, and what its allocator rounds up. So much
 * `MEMORY USAGE` shows for the record of a call. If less is counted, lists bring more than fits before a sample shows it.
 */
const OVERHEAD_BYTES = 1000;

/** KEYS: entry; of a copy, its key's owners. ARGV: its owner, 1 if only a copy that was never read alone is meant. */
const EVICT = defineScript(
  'evictCopy',
  `
if ARGV[2] == '1' and redis.call('HEXISTS', KEYS[1], 'whole') == 0 then return 0 end
if KEYS[2] then redis.call('HDEL', KEYS[2], ARGV[1]) end
return redis.call('UNLINK', KEYS[1])
`,
);

interface Drawn extends NewCopy {
  /** Empty for what is no copy. */
  readonly name: string;
  /** Whether it is what was seen of a call. */
  readonly isSeen: boolean;
}

/** One server's number of names, and random names of answers. */
interface Sample {
  readonly names: number;
  readonly drawn: readonly Drawn[];
}

/** In bytes. */
interface Estimate {
  all: number;
  /** For what was seen of calls. */
  seen: number;
  readonly byHolder: Map<string, number>;
}

export class RedisBudget {
  readonly #options: RedisBudgetOptions;
  readonly #stopListening: () => void;
  #excess: BudgetExcess | null = null;
  #estimate: Estimate | null = null;
  /** Null while there is no limit. */
  #maxBytes: number | null = null;
  /** Who holds how much of what may be held, by the estimate. */
  #shares = new Shares({ capacity: 0, reservePercent: 0 });
  /** Whether the next sample comes soon. */
  #isSoon = false;
  #isSampling = false;
  #isClosed = false;
  #cancelNext: () => void = () => {};

  /** Samples as soon as Redis answers. */
  constructor(options: RedisBudgetOptions) {
    this.#options = options;
    this.#stopListening = options.cache.onUp(() => void this.#sample());
    void this.#sample();
  }

  /**
   * Whether such a copy may be stored where there is none; it is counted from now on, so that many at once are not all let in for
   * the room of one. While Redis does not answer, limits stay as they were.
   */
  admit(copy: NewCopy): boolean {
    if (this.#maxBytes === null) return true;
    if (!this.#admits(copy, this.#maxBytes)) return false;
    this.#count(copy.holder, copy.bytes + OVERHEAD_BYTES);
    if (this.#shares.total > this.#maxBytes * NEAR) this.#sampleSoon();
    return true;
  }

  /** Whether so much may be stored of what was seen of calls that nothing is there of yet. */
  admitSeen(bytes: number): boolean {
    const seen = (this.#estimate?.seen ?? 0) + bytes;
    if (this.#maxBytes === null) return true;
    if (seen > this.#maxBytes * MOST_FOR_SEEN || this.#shares.total + bytes > this.#maxBytes * MOST_FOR_LISTS)
      return false;
    this.#count('', bytes);
    if (this.#estimate !== null) this.#estimate.seen = seen;
    return true;
  }

  /** Takes back what `admit` has counted: the copy is not stored, or in the place of another. */
  giveBack(copy: NewCopy): void {
    if (this.#maxBytes !== null) this.#count(copy.holder, -copy.bytes - OVERHEAD_BYTES);
  }

  #admits({ holder, bytes, isBackfill }: NewCopy, maxBytes: number): boolean {
    const amount = bytes + OVERHEAD_BYTES;
    if (this.#shares.total + amount <= maxBytes * MOST_FOR_LISTS) return true;
    return this.#shares.admits(holder, amount) && (!isBackfill || this.#shares.hasLessThanEqual(holder, amount));
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#cancelNext();
  }

  /** Counts so much more; less if it is negative. */
  #count(holder: string, bytes: number): void {
    this.#shares.take(holder, bytes);
    if (this.#estimate === null) return;
    this.#estimate.all += bytes;
    this.#estimate.byHolder.set(holder, (this.#estimate.byHolder.get(holder) ?? 0) + bytes);
  }

  #sampleSoon(): void {
    if (this.#isSoon || this.#isSampling || this.#isClosed) return;
    this.#isSoon = true;
    this.#cancelNext();
    this.#cancelNext = this.#options.timers.after(SAMPLE_OFTEN_MS, () => void this.#sample());
  }

  /** Never rejects. */
  async #sample(): Promise<void> {
    if (this.#isSampling || this.#isClosed) return;
    this.#isSampling = true;
    this.#cancelNext();
    if (this.#options.cache.isUp()) {
      try {
        await this.#look();
      } catch {
        // Redis is gone, or refuses INFO, RANDOMKEY or MEMORY USAGE: nothing new is known.
      }
    }
    this.#isSampling = false;
    this.#isSoon = this.#maxBytes !== null && this.#shares.total > this.#maxBytes * NEAR;
    const nextMs = this.#isSoon ? SAMPLE_OFTEN_MS : SAMPLE_EVERY_MS;
    if (!this.#isClosed) this.#cancelNext = this.#options.timers.after(nextMs, () => void this.#sample());
  }

  async #look(): Promise<void> {
    const servers = this.#options.cache.servers();
    const memories = await Promise.all(servers.map(({ client }) => client.info('memory')));
    const isLimited = this.#options.maxBytes !== null || memories.some((info) => limitIn(info) !== null);
    if (!isLimited) {
      this.#maxBytes = null;
      this.#become(null);
      return;
    }
    const samples = await Promise.all(servers.map((server) => this.#draw(server)));
    this.#estimate = averaged(estimateOf(samples), this.#estimate);
    const { all, byHolder } = this.#estimate;
    const { limit, maxBytes, excess } = this.#limitOf(all, memories);
    this.#maxBytes = maxBytes;
    this.#shares = new Shares({
      capacity: Math.floor(maxBytes * MOST),
      reservePercent: 100 * (1 - MOST_FOR_ALL / MOST),
    });
    for (const [holder, bytes] of byHolder) this.#shares.take(holder, bytes);
    this.#report(limit, excess);
    if (this.#shares.total > maxBytes * FULL) await this.#makeRoom(samples, maxBytes);
  }

  /** A Redis of the cache's own is meant to be full, so that is not reported. */
  #report(limit: BudgetExcess['limit'], now: Omit<BudgetExcess, 'limit'>): void {
    const from = this.#excess?.limit === limit ? WITHIN_AGAIN : FULL;
    const isFull = now.usedBytes >= now.maxBytes * from && (limit === 'budget' || this.#options.isOne);
    this.#become(isFull ? { limit, ...now } : null);
  }

  #become(excess: BudgetExcess | null): void {
    const before = this.#excess;
    this.#excess = excess;
    if (before?.limit !== excess?.limit && !this.#isClosed) this.#options.onBudget(excess);
  }

  /**
   * The nearest limit, as bytes of copies. The fullest server counts: nobody knows at which one the next copy will be.
   * `excess`: in terms of the limit itself.
   */
  #limitOf(copyBytes: number, memories: readonly string[]) {
    const { maxBytes: budget, isOne } = this.#options;
    const own = budget ?? Infinity;
    const servers = memories.flatMap((info) => {
      const limits = limitIn(info);
      if (limits === null) return [];
      const maxBytes = Math.floor(limits.maxBytes * (1 - (isOne ? RESERVE : OWN_RESERVE)));
      return [{ usedBytes: limits.usedBytes, maxBytes }];
    });
    const [fullest] = servers.toSorted((a, b) => a.maxBytes - a.usedBytes - (b.maxBytes - b.usedBytes));
    const left = fullest === undefined ? Infinity : (fullest.maxBytes - fullest.usedBytes) * memories.length;
    if (fullest !== undefined && copyBytes + left < own) {
      return { limit: 'reserve', maxBytes: Math.max(0, copyBytes + left), excess: fullest } as const;
    }
    const excess = { usedBytes: Math.round(copyBytes), maxBytes: own };
    return { limit: 'budget', maxBytes: own, excess } as const;
  }

  /** Random names there, and what is kept in all. */
  async #draw({ client }: RedisServer): Promise<Sample> {
    const prefix = this.#options.names.entryPrefix;
    const draw = async (): Promise<Drawn | null> => {
      const name = await client.randomkey();
      if (name?.startsWith(prefix) !== true) return null;
      const isEntry = CacheNames.isEntry(name);
      const [bytes, about] = await Promise.all([
        client.memory('USAGE', name),
        isEntry ? client.hmget(name, 'by', 'whole') : [],
      ]);
      const [holder, wholeAtMs = null] = about;
      // Null for one that has expired since.
      const isSeen = CacheNames.seenIn(name) !== null;
      return {
        name: isEntry ? name : '',
        bytes: bytes ?? 0,
        holder: holder ?? '',
        isBackfill: wholeAtMs !== null,
        isSeen,
      };
    };
    const [names, ...drawn] = await Promise.all([client.dbsize(), ...Array.from({ length: DRAWS }, draw)]);
    return { names, drawn: drawn.filter((one) => one !== null) };
  }

  /** Deletes copies that were drawn, and draws more, until there is as much room as is this process's part to make. */
  async #makeRoom(first: readonly Sample[], maxBytes: number): Promise<void> {
    const { cache, processes } = this.#options;
    let left = (this.#shares.total - maxBytes * ROOM_BELOW) / processes();
    let samples = first;
    for (let draws = 1; left > 0 && !this.#isClosed; draws += 1) {
      const gone = await this.#evict(samples, left);
      left -= gone;
      // There is nothing that makes room.
      if (gone === 0 || draws === MAX_DRAWS) return;
      samples = await Promise.all(cache.servers().map((server) => this.#draw(server)));
    }
  }

  /** Returns how many bytes have gone. */
  async #evict(samples: readonly Sample[], bytes: number): Promise<number> {
    const { cache } = this.#options;
    const drawn = samples.flatMap((sample) => sample.drawn);
    const isGreedy = ({ holder }: Drawn): boolean => !this.#shares.hasLessThanEqual(holder);
    let gone = 0;
    const copies = drawn.filter(({ name }) => name !== '');
    const inTurn = [
      ...copies.filter(({ isBackfill }) => isBackfill),
      ...copies.filter((one) => !one.isBackfill && isGreedy(one)),
    ];
    for (const copy of inTurn) {
      if (gone >= bytes) break;
      const { name, isBackfill } = copy;
      const { owner = '' } = CacheNames.copyIn(name) ?? {};
      const isGone = await runScript(cache, EVICT, { keys: withOwners(name), args: [owner, Number(isBackfill)] });
      if (z.int().parse(isGone) !== 1) continue;
      this.#count(copy.holder, -copy.bytes);
      gone += copy.bytes;
    }
    return gone;
  }
}

/** Bytes in use at a server, and how many may be; null for no limit. */
function limitIn(info: string): { readonly usedBytes: number; readonly maxBytes: number } | null {
  const { usedMemoryBytes: usedBytes, maxMemoryBytes: maxBytes } = settingsOf(info, null);
  return usedBytes === null || maxBytes === null || maxBytes === 0 ? null : { usedBytes, maxBytes };
}

/** The bytes that all servers hold, if their other names are like those that were drawn. */
function estimateOf(samples: readonly Sample[]): Estimate {
  const byHolder = new Map<string, number>();
  let [all, seen] = [0, 0];
  for (const { names, drawn } of samples) {
    for (const { holder, bytes, isSeen } of drawn) {
      const share = (bytes * names) / DRAWS;
      all += share;
      if (isSeen) seen += share;
      byHolder.set(holder, (byHolder.get(holder) ?? 0) + share);
    }
  }
  return { all, seen, byHolder };
}

/** Below this part of all, a holder of the past is forgotten. */
const FORGOTTEN = 0.001;

function averaged(newest: Estimate, before: Estimate | null): Estimate {
  if (before === null) return newest;
  const isOther = Math.abs(newest.all - before.all) > OTHER * Math.max(newest.all, before.all);
  const weight = isOther ? NEWEST_IF_OTHER : NEWEST;
  const mean = (now: number, then: number): number => now * weight + then * (1 - weight);
  const all = mean(newest.all, before.all);
  const holders = new Set([...newest.byHolder.keys(), ...before.byHolder.keys()]);
  const byHolder = [...holders].map(
    (holder) => [holder, mean(newest.byHolder.get(holder) ?? 0, before.byHolder.get(holder) ?? 0)] as const,
  );
  return {
    all,
    seen: mean(newest.seen, before.seen),
    byHolder: new Map(byHolder.filter(([, bytes]) => bytes > all * FORGOTTEN)),
  };
}
