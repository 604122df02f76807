/**
 * The one channel on which processes report how their calls to the store ended. Every process receives all messages,
 * because each may hold an older copy of the entry; so waiting for a call needs no subscription of its own.
 */
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheNames } from '../../redis/names.ts';
import type { Timers } from '../../time/timers.ts';
import { isStoreErrorKind, type StoreErrorKind } from '../../upstream/store-error.ts';
import type { MemoryTier } from '../memory-tier.ts';
import type { FlightEnd, FlightFailure, Following } from '../shared-cache.ts';
import { parseJson } from './entry-format.ts';

const failureSchema = z.object({
  kind: z.custom<StoreErrorKind>(isStoreErrorKind),
  message: z.string(),
  retryAfterMs: z.number().nullable(),
  status: z.int().nullable(),
  workspaceId: z.string().nullable().default(null),
});

/** JSON, because keys and failures hold any text. `sender` is the process. */
const messageSchema = z.discriminatedUnion('end', [
  z.object({ end: z.literal('stored'), sender: z.string(), key: z.string(), filledAtMs: z.int() }),
  z.object({
    end: z.literal('failed'),
    sender: z.string(),
    key: z.string(),
    failure: failureSchema,
    workspaceSet: z.string().nullable().default(null),
    tookMs: z.number().default(0),
  }),
  // The entry is as it was: nothing was to be fetched any more, or the answer is a negative entry.
  z.object({ end: z.literal('released'), sender: z.string(), key: z.string() }),
]);
type FlightMessage = z.output<typeof messageSchema>;
type Unsent<M> = M extends FlightMessage ? Omit<M, 'sender'> : never;

/** Null for what is no failure. */
export function readFailure(text: string): FlightFailure | null {
  return parseJson(failureSchema, text);
}

/** The waiters for a key's call in this process. */
class Followers {
  readonly listeners = new Set<(end: FlightEnd) => void>();
  /** How long the lease had left when it was last asked for; no end after that time was waited. */
  leaseLeftMs = Number.POSITIVE_INFINITY;
}

export interface FlightChannelOptions {
  readonly cache: RedisLink;
  readonly names: CacheNames;
  readonly timers: Timers;
  /** This process, as the sender of its own messages. */
  readonly self: string;
  /** Older copies are dropped from it as soon as another process stores something newer. */
  readonly memory: Pick<MemoryTier, 'deleteOlder'>;
}

/** So that a lease that was not renewed has lapsed when it is looked at. */
const LAPSE_MARGIN_MS = 5;

export class FlightChannel {
  readonly name: string;
  readonly #timers: Timers;
  readonly #self: string;
  readonly #followers = new Map<string, Followers>();
  readonly #memory: FlightChannelOptions['memory'];
  readonly #unlisten: () => void;

  constructor({ cache, names, timers, self, memory }: FlightChannelOptions) {
    this.name = names.flightsChannel(cache.db);
    this.#memory = memory;
    this.#timers = timers;
    this.#self = self;
    const ownStored = `{"end":"stored","sender":${JSON.stringify(self)},`;
    this.#unlisten = cache.subscriber.listen(this.name, (text) => {
      // Most are about an entry that this process has just stored itself.
      if (this.#followers.size === 0 && text.startsWith(ownStored)) return;
      // Another release may send other messages.
      const message = parseJson(messageSchema, text);
      if (message !== null) this.#receive(message);
    });
  }

  /** A message of this process; scripts publish it. */
  message({ end, ...rest }: Unsent<FlightMessage>): string {
    return JSON.stringify({ end, sender: this.#self, ...rest });
  }

  /** Hears of every end from now on. While the subscription is lost there are none, and waiters look by themselves. */
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
          const lapseMs = followers.leaseLeftMs + LAPSE_MARGIN_MS;
          followers.leaseLeftMs = Number.POSITIVE_INFINITY;
          const cancel = this.#timers.after(Math.min(timeoutMs, lapseMs), resolve);
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

  /** The key's lease lapses after that time unless it is renewed: its followers look then, if not before. */
  expectLapse(key: string, leaseLeftMs: number): void {
    const followers = this.#followers.get(key);
    if (followers !== undefined) followers.leaseLeftMs = leaseLeftMs;
  }

  close(): void {
    this.#unlisten();
  }

  #receive(message: FlightMessage): void {
    // Before those who wait look: they would take an older copy for the news otherwise.
    if (message.end === 'stored' && message.sender !== this.#self) {
      this.#memory.deleteOlder(message.key, message.filledAtMs);
    }
    const end: FlightEnd = message.end === 'failed' ? { ...message, kind: 'failed' } : { kind: 'stored' };
    for (const listener of this.#followers.get(message.key)?.listeners ?? []) listener(end);
  }
}
