/**
 * Listens at each Sentinel for failovers: the old primary may live on, out of the Sentinels' sight, and is left as soon as one
 * of them announces another. ioredis can listen too, but drops a client for good that is just asking a Sentinel, and writes
 * to the standard error about each one that is down.
 */
import type { Redis } from 'ioredis';
import { ConnectionLostError } from './errors.ts';
import { beforeDeadline, PROBE_SLACK_MS } from './request-wait.ts';
import { ConnectionHealth, droppedIfSilent, type FollowedConnection } from './health.ts';

const SWITCH = '+switch-master';

export interface SentinelWatchOptions {
  /** The name by which the Sentinels know the primary. */
  readonly primary: string;
  /** Each opens a client of one Sentinel, which connects once. */
  readonly connect: readonly (() => Redis)[];
  readonly timeoutMs: number;
  /** Called when a Sentinel announces another primary of that name. */
  readonly onSwitch: () => void;
}

export class SentinelWatch {
  readonly #sentinels: readonly Sentinel[];

  constructor({ primary, connect, timeoutMs, onSwitch }: SentinelWatchOptions) {
    const onMessage = (message: string): void => {
      // The name, and the old and the new address.
      if (message.startsWith(`${primary} `)) onSwitch();
    };
    this.#sentinels = connect.map((open) => new Sentinel(open, timeoutMs, onMessage));
  }

  /** Why no Sentinel answers; null if one does, or nothing is known of any yet. */
  get fault(): Error | null {
    if (this.#sentinels.some((sentinel) => sentinel.isUp())) return null;
    return this.#sentinels.map(({ downReason }) => downReason).find(isKnown) ?? null;
  }

  close(): void {
    for (const sentinel of this.#sentinels) sentinel.close();
  }
}

function isKnown(reason: Error): boolean {
  return !(reason instanceof ConnectionLostError);
}

class Sentinel extends ConnectionHealth {
  constructor(open: () => Redis, timeoutMs: number, onMessage: (message: string) => void) {
    super(timeoutMs);
    this.keepOpen((): FollowedConnection => {
      const client = open();
      client.on('message', (channel: string, message: string) => {
        if (channel === SWITCH) onMessage(message);
      });
      let isListening = false;
      const ask = async (): Promise<void> => {
        if (!isListening) await client.subscribe(SWITCH);
        isListening = true;
        await beforeDeadline(client.ping(), timeoutMs + PROBE_SLACK_MS);
      };
      return { client, ask: droppedIfSilent(client, ask) };
    });
  }

  close(): void {
    this.stop();
    this.connection.client.disconnect();
  }
}
