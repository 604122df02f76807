/** Watches Redis, and what of a gateway depends on it: for `/readyz`, the metrics and the log. */
import type { Metrics } from './admin/metrics/recorders.ts';
import type { RedisFleet, RedisFleetHooks } from './cache/redis-fleet.ts';
import type { Connectivity } from './cache/redis/connectivity.ts';
import type { Clock } from './clock.ts';
import type { DependencyWatch, Sighting } from './dependencies.ts';
import { formatDuration } from './duration.ts';
import type { Trust } from './keys/known-keys.ts';
import { systemTimers } from './timers.ts';
import type { RedisHooks, RedisRole } from './redis/connection.ts';

/** As long as the cache takes to call itself deaf. */
const DEAF_AFTER_MS = 1000;

export interface RedisWatchOptions {
  readonly dependencies: DependencyWatch;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Whether one Redis is behind both roles: its troubles are then told as one. */
  readonly isOne: boolean;
}

export interface WatchedState {
  readonly caches: Pick<RedisFleet, 'health'>;
  /** How many processes share the limits. */
  readonly processes: () => number;
  readonly graceMs: number;
}

export class RedisWatch {
  readonly #options: RedisWatchOptions;
  readonly #reasons = new Map<RedisRole, unknown>();
  readonly #hearing: Record<RedisRole, Connectivity> = { state: 'disconnected', cache: 'disconnected' };
  /** Why a request was decided on without Redis; null where the last was not. While Redis is absent none will be. */
  #alone: { readonly reason: unknown } | null = null;
  /** Null before the first beat that could have been heard. */
  #trust: Trust | null = null;
  /** Whether Redis could ever be asked for keys: before, it has confirmed none. */
  #couldAskKeys = false;
  #offlineSinceMs = 0;
  #cancelDeaf = (): void => {};

  constructor(options: RedisWatchOptions) {
    this.#options = options;
  }

  get hearing(): Readonly<Record<RedisRole, Connectivity>> {
    return this.#hearing;
  }

  get isQuotaExact(): boolean {
    return this.#alone === null && this.#hearing.state !== 'disconnected';
  }

  readonly linkHooks: RedisHooks = {
    // Why the connection failed says more than what a command is told that could not be sent.
    onDown: (role, reason) => this.#reasons.set(role, reason),
    onCommand: (role, outcome, seconds) => this.#options.metrics.redisCommand({ role, outcome, seconds }),
  };

  readonly onHearing: NonNullable<RedisFleetHooks['onHearing']> = ({ role, hearing }) => {
    this.#hearing[role] = hearing;
    this.#options.dependencies.look(`redis-${role}`);
    if (role === 'state') this.#options.dependencies.look('quota');
  };

  readonly quotaHooks = {
    onAlone: (reason: unknown): void => this.#setQuota({ reason }),
    onShared: (): void => this.#setQuota(null),
  };

  /** Between two of the others it is deaf for a moment, which is no trouble of its own. */
  readonly onTrust = (trust: Trust): void => {
    this.#cancelDeaf();
    if (trust !== 'offline') this.#couldAskKeys = true;
    if (trust !== 'deaf') this.#setTrust(trust);
    else if (this.#trust !== 'deaf') this.#cancelDeaf = systemTimers.after(DEAF_AFTER_MS, () => this.#setTrust('deaf'));
  };

  /** From when all of it has been opened: that nothing is heard before is no trouble. */
  watch({ caches, processes, graceMs }: WatchedState): void {
    const { dependencies, isOne } = this.#options;
    const told = isOne ? { toldAs: 'redis' } : {};
    for (const { name } of caches.health()) {
      dependencies.add({ name, ...told, look: () => this.#lookAtRedis(name, caches) });
    }
    dependencies.add({ name: 'quota', look: () => this.#lookAtQuota(processes()) });
    dependencies.add({ name: 'keys', look: () => this.#lookAtKeys(graceMs) });
  }

  #setTrust(trust: Trust): void {
    if (trust === 'offline' && this.#trust !== 'offline') this.#offlineSinceMs = this.#options.clock.nowMs();
    this.#trust = trust;
    this.#options.dependencies.look('keys');
  }

  #setQuota(alone: { readonly reason: unknown } | null): void {
    this.#alone = alone;
    this.#options.dependencies.look('quota');
  }

  #lookAtRedis(name: 'redis-state' | 'redis-cache', caches: WatchedState['caches']): Sighting {
    const health = caches.health().find((one) => one.name === name);
    const role = name === 'redis-state' ? 'state' : 'cache';
    if (health === undefined) return { status: 'unknown', detail: 'not watched' };
    const { status, detail } = health;
    if (status === 'ok') return { status, detail };
    return { status, detail, trouble: this.#hearing[role], fields: { err: this.#reasons.get(role) } };
  }

  #lookAtQuota(processes: number): Sighting {
    if (this.isQuotaExact) return { status: 'ok', detail: 'exact over all processes' };
    const reason = this.#alone === null ? this.#reasons.get('state') : this.#alone.reason;
    const share = processes === 1 ? 'as the only process' : `with its share, one of ${processes}`;
    const detail = `Redis does not decide: this process goes on ${share}`;
    return { status: 'degraded', detail, fields: { err: reason } };
  }

  #lookAtKeys(graceMs: number): Sighting {
    if (this.#trust === null) return { status: 'unknown', detail: 'not heard of yet' };
    if (this.#trust === 'heard') return { status: 'ok', detail: 'every change is heard of' };
    if (this.#trust === 'deaf') {
      const detail = 'changes may be missed: each key is confirmed at Redis before it is used';
      return { status: 'degraded', trouble: 'deaf', detail };
    }
    if (!this.#couldAskKeys) {
      const detail = 'Redis could not be asked since this process started: no key is let in until it answers';
      return { status: 'degraded', trouble: 'never-asked', detail };
    }
    const untilMs = this.#offlineSinceMs + graceMs;
    if (this.#options.clock.nowMs() >= untilMs) {
      const detail = `Redis could not be asked for ${formatDuration(graceMs)}: no key is let in`;
      return { status: 'degraded', trouble: 'over', detail };
    }
    const until = new Date(untilMs).toISOString();
    const detail = `Redis cannot be asked: keys that it confirmed within ${formatDuration(graceMs)} stay good, the last of them until ${until}; no other key is let in`;
    return { status: 'degraded', trouble: 'offline', detail };
  }
}
