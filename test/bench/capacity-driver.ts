/**
 * Sends a fleet's mix of requests to several gateways, to each at the same fixed rate, whatever became of those before,
 * and prints what came back, by kind. A process of its own.
 * Usage: node capacity-driver.ts FILE, with a JSON object in it: {targets, keys, ratePerTarget, connections, seconds, seed}.
 * With `seconds` null each target is asked once for everything that the mix can ask for from the store.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { SeededRandom } from '../support/random.ts';
import { everyFill, type Kind, KINDS, mixedRequest, type MixedRequest } from './capacity-mix.ts';

const ANSWERED_WITHIN_MS = 10_000;
/** Of fills, which a cold fleet makes as fast as it can. */
const FILLED_WITHIN_MS = 180_000;

const { targets, keys, ratePerTarget, connections, seconds, seed } = z
  .object({
    /** Base addresses. */
    targets: z.array(z.string()),
    /** Tokens, by the numbers that requests name. */
    keys: z.array(z.string()),
    ratePerTarget: z.number(),
    /** To each target. */
    connections: z.number(),
    seconds: z.number().nullable(),
    seed: z.number(),
  })
  .parse(JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')));

interface Tally {
  requests: number;
  bytes: number;
}

const latenciesMicros = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
const statuses: Record<string, number> = {};
let sentBytes = 0;
/** The first answer that is neither 200 nor 304, to tell what went wrong. */
let firstOther: string | null = null;
const tallies = new Map<Kind, Tally>(KINDS.map((kind) => [kind, { requests: 0, bytes: 0 }]));
/** The latest ETag of each path, for those that ask whether it has changed. */
const etags = new Map<string, string>();

/** One connection: a request at a time, since a response says where it ends. */
class Connection {
  readonly #socket: Socket;
  readonly #host: string;
  #request: MixedRequest | null = null;
  #dueMs = 0;
  #head = '';
  #bytes = 0;
  /** Of the body that is under way; null before its head is whole. */
  #bytesLeft: number | null = null;
  #onIdle: (connection: Connection) => void = () => {};

  constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
  }

  send(request: MixedRequest, dueMs: number, onIdle: (connection: Connection) => void): void {
    this.#request = request;
    this.#dueMs = dueMs;
    this.#onIdle = onIdle;
    const text = written(request, this.#host);
    sentBytes += text.length;
    this.#socket.write(text);
  }

  end(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytesLeft === null) {
      this.#head += chunk.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#head.slice(0, end))?.[1] ?? 0);
      const isEmpty = this.#head.startsWith('HTTP/1.1 304');
      this.#bytesLeft = (isEmpty ? 0 : length) - (this.#head.length - end - 4);
    } else {
      this.#bytesLeft -= chunk.length;
    }
    if (this.#bytesLeft <= 0) this.#end();
  }

  #end(): void {
    const status = this.#head.slice(9, 12);
    statuses[status] = (statuses[status] ?? 0) + 1;
    if (status !== '200' && status !== '304') firstOther ??= this.#head;
    latenciesMicros.record(Math.max(1, Math.round((performance.now() - this.#dueMs) * 1000)));
    if (this.#request !== null) this.#note(this.#request, status);
    this.#head = '';
    this.#bytes = 0;
    this.#bytesLeft = null;
    this.#onIdle(this);
  }

  #note({ kind, path }: MixedRequest, status: string): void {
    // One that has changed meanwhile is a list like the others.
    const as = kind === 'list, 304' && status !== '304' ? 'list' : kind;
    const tally = tallies.get(as);
    if (tally !== undefined) {
      tally.requests += 1;
      tally.bytes += this.#bytes;
    }
    const etag = /\r\netag: ([^\r]+)/i.exec(this.#head)?.[1];
    if (etag !== undefined && kind.startsWith('list') && kind !== 'list, gzip') etags.set(path, etag);
  }
}

function written({ kind, key, path }: MixedRequest, host: string): string {
  const coding = kind.endsWith('gzip') ? 'Accept-Encoding: gzip\r\n' : '';
  const etag = kind === 'list, 304' ? etags.get(path) : undefined;
  const condition = etag === undefined ? '' : `If-None-Match: ${etag}\r\n`;
  return `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${keys[key]}\r\n${coding}${condition}\r\n`;
}

/** The connections to one gateway, and what waits for one. */
class Target {
  readonly #idle: Connection[] = [];
  readonly #all: Connection[] = [];
  readonly #waiting: { readonly request: MixedRequest; readonly dueMs: number }[] = [];

  async open(url: string): Promise<void> {
    const { hostname, port, host } = new URL(url);
    const opened = Array.from({ length: connections }, async () => {
      const { promise, resolve, reject } = Promise.withResolvers<Connection>();
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => resolve(new Connection(socket, host)));
      return await promise;
    });
    this.#all.push(...(await Promise.all(opened)));
    this.#idle.push(...this.#all);
  }

  dispatch(request: MixedRequest, dueMs: number): void {
    const connection = this.#idle.pop();
    if (connection === undefined) this.#waiting.push({ request, dueMs });
    else connection.send(request, dueMs, (one) => this.#release(one));
  }

  async close(): Promise<void> {
    const untilMs = performance.now() + (seconds === null ? FILLED_WITHIN_MS : ANSWERED_WITHIN_MS);
    while (this.#idle.length < connections && performance.now() < untilMs) await sleep(10);
    for (const connection of this.#all) connection.end();
  }

  #release(connection: Connection): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(connection);
    else connection.send(next.request, next.dueMs, (one) => this.#release(one));
  }
}

const random = new SeededRandom(seed);
const fills = everyFill();
const total = targets.length * (seconds === null ? fills.length : Math.round(ratePerTarget * seconds));
const open = await Promise.all(
  targets.map(async (url) => {
    const target = new Target();
    await target.open(url);
    return target;
  }),
);
/** In turn to each of the targets. */
function send(index: number, dueMs: number): void {
  const fill = seconds === null ? fills[Math.floor(index / targets.length)] : undefined;
  open[index % targets.length]?.dispatch(fill ?? mixedRequest(() => random.next()), dueMs);
}

const ratePerMs = (ratePerTarget * targets.length) / 1000;
const startedMs = performance.now();
for (let sent = 0; sent < total;) {
  const dueByNow = Math.min(total, Math.floor((performance.now() - startedMs) * ratePerMs));
  for (; sent < dueByNow; sent += 1) send(sent, startedMs + sent / ratePerMs);
  // The core is shared with Redis and the store: a millisecond late is early enough for what is measured here.
  await sleep(1);
}
for (const target of open) await target.close();
const percentileMs = (percent: number): number => latenciesMicros.percentile(percent) / 1000;
process.stdout.write(
  `${JSON.stringify({
    requests: latenciesMicros.count,
    errors: total - latenciesMicros.count,
    statuses,
    sentBytes,
    firstOther,
    kinds: Object.fromEntries(tallies),
    latencyMs: { p50: percentileMs(50), p99: percentileMs(99) },
  })}\n`,
);
