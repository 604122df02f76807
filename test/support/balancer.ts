/**
 * A balancer as stands in front of several gateways: it asks each whether it is ready, keeps connections to those that
 * are, and passes each request to one of them. A request that fails there is answered with 502; no other is tried.
 */
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenOnLoopback, type RunningServer } from './loopback.ts';
import type { GatewayProcess } from './process.ts';

const LOOK_EVERY_MS = 100;
/** Below `server.keepAlive`, as docs/operating.md asks: then it is the balancer that closes idle connections. */
const IDLE_MS = 4000;
/** An answer counts at once; silence may be a chance. */
const MAX_SILENT = 3;
/** Headers of one connection only: they are not passed on. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

interface Backend {
  readonly gateway: GatewayProcess;
  readonly agent: Agent;
  isReady: boolean;
  silent: number;
}

export class Balancer {
  readonly #running: RunningServer;
  readonly #backends = new Map<GatewayProcess, Backend>();
  #turn = 0;
  /** Why requests were answered with 502, in their order. */
  readonly failures: string[] = [];

  private constructor(running: RunningServer) {
    this.#running = running;
  }

  static async start(): Promise<Balancer> {
    const server = createServer();
    // Its clients close idle connections, not it.
    server.keepAliveTimeout = 120_000;
    const balancer = new Balancer(await listenOnLoopback(server));
    server.on('request', (incoming, outgoing) => balancer.#pass(incoming, outgoing));
    return balancer;
  }

  get url(): string {
    return this.#running.url;
  }

  /** Passes requests to it while it is ready; resolves once it is for the first time. */
  async add(gateway: GatewayProcess): Promise<void> {
    const backend = { gateway, agent: new Agent({ keepAlive: true, timeout: IDLE_MS }), isReady: false, silent: 0 };
    this.#backends.set(gateway, backend);
    const { promise, resolve } = Promise.withResolvers<void>();
    void this.#watch(backend, resolve);
    await promise;
  }

  /** For one that has ended. */
  remove(gateway: GatewayProcess): void {
    this.#backends.get(gateway)?.agent.destroy();
    this.#backends.delete(gateway);
  }

  async close(): Promise<void> {
    for (const gateway of this.#backends.keys()) this.remove(gateway);
    await this.#running.close();
  }

  /** One look after the other, so that none that is late overrules a later one. */
  async #watch(backend: Backend, onReady: () => void): Promise<void> {
    while (this.#backends.has(backend.gateway)) {
      await look(backend);
      if (backend.isReady) onReady();
      await sleep(LOOK_EVERY_MS);
    }
  }

  #pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const ready = [...this.#backends.values()].filter(({ isReady }) => isReady);
    this.#turn += 1;
    const backend = ready[this.#turn % ready.length];
    const fail = (reason: string): void => {
      this.failures.push(reason);
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502).end(reason);
    };
    if (backend === undefined) {
      fail('no gateway is ready');
      return;
    }
    const { method, url = '/', headers } = incoming;
    const options = { ...(method !== undefined && { method }), headers: endToEnd(headers), agent: backend.agent };
    const forwarded = request(backend.gateway.publicUrl + url, options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers));
      answer.on('error', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    forwarded.on('error', (error) => fail(`${error.message} (reused: ${forwarded.reusedSocket})`));
    incoming.pipe(forwarded);
  }
}

async function look(backend: Backend): Promise<void> {
  try {
    const response = await fetch(`${backend.gateway.adminUrl}/readyz`, { signal: AbortSignal.timeout(5000) });
    await response.arrayBuffer();
    backend.silent = 0;
    backend.isReady = response.ok;
  } catch {
    backend.silent += 1;
    if (backend.silent >= MAX_SILENT) backend.isReady = false;
  }
}

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}
