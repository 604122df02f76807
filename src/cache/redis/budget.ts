/**
 * The memory of Redis that the shared cache may use: a budget of bytes for its entries and, if keys and limits are in the
 * same Redis, a reserve below `maxmemory` that is left to them. Over it no new entry is stored. Entries that are there are
 * read and replaced, negative entries and purges go on.
 *
 * Both are measured by sampling, so both can be exceeded by what all processes store within one sample interval. The
 * bytes of entries are an estimate: the number of keys times the mean size of some random ones, averaged over the last
 * samples. It is some 10 % off if entries are alike, and up to a third if a few of them hold most of the bytes.
 */
import type { RedisLink } from '../../redis/connection.ts';
import type { RedisServer } from '../../redis/open-connection.ts';
import type { CacheNames } from '../../redis/names.ts';
import { settingsOf } from '../../redis/settings.ts';
import type { Timers } from '../../time/timers.ts';

export interface RedisBudgetOptions {
  readonly cache: RedisLink;
  readonly names: Pick<CacheNames, 'entryPrefix'>;
  /** Most bytes that entries, with all that lies beside them, may take in all servers together; null for no such limit. */
  readonly maxBytes: number | null;
  /** Whether keys and limits are in the same Redis: the cache leaves a reserve there. */
  readonly isOne: boolean;
  readonly timers: Timers;
  /** Called when the cache goes over the budget, with what is exceeded, and when it is within again (null). */
  readonly onBudget: (excess: BudgetExcess | null) => void;
}

export interface BudgetExcess {
  /** `budget`: the entries exceed `cache.redis`. `reserve`: a server has used what is left to keys and limits. */
  readonly limit: 'budget' | 'reserve';
  readonly usedBytes: number;
  readonly maxBytes: number;
}

const SAMPLE_EVERY_MS = 2000;
/** Share of `maxmemory` that the cache leaves to keys and limits. */
const RESERVE = 0.1;
/** New entries are stored again below this share of a limit, so that estimates near it cause no flapping. */
const WITHIN_AGAIN = 0.9;
/** Random keys that are weighed in one sample of a server. */
const DRAWS = 100;
/** Weight of the newest sample in the average. */
const NEWEST = 0.5;

export class RedisBudget {
  readonly #options: RedisBudgetOptions;
  readonly #stopListening: () => void;
  #excess: BudgetExcess | null = null;
  /** Null before the first sample. */
  #entryBytes: number | null = null;
  #isSampling = false;
  #isClosed = false;
  #cancelNext: () => void = () => {};

  /** Samples as soon as Redis answers. Without a budget and a Redis to share, there is nothing to sample. */
  constructor(options: RedisBudgetOptions) {
    this.#options = options;
    const isNeeded = options.maxBytes !== null || options.isOne;
    this.#stopListening = isNeeded ? options.cache.onUp(() => void this.#sample()) : () => {};
    if (isNeeded) void this.#sample();
  }

  /** Whether new entries have to stay out, as of the last sample. While Redis does not answer, that stays as it was. */
  get isOver(): boolean {
    return this.#excess !== null;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#cancelNext();
  }

  /** Never rejects. */
  async #sample(): Promise<void> {
    if (this.#isSampling || this.#isClosed) return;
    this.#isSampling = true;
    this.#cancelNext();
    if (this.#options.cache.isUp()) {
      try {
        this.#become((await this.#readReserve()) ?? (await this.#readBudget()));
      } catch {
        // Redis is gone, or refuses INFO, RANDOMKEY or MEMORY USAGE: nothing new is known.
      }
    }
    this.#isSampling = false;
    if (!this.#isClosed) this.#cancelNext = this.#options.timers.after(SAMPLE_EVERY_MS, () => void this.#sample());
  }

  #become(excess: BudgetExcess | null): void {
    const before = this.#excess;
    this.#excess = excess;
    if (before?.limit !== excess?.limit && !this.#isClosed) this.#options.onBudget(excess);
  }

  /** On a Cluster the fullest primary counts: nobody knows at which one the next entry will be. */
  async #readReserve(): Promise<BudgetExcess | null> {
    const { cache, isOne } = this.#options;
    if (!isOne) return null;
    const infos = await Promise.all(cache.servers().map(({ client }) => client.info('memory')));
    for (const info of infos) {
      const { usedMemoryBytes: usedBytes, maxMemoryBytes } = settingsOf(info, null);
      // 0: it has no limit.
      if (usedBytes === null || maxMemoryBytes === null || maxMemoryBytes === 0) continue;
      const excess = this.#excessOf('reserve', usedBytes, Math.floor(maxMemoryBytes * (1 - RESERVE)));
      if (excess !== null) return excess;
    }
    return null;
  }

  async #readBudget(): Promise<BudgetExcess | null> {
    const { cache, maxBytes } = this.#options;
    if (maxBytes === null) return null;
    const estimates = await Promise.all(cache.servers().map((server) => this.#estimateBytes(server)));
    const newest = estimates.reduce((sum, bytes) => sum + bytes, 0);
    this.#entryBytes = newest * NEWEST + (this.#entryBytes ?? newest) * (1 - NEWEST);
    return this.#excessOf('budget', Math.round(this.#entryBytes), maxBytes);
  }

  #excessOf(limit: BudgetExcess['limit'], usedBytes: number, maxBytes: number): BudgetExcess | null {
    const endsAtBytes = this.#excess?.limit === limit ? maxBytes * WITHIN_AGAIN : maxBytes;
    return usedBytes >= endsAtBytes ? { limit, usedBytes, maxBytes } : null;
  }

  /** Bytes of all that is kept of answers in the database used there. */
  async #estimateBytes({ client }: RedisServer): Promise<number> {
    const prefix = this.#options.names.entryPrefix;
    const draw = async (): Promise<number> => {
      const name = await client.randomkey();
      // Null for one that has expired since.
      return name?.startsWith(prefix) === true ? ((await client.memory('USAGE', name)) ?? 0) : 0;
    };
    const [keys, ...sizes] = await Promise.all([client.dbsize(), ...Array.from({ length: DRAWS }, draw)]);
    return (keys * sizes.reduce((sum, bytes) => sum + bytes, 0)) / DRAWS;
  }
}
