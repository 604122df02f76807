/** The sample upstream: a real HTTP server that implements the store's whole interface, and its faults on request. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { chooseFault, type Fault, type Faults, misbehave } from './faults.ts';
import { Random } from './random.ts';
import { type Answer, answerFrom, errorAnswer, findRoute, type Route, type StoreRecords } from './routes.ts';

export interface SampleUpstreamOptions {
  readonly data: { readonly records: StoreRecords };
  readonly token: string;
  /** Median of the latency in milliseconds; 0, the default, is none. */
  readonly latency?: number;
  readonly faults?: Faults;
  /** Decides on rates and latencies. */
  readonly seed?: number;
  /** Sees every call before anything else does; true if it has answered the call. */
  readonly intercept?: (call: SampleCall) => boolean | Promise<boolean>;
  /** Waits; ends early, by rejecting, when the signal aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
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

/** Longer than clients keep idle connections, so that it is they who close them. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** Smaller bodies aren't worth the work. */
const GZIP_FROM_BYTES = 16_384;
/** Real stores answer most calls near the median and a few far later: of a median of 120 ms one in a hundred takes 1.5 s. */
const LATENCY_SIGMA = Math.log(12.5) / 2.326_348;
const MAX_TO_MEDIAN = 50;
/** A store refuses calls beyond so many times its capacity. */
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

/** Call `listen` to start it. */
export class SampleUpstream {
  /** TCP connections opened so far, and those that are open now. */
  connections = 0;
  openConnections = 0;
  readonly #options: SampleUpstreamOptions;
  readonly #server = createServer((request, response) => {
    const requestId = request.headers['x-request-id'];
    if (typeof requestId === 'string') response.setHeader('x-request-id', requestId);
    // A failure here, most often a caller who left while it was waiting, concerns this call only.
    this.#handle(this.#callOf(request, response)).catch(() => response.destroy());
  });
  readonly #faultRandom: Random;
  readonly #latencyRandom: Random;
  #faults: Faults;
  #inFlight = 0;

  constructor(options: SampleUpstreamOptions) {
    const { faults = {}, seed = 1 } = options;
    this.#options = options;
    this.#faults = faults;
    this.#faultRandom = new Random(seed, 'faults');
    this.#latencyRandom = new Random(seed, 'latency');
    this.#server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
    this.#server.on('connection', (socket) => {
      this.connections += 1;
      this.openConnections += 1;
      socket.once('close', () => (this.openConnections -= 1));
    });
  }

  /** Replaces all faults: `setFaults({})` is a healthy store again. */
  setFaults(faults: Faults): void {
    this.#faults = faults;
  }

  /** Binds to the port, 0 for any, on loopback by default. Rejects with the error of the system if that fails. */
  async listen(port: number, host = '127.0.0.1'): Promise<{ readonly url: string; readonly port: number }> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    const address = this.#server.address();
    const bound = address === null || typeof address === 'string' ? port : address.port;
    return { url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`, port: bound };
  }

  /** Ends every connection at once, those that hang too. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** Splits the address by hand: this never throws, whatever a caller sends. */
  #callOf(request: IncomingMessage, response: ServerResponse): SampleCall {
    const { url = '/' } = request;
    const [path = ''] = url.split('?', 1);
    const query = new URLSearchParams(url.slice(path.length + 1));
    const route = findRoute(path);
    let made: Answer | null = null;
    const answer = (): Answer => (made ??= answerFrom(this.#options.data.records, route, query));
    return { request, response, path, query, route, answer };
  }

  /** Rejects if the caller left while it was served. */
  async #handle(call: SampleCall): Promise<void> {
    const { request, response } = call;
    const { token, latency = 0, intercept = () => false } = this.#options;
    const { sleep = (ms: number, signal: AbortSignal) => delay(ms, undefined, { signal }) } = this.#options;
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    if (await intercept(call)) return;
    if (/^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] !== token) {
      response.setHeader('www-authenticate', 'Bearer');
      return send(call, errorAnswer(401, 'UNAUTHENTICATED', 'the bearer token is missing or wrong'));
    }
    // Decided before anything is awaited: the outcome depends on the order of calls, not on their speed.
    const { fault, load } = this.#admit(response);
    const wait = (ms: number): Promise<unknown> => sleep(ms, closed.signal);
    if (latency * load > 0) await wait(latency * load);
    if (typeof fault === 'number') {
      const { retryAfter } = this.#faults;
      if (retryAfter !== undefined && fault >= 429) response.setHeader('retry-after', retryAfter);
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

  /** Decides which fault the call meets, and how many times the latency it takes. */
  #admit(response: ServerResponse): { readonly fault: Fault | null; readonly load: number } {
    const { capacity } = this.#faults;
    this.#inFlight += 1;
    response.once('close', () => (this.#inFlight -= 1));
    if (capacity !== undefined && this.#inFlight > REFUSES_BEYOND * capacity) return { fault: 503, load: 0 };
    const load =
      capacity === undefined
        ? Math.min(MAX_TO_MEDIAN, Math.exp(LATENCY_SIGMA * this.#latencyRandom.gaussian()))
        : Math.max(1, (this.#inFlight / capacity) ** 2);
    return { fault: chooseFault(this.#faults, this.#faultRandom), load };
  }
}

/** In `Accept-Encoding` (RFC 9110, 12.5.3), without weights but 0. */
const ACCEPTS_GZIP = /(?:^|,)\s*(?:gzip|\*)\s*(?:$|,|;(?!\s*q=0(?:\.0*)?\s*(?:$|,)))/i;

/**
 * A 200 carries an ETag; it is weak on a compressed body, whose bytes may change while the record doesn't (RFC 9110,
 * 8.8.1). `If-None-Match` that holds it makes a 304 of it.
 */
async function send({ request, response }: SampleCall, { status, body }: Answer): Promise<void> {
  const plain = Buffer.from(JSON.stringify(body));
  const headers: OutgoingHttpHeaders = { 'content-type': 'application/json; charset=utf-8', vary: 'Accept-Encoding' };
  if (status !== 200) return end(response, status, headers, plain);
  const isZipped = plain.length > GZIP_FROM_BYTES && ACCEPTS_GZIP.test(String(request.headers['accept-encoding']));
  const tag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  const tagged = { ...headers, etag: isZipped ? `W/${tag}` : tag };
  if (matchesTag(request.headers['if-none-match'], tag)) return void response.writeHead(304, tagged).end();
  if (!isZipped) return end(response, 200, tagged, plain);
  return end(response, 200, { ...tagged, 'content-encoding': 'gzip' }, await gzipAsync(plain));
}

function end(response: ServerResponse, status: number, headers: OutgoingHttpHeaders, body: Buffer): void {
  response.writeHead(status, { ...headers, 'content-length': body.length }).end(body);
}

/** RFC 9110, 13.1.2: weak comparison, so a `W/` on either side makes no difference. */
function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => item.trim() === '*' || item.trim().replace(/^W\//, '') === tag);
}
