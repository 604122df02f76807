/**
 * The one channel on which processes report that their calls to the store have ended. Every process receives all messages,
 * because each may hold an older copy of the entry; so waiting for a call needs no subscription of its own.
 *
 * Releases run side by side over one Redis: what this one publishes can be read by 0.2, whose messages name no audience.
 */
import { EventEmitter } from 'node:events';
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheNames } from '../../redis/names.ts';
import type { Timers } from '../../time/timers.ts';
import type { MemoryTier } from '../memory-tier.ts';
import type { Following } from '../shared-cache.ts';
import { parseJson } from './entry-format.ts';

const aboutSchema = z.object({ sender: z.string(), key: z.string(), audience: z.string().nullable().default(null) });
/** JSON, because keys hold any text. `sender` is the process. */
const messageSchema = z.discriminatedUnion('end', [
  aboutSchema.extend({
    end: z.literal('stored'),
    /** Copies that were requested before that time were replaced; 0 if none was. */
    filledAtMs: z.int(),
    /** Whose record it is that was stored; null for a list, and for no record. */
    workspaceId: z.string().nullable().default(null),
  }),
  // The entry is as it was: the call failed or was not sent, or its answer was not stored.
  aboutSchema.extend({ end: z.literal('released') }),
]);
type FlightMessage = z.output<typeof messageSchema>;
type Unsent<M> = M extends FlightMessage ? Omit<M, 'sender'> : never;

export interface FlightChannelOptions {
  readonly cache: Pick<RedisLink, 'db'> & { readonly subscriber: Pick<RedisLink['subscriber'], 'listen'> };
  readonly names: CacheNames;
  readonly timers: Timers;
  /** This process, as the sender of its own messages. */
  readonly self: string;
  /** Older copies are dropped from it as soon as another process stores something newer. */
  readonly memory: Pick<MemoryTier, 'deleteOlder'>;
}

export class FlightChannel {
  readonly name: string;
  readonly #timers: Timers;
  readonly #self: string;
  readonly #memory: FlightChannelOptions['memory'];
  /** By key and audience: those in this process who follow calls. */
  readonly #followers = new EventEmitter().setMaxListeners(0);
  readonly #unlisten: () => void;

  constructor({ cache, names, timers, self, memory }: FlightChannelOptions) {
    this.name = names.flightsChannel(cache.db);
    this.#memory = memory;
    this.#timers = timers;
    this.#self = self;
    const ownStored = `{"end":"stored","sender":${JSON.stringify(self)},`;
    this.#unlisten = cache.subscriber.listen(this.name, (text) => {
      // Most are about an entry that this process has just stored itself: nobody here has followed its own call.
      if (text.startsWith(ownStored)) return;
      // Another release may send other messages.
      const message = parseJson(messageSchema, text);
      if (message !== null) this.#receive(message);
    });
  }

  /** A message of this process; scripts publish it. */
  message({ end, ...rest }: Unsent<FlightMessage>): string {
    return JSON.stringify({ end, sender: this.#self, ...rest });
  }

  /** Notices every end from now on. While the subscription is lost there are none, and followers look by themselves. */
  follow(key: string, audience: string): Following {
    const name = nameOf(key, audience);
    let hasEnded = false;
    let wake: (() => void) | null = null;
    const listener = (): void => {
      hasEnded = true;
      wake?.();
    };
    this.#followers.on(name, listener);
    return {
      next: async (timeoutMs) => {
        if (!hasEnded) {
          const { promise, resolve } = Promise.withResolvers<void>();
          wake = resolve;
          const cancel = this.#timers.after(timeoutMs, resolve);
          await promise;
          cancel();
        }
        hasEnded = false;
      },
      close: () => void this.#followers.off(name, listener),
    };
  }

  close(): void {
    this.#unlisten();
  }

  #receive(message: FlightMessage): void {
    const { key, audience } = message;
    // Before those who wait look: they would take an older copy for the news otherwise.
    if (message.end === 'stored') this.#memory.deleteOlder(key, message);
    if (audience !== null) this.#followers.emit(nameOf(key, audience));
  }
}

function nameOf(key: string, audience: string): string {
  return `${key} ${audience}`;
}
