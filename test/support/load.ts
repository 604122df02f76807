/**
 * The load generator, in a process of its own.
 *
 * `Load` is an open loop: a request is sent when it is due, whatever became of those before, and its time counts from then.
 * It is not autocannon's, since its `overallRate` sends a connection's requests of a second as a burst at the second's
 * start and never more at once than it has connections, and since it reports no request that was lost with its
 * connection: bars on overload and on lost requests could not see what they are about.
 *
 * `closedLoop` is autocannon: each connection sends its next request once it has its answer.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request } from 'autocannon';
import { z } from 'zod';
import { firstJson } from './process.ts';

const TICK_MS = 2;
const GIVE_UP_MS = 30_000;
const BYTE_EVERY_MS = 1000;

export interface Target {
  /** The whole address; `{n}` is another number in each request, of twelve digits. */
  readonly url: string;
  readonly key: string;
  /** Names what it is for, to find its samples. */
  readonly tag?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Sample {
  readonly tag: string;
  readonly url: string;
  /** When it was due, Unix milliseconds. */
  readonly atMs: number;
  /** From then on. */
  readonly tookMs: number;
  /** How much of that was the generator's own lateness. */
  readonly lateMs: number;
  /** 0 if no whole answer came. */
  readonly status: number;
  readonly cacheStatus: string;
  readonly ageSeconds: number | null;
  /** The first `id` and `name` in the body. */
  readonly id: string | null;
  readonly title: string | null;
}

/** How long a slow connection stood, and what it was answered at the end. */
export interface Closed {
  readonly afterMs: number;
  readonly status: number;
}

type Command =
  | { readonly name: 'begin'; readonly load: number; readonly targets: readonly Target[]; readonly perSecond: number }
  | { readonly name: 'end'; readonly load: number }
  | { readonly name: 'burst'; readonly targets: readonly Target[]; readonly times: number }
  | { readonly name: 'slowloris'; readonly url: string; readonly sockets: number };
const callSchema = z.object({ call: z.int(), command: z.custom<Command>() });
const replySchema = z.object({ call: z.int(), result: z.unknown() });

export interface LoadOptions {
  /** A command to start the process with, such as `taskset -c 1`. */
  readonly through?: readonly string[];
  /** Whether it never sleeps, so that nothing is sent late. */
  readonly isSpinning?: boolean;
}

export class Load {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = 0;
  #begun = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (message) => {
      const { call, result } = replySchema.parse(message);
      this.#waiting.get(call)?.resolve(result);
      this.#waiting.delete(call);
    });
    child.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('The load generator has ended.'));
    });
  }

  static async start({ through = [], isSpinning = false }: LoadOptions = {}): Promise<Load> {
    const [file, ...args] = [...through, process.execPath, import.meta.filename, isSpinning ? 'spin' : 'tick'];
    const child = spawn(file, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    await Promise.race([once(child, 'message'), once(child, 'exit')]);
    return new Load(child);
  }

  /** Requests to the targets in turn from now on, so many a second in all. Several loads may go on at a time. */
  async begin(targets: readonly Target[], perSecond: number): Promise<number> {
    const load = (this.#begun += 1);
    await this.#call({ name: 'begin', load, targets, perSecond });
    return load;
  }

  /** Sends no more. Resolves with how each request went, in the order in which they were due, once all have ended. */
  end(load = this.#begun): Promise<readonly Sample[]> {
    return this.#call({ name: 'end', load });
  }

  async run(
    targets: readonly Target[],
    { perSecond, forMs }: { readonly perSecond: number; readonly forMs: number },
  ): Promise<readonly Sample[]> {
    const load = await this.begin(targets, perSecond);
    await sleep(forMs);
    return this.end(load);
  }

  /** So many requests to each target, all at once. */
  burst(targets: readonly Target[], times: number): Promise<readonly Sample[]> {
    return this.#call({ name: 'burst', targets, times });
  }

  /** Opens connections that send a request a byte at a time and never end it; resolves once all were closed on them. */
  slowloris(url: string, sockets: number): Promise<readonly Closed[]> {
    return this.#call({ name: 'slowloris', url, sockets });
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  async #call<T>(command: Command): Promise<T> {
    const call = (this.#calls += 1);
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(call, waiting);
    this.#child.send({ call, command });
    return z.custom<T>().parse(await waiting.promise);
  }
}

export interface BenchRequest {
  /** With the query; `{n}` is another number in each request, of twelve digits, and none that was there before. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface ClosedLoop {
  readonly url: string;
  readonly requests: readonly BenchRequest[];
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second in all; without it each connection sends its next at once. */
  readonly rate?: number;
  /** The first value of `{n}` in a path. */
  readonly firstNumber?: number;
  /** Each connection makes one of the requests again and again; else all of them in turn. */
  readonly isOnePerConnection?: boolean;
}

export const closedLoopSchema = z.object({
  requests: z.number(),
  statuses: z.record(z.string(), z.number()),
  errors: z.number(),
  seconds: z.number(),
  bytes: z.number(),
  latencyMs: z.object({ p50: z.number(), p90: z.number(), p99: z.number(), max: z.number() }),
});

/** autocannon in a process of its own. Which statuses came is for the caller to look at. */
export async function closedLoop(options: ClosedLoop, through: readonly string[] = []) {
  const [file, ...args] = [...through, process.execPath, import.meta.filename, 'closed', JSON.stringify(options)];
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return closedLoopSchema.parse(await firstJson(child));
}

// From here on: the generator's own process.

interface Running {
  readonly samples: Promise<Sample>[];
  isOver: boolean;
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const loads = new Map<number, Running>();
/** Later processes begin with higher ones. */
let lastNumber = (Date.now() % 1_000_000_000) * 1000;

function digitsOf(number: number): string {
  return String(number).padStart(12, '0');
}

function sample({ url, key, tag = '', headers }: Target, dueMs: number): Promise<Sample> {
  const lateMs = performance.now() - dueMs;
  const address = url.replace('{n}', () => digitsOf((lastNumber += 1)));
  const none = { status: 0, cacheStatus: '', ageSeconds: null, id: null, title: null };
  return new Promise((resolve) => {
    const settle = (how: Omit<Sample, 'tag' | 'url' | 'atMs' | 'tookMs' | 'lateMs'>): void => {
      const atMs = performance.timeOrigin + dueMs;
      resolve({ tag, url: address, atMs, tookMs: performance.now() - dueMs, lateMs, ...how });
    };
    const options = { agent, headers: { authorization: `Bearer ${key}`, ...headers }, timeout: GIVE_UP_MS };
    const request = get(address, options, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('end', () => settle(answered(response, body)));
      response.on('error', () => settle(none));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => settle(none));
  });
}

function answered({ statusCode = 0, headers }: IncomingMessage, body: string) {
  return {
    status: statusCode,
    cacheStatus: String(headers['cache-status'] ?? ''),
    ageSeconds: headers.age === undefined ? null : Number(headers.age),
    id: /"id":"([^"]*)"/.exec(body)?.[1] ?? null,
    title: /"name":"([^"]*)"/.exec(body)?.[1] ?? null,
  };
}

