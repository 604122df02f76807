/** Everything that the caches of a fleet share through Redis, put together for one process. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { RedisLink, RedisRole } from '../redis/connection.ts';
import { CacheNames } from '../redis/names.ts';
import type { FleetInspector } from './explain.ts';
import type { MaintenanceControl, MaintenanceState } from './maintenance.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { Fleet } from './ports.ts';
import type { PurgeLog } from './purge-log.ts';
import { FlightChannel } from './redis-flight-channel.ts';
import { guarded } from './redis-guard.ts';
import { RedisInspector } from './redis-inspect.ts';
import { RedisLeases } from './redis-leases.ts';
import { recheckMemory } from './redis-recheck.ts';
import { RedisTier } from './redis-tier.ts';
import { type Connectivity, ConnectivityWatch } from './redis/connectivity.ts';
import { StateSync } from './redis/state-sync.ts';
import type { TtlControl, TtlEnd, TtlPolicy } from './ttl-policy.ts';
import type { Timers } from '../timers.ts';

/** They report, for logs and metrics, and must not throw. */
export interface RedisFleetHooks {
  /** What was found in the place of an entry (`decode`), or a check of what memory holds that was cut short (`recheck`). */
  readonly onFailed?: (report: { readonly operation: string; readonly error: unknown }) => void;
  /** A change of whether this process hears of the fleet. `reason` is why Redis doesn't answer; null else. */
  readonly onHearing?: (report: {
    readonly role: RedisRole;
    readonly hearing: Connectivity;
    readonly reason: unknown;
  }) => void;
  /** TTLs have ended by themselves; called in one process of all. */
  readonly onTtlEnd?: (end: TtlEnd) => void;
}

export interface RedisFleetOptions {
  /** They stay their owner's to close; one and the same Redis may be behind both. */
  readonly state: RedisLink;
  readonly cache: RedisLink;
  /** Names the store whose answers are cached, in letters and digits: another store's are another's. */
  readonly store: string;
  /** Of this process: what it holds is dropped while it can't be known to be true. */
  readonly memory: MemoryTier;
  /** Of this process: what is set for the fleet is set here. */
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

export interface RedisFleet {
  readonly fleet: Fleet;
  readonly purges: PurgeLog;
  readonly timesControl: TtlControl;
  readonly maintenance: MaintenanceControl;
  /** Shows operators what the fleet holds of a key. */
  readonly inspector: FleetInspector;
  health(): readonly RedisFleetHealth[];
  /** Stops listening and looking. The links go on. */
  close(): void;
}

const LEASE_MS = 2000;
/** How long a start waits for a Redis that neither answers nor refuses. */
const OPEN_WITHIN_MS = 1000;

const DETAILS: Readonly<Record<Connectivity, string>> = {
  connected: 'answers, and its messages arrive',
  subscriptionLost: 'answers, but its messages do not arrive: nothing is served from memory',
  disconnected: 'does not answer: this process goes on by itself',
};

/**
 * Resolves once this process hears of the fleet, or as soon as it is clear that it can't now: a Redis that is out of
 * reach keeps no gateway from starting, and is joined when it comes. Never rejects.
 */
export async function openRedisFleet(options: RedisFleetOptions): Promise<RedisFleet> {
  const fleet = new Member(options);
  await fleet.opened();
  return fleet;
}

class Member implements RedisFleet {
  readonly fleet: Fleet;
  readonly inspector: FleetInspector;
  readonly #options: RedisFleetOptions;
  readonly #tier: RedisTier;
  readonly #channel: FlightChannel;
  readonly #state: StateSync;
  readonly #hearing: Readonly<Record<RedisRole, ConnectivityWatch>>;
  readonly #openings = { state: Promise.withResolvers<void>(), cache: Promise.withResolvers<void>() };

  constructor(options: RedisFleetOptions) {
    this.#options = options;
    const { state, cache: link, times, timers, leaseMs = LEASE_MS } = options;
    const self = randomUUID();
    const names = new CacheNames(options.store);
    const onBroken = (error: unknown): void => this.#report('decode', error);
    this.#tier = new RedisTier({ redis: link, servers: () => link.servers(), names, times, onBroken });
    this.#channel = new FlightChannel({ link, names, timers, self });
    this.#state = new StateSync(state, { ...options, onTtlEnd: (end) => options.hooks?.onTtlEnd?.(end) });
    this.inspector = new RedisInspector({ link, names });
    const leases = new RedisLeases({ link, channel: this.#channel, names, times, self, leaseMs, onBroken });
    this.fleet = {
      ...guarded({ tier: this.#tier, leases }, { link, purges: this.#state.purges }),
      onStored: (listener) => this.#channel.onStored(listener),
    };
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

  async opened(): Promise<void> {
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

  close(): void {
    for (const hearing of Object.values(this.#hearing)) hearing.close();
    this.#state.close();
    this.#channel.close();
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
        // The purge log was looked up by now. What others stored meanwhile has to be asked for.
        if (role === 'cache' && hearing === 'connected' && before === 'disconnected') this.#recheckMemory();
        hooks?.onHearing?.({ role, hearing, reason });
      },
    });
  }

  /** C8: what others change must be heard of, unless nobody can be told of anything. */
  #trustMemory(): void {
    const { memory } = this.#options;
    const isBehind = Object.values(this.#hearing).some(({ now }) => now === 'subscriptionLost');
    if (isBehind) memory.suspend();
    else memory.resume();
  }

  #recheckMemory(): void {
    const rechecked = recheckMemory(this.#options.memory, this.#tier);
    rechecked.catch((error: unknown) => this.#report('recheck', error));
  }

  #report(operation: string, error: unknown): void {
    this.#options.hooks?.onFailed?.({ operation, error });
  }
}
