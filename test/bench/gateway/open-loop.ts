/**
 * Sends requests when they are due, whatever became of those before, and prints how long after they were due they were
 * answered: a server that falls behind can't slow down what it is measured by. A process of its own. What is sent
 * first isn't counted: it is this program that is slow then. Where something else has its core for milliseconds, such as a
 * thread of the kernel, it goes on from there, instead of sending at once what would have been due meanwhile, and what was
 * under way isn't counted.
 * Usage: node open-loop.ts, with a JSON object in OPTIONS: {url, path, headers, connections, seconds, rate}.
 */
import { connect, type Socket } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { stolenTicks } from './processes.ts';

const { url, path, headers, connections, seconds, rate } = z
  .object({
    url: z.string(),
    path: z.string(),
    headers: z.record(z.string(), z.string()),
    connections: z.number(),
    seconds: z.number(),
    rate: z.number(),
  })
  .parse(JSON.parse(process.env['OPTIONS'] ?? '{}'));

const { hostname, port, host } = new URL(url);
const fields = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
const request = Buffer.from(`GET ${path} HTTP/1.1\r\n${fields.join('')}\r\n`);
/** Until V8 has compiled this program, and compiled it again. */
const WARM_UP_SECONDS = 2.5;
/** Of this program's own turns, with what Redis takes of the core meanwhile: the longer ones are somebody else's. */
const MOST_TURN_MS = 2;
const latenciesMicros = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
const statuses: Record<string, number> = {};
let answered = 0;
let countedFromMs = 0;
/** When the turn began in which this program was last held up, and how often it was while what it sent was counted. */
let heldUpFromMs = 0;
let timesHeldUp = 0;
/** When this turn began. */
let turnMs = 0;

/** One connection: a request at a time, since a response says where it ends. */
class Connection {
  readonly #socket: Socket;
  #dueMs = 0;
  #head = '';
  /** Of the body that is under way; null before its head is whole. */
  #bytesLeft: number | null = null;
  #onIdle: (connection: Connection) => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
  }

  send(dueMs: number, onIdle: (connection: Connection) => void): void {
    this.#dueMs = dueMs;
    this.#onIdle = onIdle;
    this.#socket.write(request);
  }

  end(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#bytesLeft === null) {
      this.#head += chunk.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#head)?.[1] ?? 0);
      this.#bytesLeft = length - (this.#head.length - end - 4);
    } else {
      this.#bytesLeft -= chunk.length;
    }
    if (this.#bytesLeft > 0) return;
    const status = this.#head.slice(9, 12);
    statuses[status] = (statuses[status] ?? 0) + 1;
    answered += 1;
    const nowMs = performance.now();
    // Read behind what held this program up, in the turn that it did.
    if (nowMs - turnMs > MOST_TURN_MS) heldUpFromMs = turnMs;
    if (this.#dueMs >= countedFromMs && this.#dueMs > heldUpFromMs) {
      latenciesMicros.record(Math.max(1, Math.round((nowMs - this.#dueMs) * 1000)));
    }
    this.#head = '';
    this.#bytesLeft = null;
    this.#onIdle(this);
  }
}

const idle = await Promise.all(Array.from({ length: connections }, open));
const all = [...idle];
const waitingSinceMs: number[] = [];

function open(): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    socket.once('error', reject);
    socket.once('connect', () => resolve(new Connection(socket)));
  });
}

function dispatch(dueMs: number): void {
  const connection = idle.pop();
  if (connection === undefined) waitingSinceMs.push(dueMs);
  else connection.send(dueMs, release);
}

function release(connection: Connection): void {
  const dueMs = waitingSinceMs.shift();
  if (dueMs === undefined) idle.push(connection);
  else connection.send(dueMs, release);
}

let startedMs = performance.now();
countedFromMs = startedMs + WARM_UP_SECONDS * 1000;
const total = Math.round(rate * (WARM_UP_SECONDS + seconds));
let stolenBefore: number | null = null;
turnMs = startedMs;
for (let sent = 0; sent < total;) {
  const nowMs = performance.now();
  if (nowMs - turnMs > MOST_TURN_MS) {
    heldUpFromMs = turnMs;
    startedMs += nowMs - turnMs;
    if (stolenBefore !== null) timesHeldUp += 1;
  }
  turnMs = nowMs;
  if (stolenBefore === null && nowMs >= countedFromMs) stolenBefore = stolenTicks();
  const dueByNow = Math.min(total, Math.floor(((nowMs - startedMs) / 1000) * rate));
  for (; sent < dueByNow; sent += 1) dispatch(startedMs + (sent / rate) * 1000);
  // A timer would come a millisecond late.
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}
for (let waited = 0; idle.length < connections && waited < 5000; waited += 10) await sleep(10);
for (const connection of all) connection.end();
const percentileMs = (percent: number): number => latenciesMicros.percentile(percent) / 1000;
process.stdout.write(
  `${JSON.stringify({
    requests: answered,
    statuses,
    unanswered: total - answered,
    timesHeldUp,
    stolenTicks: stolenTicks() - (stolenBefore ?? Number.NaN),
    latencyMs: { p50: percentileMs(50), p90: percentileMs(90), p99: percentileMs(99), max: latenciesMicros.max / 1000 },
  })}\n`,
);