async function send(running: Running, targets: readonly Target[], perSecond: number): Promise<void> {
  const beganMs = performance.now();
  const isSpinning = process.argv[2] === 'spin';
  while (!running.isOver) {
    for (;;) {
      const dueMs = beganMs + (running.samples.length * 1000) / perSecond;
      const target = targets[running.samples.length % targets.length];
      if (dueMs > performance.now() || target === undefined) break;
      running.samples.push(sample(target, dueMs));
    }
    await (isSpinning ? new Promise((resolve) => setImmediate(resolve)) : sleep(TICK_MS));
  }
}

/** Not all at once, as they would not be. */
async function slowloris(url: string, sockets: number): Promise<readonly Closed[]> {
  const closed: Promise<Closed>[] = [];
  for (let index = 0; index < sockets; index += 1) {
    closed.push(slowSocket(new URL(url), BYTE_EVERY_MS + (index % 100)));
    if (index % 10 === 0) await sleep(10);
  }
  return Promise.all(closed);
}

function slowSocket({ hostname, port }: URL, byteEveryMs: number): Promise<Closed> {
  return new Promise((resolve) => {
    let received = '';
    let beganMs = performance.now();
    const socket = connect(Number(port), hostname, () => {
      beganMs = performance.now();
      socket.write('GET /v2/calls HTTP/1.1\r\nHost: a\r\nX-Slow: ');
    });
    const drip = setInterval(() => socket.write('x'), byteEveryMs);
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(drip);
      resolve({ afterMs: performance.now() - beganMs, status: Number(received.split(' ')[1] ?? 0) });
    });
  });
}

function answer(command: Command): Promise<unknown> | null {
  if (command.name === 'slowloris') return slowloris(command.url, command.sockets);
  if (command.name === 'burst') {
    const { targets, times } = command;
    const dueMs = performance.now();
    return Promise.all(targets.flatMap((target) => Array.from({ length: times }, () => sample(target, dueMs))));
  }
  if (command.name === 'begin') {
    const running = { samples: [], isOver: false };
    loads.set(command.load, running);
    void send(running, command.targets, command.perSecond);
    return null;
  }
  const running = loads.get(command.load);
  loads.delete(command.load);
  if (running !== undefined) running.isOver = true;
  return Promise.all(running?.samples ?? []);
}

async function runClosedLoop(options: ClosedLoop): Promise<object> {
  const { requests, firstNumber = 0, rate, seconds, isOnePerConnection = false, ...more } = options;
  const { default: autocannon } = await import('autocannon');
  let next = firstNumber;
  const all = requests.map(({ path, headers }): Request => ({
    method: 'GET',
    path,
    headers,
    ...(path.includes('{n}') && {
      setupRequest: (request) => ({ ...request, path: path.replace('{n}', () => digitsOf(next++)) }),
    }),
  }));
  let connections = 0;
  const { latency, ...result } = await autocannon({
    ...more,
    duration: seconds,
    timeout: 20,
    ...(rate !== undefined && { overallRate: rate }),
    requests: all,
    ...(isOnePerConnection && {
      setupClient: (client) => {
        const own = all[connections++ % all.length];
        if (own !== undefined) client.setRequests([own]);
      },
    }),
  });
  return {
    requests: result.requests.total,
    statuses: Object.fromEntries(
      Object.entries(result.statusCodeStats ?? {}).map(([status, stats]) => [status, stats.count]),
    ),
    errors: result.errors + result.timeouts,
    seconds: result.duration,
    bytes: result.throughput.total,
    latencyMs: { p50: latency.p50, p90: latency.p90, p99: latency.p99, max: latency.max },
  };
}

async function main(): Promise<void> {
  if (process.argv[2] === 'closed') {
    const options = z.custom<ClosedLoop>().parse(JSON.parse(process.argv[3] ?? ''));
    process.stdout.write(JSON.stringify(await runClosedLoop(options)));
    return;
  }
  process.on('message', (message) => {
    const { call, command } = callSchema.parse(message);
    void Promise.resolve(answer(command)).then((result) => process.send?.({ call, result }));
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.('ready');
}

if (process.argv[1] === import.meta.filename) await main();
