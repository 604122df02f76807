/** The sample upstream: a real HTTP server that implements the store's whole interface, and its faults on request. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { chooseFault, type Fault, type Faults, NO_FAULTS } from './faults.ts';
import { misbehave } from './misbehave.ts';
import { createRandom, type Random } from './random.ts';
import type { StoreRecords } from './records.ts';
import { type Answer, answerFrom, errorAnswer, findRoute, type Route, type SampleResource } from './routes.ts';

/** Waits; ends early, by rejecting, when the signal aborts. */
type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export interface SampleUpstreamOptions {
  readonly data: { readonly records: StoreRecords };
  /** The bearer token that callers must send. */
  readonly token: string;
  /** Median of the latency in milliseconds; 0, the default, is none. */
  readonly latency?: number;
  readonly faults?: Partial<Faults>;
  /** Decides on rates and latencies. */
  readonly seed?: number;
  /** Sees every call before anything else does; true where it has answered the call. */
  readonly intercept?: (call: SampleCall) => boolean | Promise<boolean>;
  /** How to wait. */
  readonly sleep?: Sleep;
}
export interface SampleCall {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly route: Route;
  /** The right answer, by the records of the moment when it is first asked for. */
  readonly answer: () => Answer;
}
export interface SampleUpstream {
  /** Binds to the port, 0 for any, on loopback by default. Rejects where that can't be done. */
  listen(port: number, host?: string): Promise<{ readonly url: string; readonly port: number }>;
  /** Ends every connection at once, those that hang too. */
  close(): Promise<void>;
  /** How many authorized calls of each resource there were, faulty ones included. */
  readonly counts: Readonly<Record<SampleResource, number>>;
  /** TCP connections opened so far. */
  readonly connections: number;
  /** Those that are open now. */
  readonly openConnections: number;
  /** Replaces all faults: `setFaults({})` is a healthy store again. */
  setFaults(faults: Partial<Faults>): void;
}

/** Longer than clients keep idle connections, so that it is they who close them. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** Smaller bodies aren't worth the work. */
const GZIP_FROM_BYTES = 16_384;
/** Real stores answer most calls near the median and a few far later: of a median of 120 ms one in a hundred takes 1.5 s. */
const LATENCY_SIGMA = Math.log(12.5) / 2.326_348;
const MAX_TO_MEDIAN = 50;
/** Beyond so many times its capacity a store refuses calls. */
const REFUSES_BEYOND = 4;
const FAILURE_CODES: ReadonlyMap<number, string> = new Map([
  [400, 'BAD_REQUEST'],
  [401, 'UNAUTHENTICATED'],
  [429, 'RATE_LIMITED'],
  [500, 'INTERNAL'],
  [502, 'BAD_GATEWAY'],
  [503, 'UNAVAILABLE'],
]);

const gzipAsync = promisify(gzip);
const sleepAbortably: Sleep = (ms, signal) => delay(ms, undefined, { signal });

/** Makes the server; call `listen` to start it. */
export function createSampleUpstream(options: SampleUpstreamOptions): SampleUpstream {
  return new Sample(options);
}

