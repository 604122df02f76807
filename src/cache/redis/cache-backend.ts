/** The cache that processes share in Redis, and what changes it: purges and TTLs. */
import type { Bridge03 } from '../../journal/bridge-0.3.ts';
import type { RedisJournal } from '../../journal/redis-journal.ts';
import type { RedisLink, RedisRole } from '../../redis/connection.ts';
import { type Connectivity, ConnectivityReport, type ConnectivityReportOptions } from '../../redis/connectivity.ts';
import { CacheNames } from '../../redis/names.ts';
import type { Clock } from '../../time/clock.ts';
import { withDeadline } from '../../time/timers.ts';
import type { MemoryTier } from '../memory-tier.ts';
import { type HardPurgeListener, PurgeLog } from '../purge-log.ts';
import { TtlControl } from '../ttl-control.ts';
import type { CacheClass, TtlEnd, TtlPolicy } from '../ttl-policy.ts';
import { RedisBudget, type RedisBudgetOptions } from './budget.ts';
import { type RecordCipher, UndecryptableError } from './encryption.ts';
import { RedisSharedCache } from './redis-shared-cache.ts';

export interface CacheBackendOptions extends Omit<RedisBudgetOptions, 'names'> {
  /** Its owner closes it, and the links to the state Redis and the cache Redis. */
  readonly journal: RedisJournal;
  readonly bridge: Pick<Bridge03, 'look'>;
  readonly state: RedisLink;
  readonly ttl: TtlPolicy;
  readonly clock: Clock;
  readonly onHardPurge: HardPurgeListener;
  /** Called in one process of all for each class whose TTLs have ended by themselves. */
  readonly onTtlEnd: (end: TtlEnd) => void;
  /** The id of this process. */
  readonly self: string;
  /** Names the store whose answers are cached, in letters and digits: answers of another store are kept apart. */
  readonly store: string;
  /** Encrypts the records that are stored in the cache Redis. */
  readonly cipher: RecordCipher;
  /** The longest answer of the store that is accepted. */
  readonly maxAnswerBytes: number;
  /** The memory tier of this process. */
  readonly memory: MemoryTier;
  /**
   * Something stored as an entry can't be read (`decode`), or entries could not be kept for a TTL that was made longer
   * (`keep`).
   */
  readonly onFailed: (operation: 'decode' | 'keep', error: unknown) => void;
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
  readonly purges: PurgeLog;
  readonly ttlControl: TtlControl;
  readonly #options: CacheBackendOptions;
  readonly #budget: RedisBudget;
  readonly #stopMoves: () => void;
  readonly #reports: Readonly<Record<RedisRole, ConnectivityReport>>;

  /**
   * Resolves once the journal was read, or as soon as it is clear that it can't be now: a Redis that does not answer keeps no
   * gateway from starting, and is joined when it comes back. Never rejects.
   */
  static async open(options: CacheBackendOptions): Promise<CacheBackend> {
    const { journal, bridge, state, cache: cacheLink, timers } = options;
    const cache = new CacheBackend(options);
    const joined = untilUp(state)
      .then(() => journal.catchUp())
      .then(() => bridge.look());
    const links = [state.subscriber, cacheLink, cacheLink.subscriber];
    const settled = Promise.allSettled([joined, ...links.map(untilUp)]);
    await withDeadline(settled, OPEN_WITHIN_MS, timers, () => undefined);
    for (const report of Object.values(cache.#reports)) report.update();
    return cache;
  }

  private constructor(options: CacheBackendOptions) {
    const { journal, state, cache, store, ttl, clock, timers, onHardPurge, onTtlEnd } = options;
    const names = new CacheNames(store);
    this.#options = options;
    this.purges = new PurgeLog({ journal, clock, onHard: onHardPurge });
    const onChanged = (cacheClass: CacheClass): Promise<void> => this.keepLonger([cacheClass]);
    this.ttlControl = new TtlControl({ journal, policy: ttl, clock, timers, onEnd: onTtlEnd, onChanged });
    this.#stopMoves = journal.on('moved', ({ key, workspaces, requestedAtMs }) => {
      options.memory.end(key, workspaces, requestedAtMs);
    });
    this.#budget = new RedisBudget({ ...options, names });
    this.sharedCache = new RedisSharedCache({
      ...options,
      names,
      budget: this.#budget,
      leaseMs: LEASE_MS,
      purges: this.purges,
      onBroken: (error) => {
        if (error instanceof UndecryptableError) options.onUndecryptable(error);
        else options.onFailed('decode', error);
      },
    });
    /** Whether messages were heard once: if not, the user may have no right to them. */
    let hasHeard = false;
    this.#reports = {
      state: this.#report(state, {
        isCurrent: () => {
          hasHeard ||= state.subscriber.isUp();
          return hasHeard && journal.isProven() && journal.waitFailure === null;
        },
        failure: () => journal.failure,
        silence: () => journal.waitFailure,
      }),
      cache: this.#report(cache, { isCurrent: () => cache.subscriber.isUp() }),
    };
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

  /** Stops listening and looking. The journal and the links go on. */
  close(): void {
    for (const report of Object.values(this.#reports)) report.close();
    this.ttlControl.close();
    this.#stopMoves();
    this.#budget.close();
    this.sharedCache.close();
  }

  #report(
    link: RedisLink,
    about: Pick<ConnectivityReportOptions, 'isCurrent' | 'failure' | 'silence'>,
  ): ConnectivityReport {
    const { timers, onConnectivity } = this.#options;
    const { role } = link;
    return new ConnectivityReport({
      link,
      timers,
      ...about,
      onChange: (now, reason) => onConnectivity(role, now, reason),
    });
  }
}

/** Rejects if it turns out to be down. */
async function untilUp(link: Pick<RedisLink, 'isUp' | 'onUp' | 'onDown'>): Promise<void> {
  if (link.isUp()) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const endings = [link.onUp(resolve), link.onDown(reject)];
  await promise.finally(() => {
    for (const end of endings) end();
  });
}
