/** Everything that the caches of several processes share through Redis, put together for one of them. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { RedisLink, RedisRole } from '../redis/connection.ts';
import { CacheNames } from '../redis/names.ts';
import type { MaintenanceControl, MaintenanceState } from './maintenance.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { PurgeLog } from './purge-log.ts';
import { type BudgetExcess, RedisBudget } from './redis/budget.ts';
import { type Connectivity, ConnectivityWatch } from './redis/connectivity.ts';
import { RedisSharedCache } from './redis/shared-tier.ts';
import { StateSync } from './redis/state-sync.ts';
import type { TtlControl, TtlEnd, TtlPolicy } from './ttl-policy.ts';
import type { Timers } from '../timers.ts';

/** They report, for logs and metrics, and must not throw. */
export interface RedisFleetHooks {
  /** Something in the place of an entry can't be read (`decode`), or the check of memory was cut short (`recheck`). */
  readonly onFailed?: (report: { readonly operation: string; readonly error: unknown }) => void;
  /** This process has lost or got the messages of the others. `reason`: why Redis doesn't answer; null if it does. */
  readonly onHearing?: (report: {
    readonly role: RedisRole;
    readonly hearing: Connectivity;
    readonly reason: unknown;
  }) => void;
  /** TTLs have ended by themselves; called in one process of all. */
  readonly onTtlEnd?: (end: TtlEnd) => void;
  /** The shared cache went over its budget in Redis, with what is exceeded, or is within it again (null). */
  readonly onBudget?: (excess: BudgetExcess | null) => void;
}

export interface RedisFleetOptions {
  /** They stay their owner's to close. */
  readonly state: RedisLink;
  readonly cache: RedisLink;
  /** Whether one and the same Redis is behind both: the cache leaves a reserve there. */
  readonly isOne: boolean;
  /** Most bytes of entries in the cache Redis; null for no such limit. */
  readonly maxBytes: number | null;
  /** Names the store whose answers are cached, in letters and digits: another store's are another's. */
  readonly store: string;
  /** This process's. It is dropped while changes may be missed. */
  readonly memory: MemoryTier;
  /** This process's. Changes for all processes are set here. */
  readonly times: TtlPolicy;
  readonly maintenance: MaintenanceState;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly hooks?: RedisFleetHooks;
  /** How long a lease holds without being renewed; more than three times as long as its renewals are apart. */
  readonly leaseMs?: number;
}

/** How one of the two links does, for the readiness page. */
export interface RedisFleetHealth {
  readonly name: 'redis-state' | 'redis-cache';
  readonly status: 'ok' | 'degraded';
  readonly detail: string;
}

const LEASE_MS = 2000;
/** How long a start waits for a Redis that neither answers nor refuses. */
const OPEN_WITHIN_MS = 1000;

const DETAILS: Readonly<Record<Connectivity, string>> = {
  connected: 'answers, and its messages arrive',
  subscriptionLost: 'answers, but its messages do not arrive: nothing is served from memory',
  disconnected: 'does not answer: this process goes on by itself',
};

export class RedisFleet {
  readonly sharedCache: RedisSharedCache;
  readonly #options: RedisFleetOptions;
  readonly #state: StateSync;
  readonly #budget: RedisBudget;
  readonly #hearing: Readonly<Record<RedisRole, ConnectivityWatch>>;
  readonly #openings = { state: Promise.withResolvers<void>(), cache: Promise.withResolvers<void>() };

  /**
   * Resolves once the messages of the other processes arrive, or as soon as it is clear that they can't now: a Redis that
   * is out of reach keeps no gateway from starting, and is joined when it comes. Never rejects.
   */
  static async open(options: RedisFleetOptions): Promise<RedisFleet> {
    const fleet = new RedisFleet(options);
    await fleet.#opened();
    return fleet;
  }

  private constructor(options: RedisFleetOptions) {
    this.#options = options;
    const { state, cache: link, times, timers, leaseMs = LEASE_MS } = options;
    this.#state = new StateSync(state, { ...options, onTtlEnd: (end) => options.hooks?.onTtlEnd?.(end) });
    const names = new CacheNames(options.store);
    this.#budget = new RedisBudget({
      link,
      names,
      maxBytes: options.maxBytes,
      isShared: options.isOne,
      timers,
      onChange: (excess) => options.hooks?.onBudget?.(excess),
    });
    this.sharedCache = new RedisSharedCache({
      link,
      names,
      budget: this.#budget,
      times,
      timers,
      self: randomUUID(),
      leaseMs,
      isPurgeLogKnown: () => this.#state.purges.isKnown,
      onBroken: (error) => this.#report('decode', error),
    });
    this.#hearing = {
      state: this.#listen(state, () => this.#lookAtState()),
      cache: this.#listen(link, () => link.ping()),
    };
  }

  get purges(): PurgeLog {
    return this.#state.purges;
  }

  get timesControl(): TtlControl {
    return this.#state.ttl;
  }

  get maintenance(): MaintenanceControl {
    return this.#state.maintenance;
  }

  async #opened(): Promise<void> {
    const { state, cache, timers } = this.#options;
    const { promise: expiry, resolve } = Promise.withResolvers<void>();
    const endings = [
      timers.after(OPEN_WITHIN_MS, resolve),
      state.onDown(() => this.#openings.state.resolve()),
      cache.onDown(() => this.#openings.cache.resolve()),
    ];
    await Promise.race([expiry, Promise.all([this.#openings.state.promise, this.#openings.cache.promise])]);
    for (const end of endings) end();
  }

  health(): readonly RedisFleetHealth[] {
    return (['state', 'cache'] as const).map((role) => {
      const hearing = this.#hearing[role].now;
      return { name: `redis-${role}`, status: hearing === 'connected' ? 'ok' : 'degraded', detail: DETAILS[hearing] };
    });
  }

  /** Stops listening and looking. The links go on. */
  close(): void {
    for (const hearing of Object.values(this.#hearing)) hearing.close();
    this.#state.close();
    this.#budget.close();
    this.sharedCache.close();
  }

  /** A Cluster answers where all of it does: the state lies at one of its nodes, and messages may come from any. */
  async #lookAtState(): Promise<void> {
    const { state } = this.#options;
    await Promise.all([this.#state.look(), state.kind === 'cluster' ? state.ping() : null]);
  }

  #listen(link: RedisLink, look: () => Promise<void>): ConnectivityWatch {
    const { clock, timers, hooks } = this.#options;
    const { role } = link;
    return new ConnectivityWatch({
      link,
      look,
      clock,
      timers,
      onChange: (hearing, before, reason) => {
        if (hearing === 'connected') this.#openings[role].resolve();
        this.#trustMemory();
        // The purge log was looked up by now. Entries that others stored meanwhile have to be looked up, too.
        if (role === 'cache' && hearing === 'connected' && before === 'disconnected') this.#recheckMemory();
        hooks?.onHearing?.({ role, hearing, reason });
      },
    });
  }

  /** C8: changes of other processes must arrive here, unless Redis is down for all. */
  #trustMemory(): void {
    const { memory } = this.#options;
    const isBehind = Object.values(this.#hearing).some(({ now }) => now === 'subscriptionLost');
    if (isBehind) memory.suspend();
    else memory.resume();
  }

  #recheckMemory(): void {
    const rechecked = this.sharedCache.recheck(this.#options.memory);
    rechecked.catch((error: unknown) => this.#report('recheck', error));
  }

  #report(operation: string, error: unknown): void {
    this.#options.hooks?.onFailed?.({ operation, error });
  }
}
