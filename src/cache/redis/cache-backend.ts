/** Everything that the cache shares with other processes through Redis: cached answers, purges, TTLs and maintenance. */
import type { RedisLink, RedisRole } from '../../redis/connection.ts';
import { type Connectivity, ConnectivityWatch } from '../../redis/connectivity.ts';
import { CacheNames } from '../../redis/names.ts';
import { withDeadline } from '../../time/timers.ts';
import type { MemoryTier } from '../memory-tier.ts';
import type { CacheClass } from '../ttl-policy.ts';
import { RedisBudget, type RedisBudgetOptions } from './budget.ts';
import { type RecordCipher, UndecryptableError } from './encryption.ts';
import { RedisSharedCache } from './redis-shared-cache.ts';
import { StateSync, type StateSyncOptions } from './state-sync.ts';

export interface CacheBackendOptions extends Omit<RedisBudgetOptions, 'names'>, Omit<StateSyncOptions, 'onTtlChanged'> {
  /** Its owner closes it, and the link to the cache Redis. */
  readonly state: RedisLink;
  /** The id of this process. */
  readonly self: string;
  /** Names the store whose answers are cached, in letters and digits: answers of another store are kept apart. */
  readonly store: string;
  /** Encrypts the records that are stored in the cache Redis. */
  readonly cipher: RecordCipher;
  /** The longest answer of the store that is accepted. */
  readonly maxAnswerBytes: number;
  /** The memory tier of this process. It is not used while changes may be missed (C8: memory is dropped then). */
  readonly memory: MemoryTier;
  /**
   * Something stored as an entry can't be read (`decode`), or the check of the memory tier failed (`recheck`), or entries
   * could not be kept for a TTL that was made longer (`keep`).
   */
  readonly onFailed: (operation: 'decode' | 'recheck' | 'keep', error: unknown) => void;
  /** A stored record can't be decrypted. It counts as none. */
  readonly onUndecryptable: (error: UndecryptableError) => void;
  /** `reason`: why it is disconnected; null otherwise. */
  readonly onConnectivity: (role: RedisRole, now: Connectivity, reason: unknown) => void;
}

/** How long a lease holds without being renewed; more than three times as long as its renewals are apart. */
const LEASE_MS = 2000;
/** How long a start waits for a Redis that neither answers nor refuses. */
const OPEN_WITHIN_MS = 1000;
/** How long a change of TTLs waits until stored entries have their new life; the rest of them get it later. */
const KEEP_WITHIN_MS = 5000;

export class CacheBackend {
  readonly sharedCache: RedisSharedCache;
  readonly state: StateSync;
  readonly #options: CacheBackendOptions;
  readonly #budget: RedisBudget;
  readonly #watches: Readonly<Record<RedisRole, ConnectivityWatch>>;

  /**
   * Resolves once the messages of the other processes arrive, or as soon as it is clear that they can't now: a Redis that
   * does not answer keeps no gateway from starting, and is joined when it comes back. Never rejects.
   */
  static async open(options: CacheBackendOptions): Promise<CacheBackend> {
    const cache = new CacheBackend(options);
    const settled = Promise.all(Object.values(cache.#watches).map((watch) => watch.settled));
    await withDeadline(settled, OPEN_WITHIN_MS, options.timers, () => undefined);
    return cache;
  }

  private constructor(options: CacheBackendOptions) {
    const { state, cache, store } = options;
    const names = new CacheNames(store);
    this.#options = options;
    this.state = new StateSync(state, { ...options, onTtlChanged: (cacheClass) => this.keepLonger([cacheClass]) });
    this.#budget = new RedisBudget({ ...options, names });
    this.sharedCache = new RedisSharedCache({
      ...options,
      names,
      budget: this.#budget,
      leaseMs: LEASE_MS,
      purges: this.state.purges,
      onBroken: (error) => {
        if (error instanceof UndecryptableError) options.onUndecryptable(error);
        else options.onFailed('decode', error);
      },
    });
    // A Cluster answers if all of it does: the state lies at one of its nodes, and messages may come from any.
    const lookAtState = async (): Promise<void> => {
      await Promise.all([this.state.look(), state.kind === 'cluster' ? state.ping() : null]);
    };
    this.#watches = { state: this.#watch(state, lookAtState), cache: this.#watch(cache, () => cache.ping()) };
  }

  /**
   * Keeps stored entries of these classes as long as the TTLs in force want it. Resolves after some seconds at the latest;
   * the rest is done in the background. Never rejects.
   */
  async keepLonger(classes: readonly CacheClass[]): Promise<void> {
    const { timers, onFailed } = this.#options;
    const kept = this.sharedCache.keepLonger(classes).catch((error: unknown) => onFailed('keep', error));
    await withDeadline(kept, KEEP_WITHIN_MS, timers, () => undefined);
  }

  /** Stops listening and looking. The links go on. */
  close(): void {
    for (const watch of Object.values(this.#watches)) watch.close();
    this.state.close();
    this.#budget.close();
    this.sharedCache.close();
  }

  #watch(link: RedisLink, look: () => Promise<void>): ConnectivityWatch {
    const { clock, timers, onConnectivity, onFailed } = this.#options;
    const { role } = link;
    return new ConnectivityWatch({
      link,
      look,
      clock,
      timers,
      onChange: (now, before, reason) => {
        this.#suspendMemoryIfBehind();
        // The purge log is up to date by now. Entries that others stored meanwhile have to be looked up too.
        if (role === 'cache' && now === 'connected' && before === 'disconnected') {
          this.sharedCache.recheck().catch((error: unknown) => onFailed('recheck', error));
        }
        onConnectivity(role, now, reason);
      },
    });
  }

  /** C8: changes of other processes must arrive here, unless Redis is down for all. */
  #suspendMemoryIfBehind(): void {
    const { memory } = this.#options;
    const isBehind = Object.values(this.#watches).some(({ now }) => now === 'subscriptionLost');
    if (isBehind) memory.suspend();
    else memory.resume();
  }
}
