/** Stands between a link and its Redis, and can spoil what goes through: all of it, or the connection for messages. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** What the link calls the connection for messages, as it says itself when it connects. */
const MESSAGES_NAME = 'evalgate-state-messages';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  isForMessages: boolean;
}

export class MessagesProxy {
  readonly #target: URL;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isCut = false;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async start(url: string): Promise<MessagesProxy> {
    const proxy = new MessagesProxy(new URL(url));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('The proxy does not listen.');
    return Object.assign(new URL(this.#target), { hostname: '127.0.0.1', port: String(address.port) }).href;
  }

  /** From now on the present connections for messages stand and deliver nothing. Returns how many there were. */
  stallMessages(): number {
    const stalled = [...this.#pairs].filter((pair) => pair.isForMessages);
    for (const { client, server } of stalled) {
      client.pause();
      server.pause();
    }
    return stalled.length;
  }

  /** Breaks all connections and lets none through until `heal`. */
  cut(): void {
    this.#isCut = true;
    this.#drop();
  }

  heal(): void {
    this.#isCut = false;
  }

  async close(): Promise<void> {
    this.#drop();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    if (this.#isCut) {
      client.destroy();
      return;
    }
    const server = connect(Number(this.#target.port), this.#target.hostname);
    const pair: Pair = { client, server, isForMessages: false };
    this.#pairs.add(pair);
    const end = (): void => {
      client.destroy();
      server.destroy();
      this.#pairs.delete(pair);
    };
    client.on('data', (chunk: Buffer) => {
      pair.isForMessages ||= chunk.includes(MESSAGES_NAME);
      server.write(chunk);
    });
    server.on('data', (chunk: Buffer) => client.write(chunk));
    for (const socket of [client, server]) socket.on('error', end).on('close', end);
  }

  #drop(): void {
    for (const { client, server } of this.#pairs) {
      client.destroy();
      server.destroy();
    }
    this.#pairs.clear();
  }
}
