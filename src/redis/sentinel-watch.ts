/**
 * Hears of Sentinels which primary they have chosen. The old one may live on, out of their sight and not of ours: what
 * would be written there is lost, so the connections to it are given up at once.
 */
import { Redis } from 'ioredis';
import type { RedisAddress, RedisNode } from './address.ts';
import { watchOptions } from './options.ts';

const SWITCHED = '+switch-master';

export class SentinelWatch {
  readonly #clients: readonly Redis[];

  /** `onSwitch` is told which one is not the primary any more; once by each Sentinel. */
  constructor(address: RedisAddress, name: string, onSwitch: (old: RedisNode) => void) {
    this.#clients = address.nodes.map((node) => {
      const client = new Redis(watchOptions(address, node, name));
      // One that is down is tried again; the others tell meanwhile.
      client.on('error', () => undefined);
      client.on('ready', () => {
        client.subscribe(SWITCHED).catch(() => client.disconnect(true));
      });
      client.on('message', (_: string, message: string) => {
        const old = oldPrimary(message, address.primary);
        if (old !== null) onSwitch(old);
      });
      return client;
    });
  }

  close(): void {
    for (const client of this.#clients) client.disconnect();
  }
}

/** `<name> <old host> <old port> <new host> <new port>`; null for another primary's. */
function oldPrimary(message: string, primary: string): RedisNode | null {
  const [name, host, port] = message.split(' ');
  return name === primary && host !== undefined ? { host, port: Number(port) } : null;
}
