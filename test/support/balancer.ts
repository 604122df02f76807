/**
 * A balancer as stands in front of several gateways: it asks each whether it is ready, keeps connections to those that
 * are, and passes each request to one of them. A request that fails there is answered with 502; no other is tried.
 */
import { Agent, createServer, get, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { listenOnLoopback, type RunningServer } from './loopback.ts';

const ASK_EVERY_MS = 100;
const ASK_TIMEOUT_MS = 5000;
/** What it says counts at once; that it says nothing may be a chance. */
const MOST_SILENT = 3;
const KEEP_ALIVE_MS = 120_000;
/** Of one connection alone: they are not passed on. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

export interface BalancedMember {
  readonly publicUrl: string;
  readonly adminUrl: string;
}

interface Member extends BalancedMember {
  readonly agent: Agent;
  isReady: boolean;
  /** How often in a row it did not answer. */
  silent: number;
}

export class Balancer {
  readonly #running: RunningServer;
  readonly #timer: NodeJS.Timeout;
  #members: readonly Member[] = [];
  #turn = 0;
  /** Why requests were answered with 502, in their order. */
  readonly failures: string[] = [];

  private constructor(running: RunningServer) {
    this.#running = running;
    this.#timer = setInterval(() => {
      for (const member of this.#members) void look(member);
    }, ASK_EVERY_MS);
  }

  static async start(): Promise<Balancer> {
    let balancer: Balancer | null = null;
    const server: Server = createServer((incoming, outgoing) => balancer?.pass(incoming, outgoing));
    // Its clients are to close idle connections, not it.
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    balancer = new Balancer(await listenOnLoopback(server));
    return balancer;
  }

  get url(): string {
    return this.#running.url;
  }

  /** Requests are passed to it from when it says that it is ready; resolves then. */
  async add(added: BalancedMember): Promise<void> {
    const member = { ...added, agent: new Agent({ keepAlive: true }), isReady: false, silent: 0 };
    this.#members = [...this.#members, member];
    while (!member.isReady) {
      await look(member);
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    }
  }

  /** For one that has ended. */
  remove({ publicUrl }: BalancedMember): void {
    this.#members = this.#members.filter((member) => member.publicUrl !== publicUrl);
  }

  pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const ready = this.#members.filter(({ isReady }) => isReady);
    this.#turn += 1;
    const member = ready[this.#turn % ready.length];
    if (member === undefined) {
      this.#fail(outgoing, 'no member is ready');
      return;
    }
    const { method, url: path, rawHeaders } = incoming;
    const headers = Object.fromEntries(endToEnd(rawHeaders));
    const forwarded = request(member.publicUrl + (path ?? '/'), { method, headers, agent: member.agent }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, endToEnd(answer.rawHeaders).flat());
      answer.on('error', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    forwarded.on('error', (error) => this.#fail(outgoing, `${error.message} (reused: ${forwarded.reusedSocket})`));
    incoming.pipe(forwarded);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running.close();
    for (const { agent } of this.#members) agent.destroy();
  }

  #fail(outgoing: ServerResponse, reason: string): void {
    this.failures.push(reason);
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(502).end();
  }
}

function look(member: Member): Promise<void> {
  return new Promise((resolve) => {
    const end = (isReady: boolean | null): void => {
      member.silent = isReady === null ? member.silent + 1 : 0;
      if (isReady !== null) member.isReady = isReady;
      else if (member.silent >= MOST_SILENT) member.isReady = false;
      resolve();
    };
    const asked = get(`${member.adminUrl}/readyz`, { agent: false, timeout: ASK_TIMEOUT_MS }, (answer) => {
      answer.resume();
      end(answer.statusCode === 200);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => end(null));
  });
}

function endToEnd(rawHeaders: readonly string[]): (readonly [string, string])[] {
  const pairs = Array.from(
    { length: rawHeaders.length / 2 },
    (_, i) => [rawHeaders[2 * i], rawHeaders[2 * i + 1]] as const,
  );
  return pairs.flatMap(([name = '', value = '']) =>
    HOP_BY_HOP.has(name.toLowerCase()) ? [] : [[name, value] as const],
  );
}