class Sample implements SampleUpstream {
  readonly #options: SampleUpstreamOptions;
  readonly #server: Server;
  readonly #faultRandom: Random;
  readonly #latencyRandom: Random;
  readonly #counts = {
    list: 0,
    evaluation: 0,
    transcript: 0,
    scorecard: 0,
    dealInsights: 0,
    rubric: 0,
    apiKey: 0,
    other: 0,
  };
  #faults: Faults;
  #connections = 0;
  #openConnections = 0;
  #inFlight = 0;

  constructor(options: SampleUpstreamOptions) {
    const { data, faults = {}, seed = 1 } = options;
    this.#options = options;
    this.#faults = { ...NO_FAULTS, ...faults };
    this.#faultRandom = createRandom(seed, 'faults');
    this.#latencyRandom = createRandom(seed, 'latency');
    this.#server = createServer((request, response) => {
      const requestId = request.headers['x-request-id'];
      if (typeof requestId === 'string') response.setHeader('x-request-id', requestId);
      const target = readTarget(request.url ?? '/');
      let made: Answer | null = null;
      const answer = (): Answer => (made ??= answerFrom(data.records, target.route, target.query));
      // Whatever fails here, most often a caller who left while it was waiting, concerns this call alone.
      this.#handle({ request, response, ...target, answer }).catch(() => response.destroy());
    });
    this.#server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
    this.#server.on('connection', (socket) => {
      this.#connections += 1;
      this.#openConnections += 1;
      socket.once('close', () => (this.#openConnections -= 1));
    });
  }

  get counts(): SampleUpstream['counts'] {
    return { ...this.#counts };
  }

  get connections(): number {
    return this.#connections;
  }

  get openConnections(): number {
    return this.#openConnections;
  }

  setFaults(faults: Partial<Faults>): void {
    this.#faults = { ...NO_FAULTS, ...faults };
  }

  async listen(port: number, host = '127.0.0.1'): Promise<{ readonly url: string; readonly port: number }> {
    this.#server.listen(port, host);
    // Rejects with the error where it can't listen.
    await once(this.#server, 'listening');
    const address = this.#server.address();
    const bound = address === null || typeof address === 'string' ? port : address.port;
    return { url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`, port: bound };
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** Rejects where the caller left while it was served. */
  async #handle(call: SampleCall): Promise<void> {
    const { request, response } = call;
    const { token, latency = 0, intercept = () => false, sleep = sleepAbortably } = this.#options;
    const closed = abortedOnClose(response);
    if (await intercept(call)) return;
    if (!isAuthorized(request, token)) {
      response.setHeader('www-authenticate', 'Bearer');
      return send(call, errorAnswer(401, 'UNAUTHENTICATED', 'the bearer token is missing or wrong'));
    }
    // Decided before anything is awaited: the outcome depends on the order of calls, not on their speed.
    const { fault, load } = this.#admit(call);
    const wait = (ms: number): Promise<void> => sleep(ms, closed);
    if (latency * load > 0) await wait(latency * load);
    if (typeof fault === 'number') {
      const { retryAfter } = this.#faults;
      if (retryAfter !== null && fault >= 429) response.setHeader('retry-after', retryAfter);
      // A 404 made up here carries none of the codes by which a record is absent.
      return send(call, errorAnswer(fault, FAILURE_CODES.get(fault) ?? 'FAULT', 'the store was told to fail'));
    }
    if (request.method !== 'GET') {
      response.setHeader('allow', 'GET');
      return send(call, errorAnswer(405, 'METHOD_NOT_ALLOWED', 'the interface is read with GET only'));
    }
    if (fault === null) return send(call, call.answer());
    return misbehave(fault, { response, url: request.url ?? '/', answer: call.answer(), wait });
  }

  /** What becomes of the call, and how many times the latency it takes. */
  #admit({ response, route }: SampleCall): { readonly fault: Fault | null; readonly load: number } {
    const { capacity } = this.#faults;
    this.#counts[route.resource] += 1;
    this.#inFlight += 1;
    response.once('close', () => (this.#inFlight -= 1));
    if (capacity !== null && this.#inFlight > REFUSES_BEYOND * capacity) return { fault: 503, load: 0 };
    const load = capacity === null ? latencyFactor(this.#latencyRandom) : Math.max(1, (this.#inFlight / capacity) ** 2);
    return { fault: chooseFault(this.#faults, this.#faultRandom), load };
  }
}

/** Split by hand: whatever a caller sends as an address, this doesn't throw. */
function readTarget(url: string): Pick<SampleCall, 'path' | 'query' | 'route'> {
  const [path = ''] = url.split('?', 1);
  return { path, query: new URLSearchParams(url.slice(path.length + 1)), route: findRoute(path) };
}

/** Compares digests, so that the time taken says nothing of the token. */
function isAuthorized(request: IncomingMessage, token: string): boolean {
  const given = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
  const [a, b] = [given, token].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

function abortedOnClose(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  return controller.signal;
}

/** How many medians a call takes, from a log-normal distribution. */
function latencyFactor(random: Random): number {
  return Math.min(MAX_TO_MEDIAN, Math.exp(LATENCY_SIGMA * random.gaussian()));
}

/**
 * A 200 carries an ETag; it is weak on a compressed body, whose bytes may change while the record doesn't (RFC 9110,
 * 8.8.1). `If-None-Match` that holds it makes a 304 of it.
 */
async function send({ request, response }: SampleCall, { status, body }: Answer): Promise<void> {
  const plain = Buffer.from(JSON.stringify(body));
  const headers: OutgoingHttpHeaders = { 'content-type': 'application/json; charset=utf-8', vary: 'Accept-Encoding' };
  if (status !== 200) return end(response, status, headers, plain);
  const isZipped = plain.length > GZIP_FROM_BYTES && acceptsGzip(request.headers['accept-encoding']);
  const tag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  const tagged = { ...headers, etag: isZipped ? `W/${tag}` : tag };
  if (matchesTag(request.headers['if-none-match'], tag)) return void response.writeHead(304, tagged).end();
  if (!isZipped) return end(response, 200, tagged, plain);
  return end(response, 200, { ...tagged, 'content-encoding': 'gzip' }, await gzipAsync(plain));
}

function end(response: ServerResponse, status: number, headers: OutgoingHttpHeaders, body: Buffer): void {
  response.writeHead(status, { ...headers, 'content-length': body.length }).end(body);
}

/** RFC 9110, 12.5.3, without weights but 0. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  return /(?:^|,)\s*(?:gzip|\*)\s*(?:$|,|;(?!\s*q=0(?:\.0*)?\s*(?:$|,)))/i.test(String(header ?? ''));
}

/** RFC 9110, 13.1.2: weak comparison, so a `W/` on either side makes no difference. */
function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => item.trim() === '*' || item.trim().replace(/^W\//, '') === tag);
}
