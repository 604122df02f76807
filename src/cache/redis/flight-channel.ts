/**
 * The one channel on which processes report that their calls to the store have ended. Every process receives all messages,
 * because each may hold an older copy; so waiting for a call needs no subscription of its own. A message may be lost without
 * harm: who waits looks again after a while, and an older copy is looked for anew when its freshness ends.
 */
import { EventEmitter } from 'node:events';
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheNames } from '../../redis/names.ts';
import type { Timers } from '../../time/timers.ts';
import type { MemoryTier } from '../memory-tier.ts';
import type { Following } from '../shared-cache.ts';
import { parseJson } from './entry-format.ts';

/** JSON, because keys hold any text. `sender` is the process. */
const messageSchema = z.object({
  sender: z.string(),
  /** The copy that was filed, and when it was requested; null if the call has filed none. */
  filed: z.object({ owner: z.string(), requestedAtMs: z.int() }).nullable(),
  /** Whose the record is not, as a call has found that was requested then. */
  disowned: z.object({ owners: z.array(z.string()).readonly(), requestedAtMs: z.int() }).optional(),
  key: z.string(),
  /** The name of the set of workspaces that the call was made for. */
  set: z.string(),
});
type FlightMessage = z.output<typeof messageSchema>;

export interface FlightChannelOptions {
  readonly cache: Pick<RedisLink, 'db'> & { readonly subscriber: Pick<RedisLink['subscriber'], 'listen'> };
  readonly names: CacheNames;
  readonly timers: Timers;
  /** This process, as the sender of its own messages. */
  readonly self: string;
  /** Older copies are dropped from it as soon as another process stores something newer, or finds nothing any more. */
  readonly memory: Pick<MemoryTier, 'deleteOlder' | 'end'>;
}

export class FlightChannel {
  readonly name: string;
  readonly #timers: Timers;
  readonly #self: string;
  readonly #memory: FlightChannelOptions['memory'];
  /** By key and set: those in this process who follow calls. */
  readonly #followers = new EventEmitter().setMaxListeners(0);
  readonly #unlisten: () => void;

  constructor({ cache, names, timers, self, memory }: FlightChannelOptions) {
    this.name = names.flightsChannel(cache.db);
    this.#memory = memory;
    this.#timers = timers;
    this.#self = self;
    const ownFiled = `{"sender":${JSON.stringify(self)},"filed":{`;
    this.#unlisten = cache.subscriber.listen(this.name, (text) => {
      // Most are about a copy that this process has just filed itself: nobody here has followed its own call.
      if (text.startsWith(ownFiled)) return;
      // Another release may send other messages.
      const message = parseJson(messageSchema, text);
      if (message !== null) this.#receive(message);
    });
  }

  /** A message of this process; scripts publish it. */
  message({ filed, ...about }: Omit<FlightMessage, 'sender'>): string {
    return JSON.stringify({ sender: this.#self, filed, ...about } satisfies FlightMessage);
  }

  /** Notices every end from now on. While the subscription is lost there are none, and followers look by themselves. */
  follow(key: string, set: string): Following {
    const name = nameOf(key, set);
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

  #receive({ key, set, filed, disowned }: FlightMessage): void {
    // Before those who wait look: they would take an older copy for the news otherwise.
    if (disowned !== undefined) this.#memory.end(key, disowned.owners, disowned.requestedAtMs);
    if (filed !== null) this.#memory.deleteOlder({ key, owner: filed.owner }, filed.requestedAtMs);
    this.#followers.emit(nameOf(key, set));
  }
}

function nameOf(key: string, set: string): string {
  return `${key} ${set}`;
}
