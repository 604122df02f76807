/**
 * The one channel on which a fleet tells the ends of its flights. Every process hears all of them, because each may hold
 * an older copy of what was stored; so those who wait for one need no subscription of their own: to begin to wait is
 * free, and a herd over many keys costs Redis nothing.
 */
import type { CacheNames } from '../redis/names.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { FlightEnd, Following } from './ports.ts';
import { type FlightMessage, ownStoredPrefix, readFlightMessage } from './redis-flight-messages.ts';
import type { Timers } from '../timers.ts';

/** Who waits for a key's flight in this process. */
class Followers {
  readonly listeners = new Set<(end: FlightEnd) => void>();
  /** How long the lease held when it was last asked for; null once that was waited for. */
  leaseLeftMs: number | null = null;
}

type StoredListener = (key: string, filledAtMs: number) => void;

export interface FlightChannelOptions {
  /** To the cache Redis. */
  readonly link: RedisLink;
  readonly names: CacheNames;
  readonly timers: Timers;
  /** This process, as the sender of its own messages. */
  readonly self: string;
}

/** So that a lease that was not renewed has lapsed when it is looked at. */
const LAPSE_MARGIN_MS = 5;

export class FlightChannel {
  readonly #timers: Timers;
  readonly #self: string;
  readonly #followers = new Map<string, Followers>();
  readonly #storedListeners = new Set<StoredListener>();
  readonly #unlisten: () => void;

  constructor({ link, names, timers, self }: FlightChannelOptions) {
    this.#timers = timers;
    this.#self = self;
    const ownStored = ownStoredPrefix(self);
    this.#unlisten = link.subscriber.listen(names.flightsChannel(link.db), (text) => {
      // Most are of what this process has just stored itself.
      if (this.#followers.size === 0 && text.startsWith(ownStored)) return;
      const message = readFlightMessage(text);
      if (message !== null) this.#hear(message);
    });
  }

  /** Hears all ends from now on. While the subscription is lost it hears none, and waiters go by their own looks. */
  follow(key: string): Following {
    const ends: FlightEnd[] = [];
    let wake: (() => void) | null = null;
    const listener = (end: FlightEnd): void => {
      ends.push(end);
      wake?.();
    };
    const followers = this.#followers.get(key) ?? new Followers();
    this.#followers.set(key, followers);
    followers.listeners.add(listener);
    return {
      next: async (timeoutMs) => {
        if (ends.length === 0) {
          const { promise, resolve } = Promise.withResolvers<void>();
          wake = resolve;
          const cancel = this.#timers.after(Math.min(timeoutMs, takeLeaseLeftMs(followers)), resolve);
          await promise;
          cancel();
          wake = null;
        }
        return ends.shift() ?? null;
      },
      close: () => {
        followers.listeners.delete(listener);
        const isLast = followers.listeners.size === 0 && this.#followers.get(key) === followers;
        if (isLast) this.#followers.delete(key);
      },
    };
  }

  /** The key's lease lapses after that time unless it is renewed: who waits now looks then, if not before. */
  expectLapse(key: string, leaseLeftMs: number): void {
    const followers = this.#followers.get(key);
    if (followers !== undefined) followers.leaseLeftMs = leaseLeftMs;
  }

  /** Told of what other processes store. Returns a function that ends this. */
  onStored(listener: StoredListener): () => void {
    this.#storedListeners.add(listener);
    return () => this.#storedListeners.delete(listener);
  }

  close(): void {
    this.#unlisten();
    this.#storedListeners.clear();
  }

  #hear(message: FlightMessage): void {
    // Before those who wait look: they would else take an older copy for the news.
    if (message.end === 'stored' && message.sender !== this.#self) {
      for (const listener of this.#storedListeners) listener(message.key, message.filledAtMs);
    }
    const end: FlightEnd = message.end === 'failed' ? { kind: 'failed', failure: message.failure } : { kind: 'stored' };
    for (const listener of this.#followers.get(message.key)?.listeners ?? []) listener(end);
  }
}

function takeLeaseLeftMs(followers: Followers): number {
  const { leaseLeftMs } = followers;
  followers.leaseLeftMs = null;
  return leaseLeftMs === null ? Number.POSITIVE_INFINITY : leaseLeftMs + LAPSE_MARGIN_MS;
}
