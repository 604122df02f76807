import type { FleetHolding } from '../../src/cache/explain.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import type {
  CacheTier,
  Fleet,
  FlightEnd,
  FlightFailure,
  Following,
  Lease,
  LeaseAttempt,
} from '../../src/cache/ports.ts';
import type { ManualTimers } from './manual-timers.ts';

interface Holder {
  readonly token: symbol;
  readonly untilMs: number;
}

type StoredListener = (key: string, filledAtMs: number) => void;

/**
 * What the processes of a fleet share, inside one test process: the ports of the cache as the contract suites describe
 * them. `member()` is what one process sees of it.
 */
export class MemoryFleet {
  readonly tier = new MemoryTier({ maxBytes: 2 ** 30 });
  /** Makes every call reject. */
  isDown = false;
  readonly #timers: ManualTimers;
  readonly #leaseMs: number;
  readonly #holders = new Map<string, Holder>();
  readonly #failures = new Map<string, { readonly failure: FlightFailure; readonly untilMs: number }>();
  readonly #followers = new Map<string, Set<(end: FlightEnd) => void>>();
  readonly #members = new Map<symbol, Set<StoredListener>>();

  constructor(timers: ManualTimers, leaseMs = 2000) {
    this.#timers = timers;
    this.#leaseMs = leaseMs;
  }

  member(): Fleet {
    const listeners = new Set<StoredListener>();
    const name = Symbol('member');
    this.#members.set(name, listeners);
    return {
      tier: this.#guarded(),
      leases: {
        acquire: (key) => this.#up(() => this.#acquire(key, name)),
        follow: (key) => this.#up(() => this.#follow(key)),
      },
      onStored: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
  }

  /** What operators are shown of it. */
  inspect(key: string): Promise<FleetHolding> {
    return this.#up(() => {
      const nowMs = this.#timers.clock.nowMs();
      const held = this.tier.peek(key);
      const holder = this.#holders.get(key);
      return {
        held: held === undefined ? null : { ...held, keptForMs: null },
        isBroken: false,
        leaseLeftMs: holder !== undefined && holder.untilMs > nowMs ? holder.untilMs - nowMs : null,
        hasJustFailed: (this.#failures.get(key)?.untilMs ?? 0) > nowMs,
      };
    });
  }

  #guarded(): CacheTier {
    return {
      get: (key) => this.#up(() => this.tier.get(key)),
      set: (key, stored) => this.#up(() => this.tier.set(key, stored)),
      seed: (seeds) => this.#up(() => this.tier.seed(seeds)),
      delete: (key) => this.#up(() => this.tier.delete(key)),
      measure: (matches) => this.#up(() => this.tier.measure(matches)),
    };
  }

  async #up<R>(run: () => R): Promise<R> {
    await Promise.resolve();
    if (this.isDown) throw new Error('the fleet is out of reach');
    return run();
  }

  #acquire(key: string, member: symbol): LeaseAttempt {
    const nowMs = this.#timers.clock.nowMs();
    const failed = this.#failures.get(key);
    if (failed !== undefined && failed.untilMs > nowMs) return { kind: 'failed', failure: failed.failure };
    const holder = this.#holders.get(key);
    if (holder !== undefined && holder.untilMs > nowMs) return { kind: 'taken' };
    const token = Symbol('lease');
    this.#holders.set(key, { token, untilMs: nowMs + this.#leaseMs });
    return { kind: 'acquired', lease: this.#lease(key, token, member), stored: this.tier.peek(key)?.stored };
  }

  #lease(key: string, token: symbol, member: symbol): Lease {
    const ifHeld = (run: () => void): Promise<boolean> =>
      this.#up(() => {
        const holder = this.#holders.get(key);
        if (holder?.token !== token || holder.untilMs <= this.#timers.clock.nowMs()) return false;
        run();
        return true;
      });
    const end = (): void => {
      this.#holders.delete(key);
    };
    return {
      renew: () => ifHeld(() => this.#holders.set(key, { token, untilMs: this.#timers.clock.nowMs() + this.#leaseMs })),
      complete: (stored) =>
        ifHeld(() => {
          end();
          this.tier.set(key, stored);
          this.#tell(key, { kind: 'stored' });
          for (const [other, listeners] of this.#members) {
            if (other !== member) for (const listener of listeners) listener(key, stored.entry.filledAtMs);
          }
        }),
      fail: async (failure) => {
        await ifHeld(() => {
          end();
          this.#failures.set(key, { failure, untilMs: this.#timers.clock.nowMs() + 1000 });
          this.#tell(key, { kind: 'failed', failure });
        });
      },
      release: async () => {
        await ifHeld(() => {
          end();
          this.#tell(key, { kind: 'stored' });
        });
      },
    };
  }

  #tell(key: string, end: FlightEnd): void {
    for (const follower of this.#followers.get(key) ?? []) follower(end);
  }

  #follow(key: string): Following {
    const ends: FlightEnd[] = [];
    let wake: (() => void) | null = null;
    const followers = this.#followers.get(key) ?? new Set();
    this.#followers.set(key, followers);
    const listener = (end: FlightEnd): void => {
      ends.push(end);
      wake?.();
    };
    followers.add(listener);
    return {
      next: (timeoutMs) =>
        this.#up(() => undefined).then(async () => {
          if (ends.length === 0) {
            await new Promise<void>((resolve) => {
              wake = resolve;
              this.#timers.after(timeoutMs, resolve);
            });
          }
          return ends.shift() ?? null;
        }),
      close: () => {
        followers.delete(listener);
      },
    };
  }
}
