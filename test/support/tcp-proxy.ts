/**
 * A TCP proxy whose connections can be spoiled while it runs, with the verbs ("toxics") of Toxiproxy. Each direction has
 * its own: `downstream` is what the server sends to the client, `upstream` the other way. What is set rules bytes that
 * arrive from then on, on open connections too.
 *
 *     const proxy = await TcpProxy.start(redis.url);
 *     proxy.set('downstream', { latencyMs: 300, jitterMs: 50 });
 *     proxy.down(); proxy.up();
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenOnLoopback, type RunningServer } from './loopback.ts';
import { type Direction, join, type Toxics } from './tcp-pipe.ts';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export class TcpProxy {
  readonly #target: URL;
  readonly #server: Server;
  readonly #running: RunningServer;
  readonly #pairs = new Set<Pair>();
  readonly #toxics: Record<Direction, Toxics> = { downstream: {}, upstream: {} };
  #isDown = false;

  private constructor(target: URL, server: Server, running: RunningServer) {
    this.#target = target;
    this.#server = server;
    this.#running = running;
    server.on('connection', (client: Socket) => this.#accept(client));
  }

  /** `target` is any address with a host and a port: `redis://127.0.0.1:6379`, `http://127.0.0.1:8080`. */
  static async start(target: string): Promise<TcpProxy> {
    // Half-closed connections are passed on as such.
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    return new TcpProxy(new URL(target), server, await listenOnLoopback(server));
  }

  /** The target's address with the proxy in its place. */
  get url(): string {
    const url = Object.assign(new URL(this.#target), { hostname: '127.0.0.1', port: String(this.#running.port) }).href;
    return this.#target.pathname === '/' ? url.replace(/\/$/, '') : url;
  }

  /** Those that are open at the moment. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** Replaces all toxics of that direction. */
  set(direction: Direction, toxics: Toxics): void {
    this.#toxics[direction] = toxics;
  }

  /** Takes all toxics of both directions away. Bytes that a `timeout` has swallowed stay lost. */
  heal(): void {
    this.#toxics.downstream = {};
    this.#toxics.upstream = {};
    this.#isDown = false;
  }

  /** Nothing gets through, and nobody is told: open connections and new ones stand, and deliver nothing. */
  blackHole(): void {
    this.set('upstream', { timeoutMs: 0 });
    this.set('downstream', { timeoutMs: 0 });
  }

  /** Resets all open connections with a TCP RST. */
  resetPeers(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  /** Ends all connections, and each new one as it comes, until `up` or `heal`. */
  down(): void {
    this.#isDown = true;
    for (const { client, server } of this.#pairs) {
      client.destroy();
      server.destroy();
    }
  }

  up(): void {
    this.#isDown = false;
  }

  /** Ends all connections, and listens no more: new ones are refused by the system, until `listen`. */
  async refuse(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.down();
    await closed;
  }

  /** Listens again where it did before. */
  async listen(): Promise<void> {
    this.up();
    this.#server.listen(this.#running.port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    for (const { server } of this.#pairs) server.destroy();
    if (this.#server.listening) await this.#running.close();
  }

  #accept(client: Socket): void {
    if (this.#isDown) {
      client.destroy();
      return;
    }
    const port = Number(this.#target.port);
    const server = connect({ host: this.#target.hostname, port, allowHalfOpen: true, noDelay: true });
    const pair = { client, server };
    this.#pairs.add(pair);
    const end = (): void => {
      client.destroy();
      server.destroy();
      this.#pairs.delete(pair);
    };
    for (const socket of [client, server]) socket.on('error', end).on('close', end);
    join(client, server, () => this.#toxics.upstream);
    join(server, client, () => this.#toxics.downstream);
  }
}
