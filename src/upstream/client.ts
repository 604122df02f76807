/**
 * The store over HTTP: one got instance (C7: only reads are sent, and no redirect is followed). Nothing here retries, caches
 * or queues; the guard does.
 */
import { setMaxListeners } from 'node:events';
import type { ClientRequest, IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type * as GotLibrary from 'got';
import type { Got, PlainResponse } from 'got';
import { z } from 'zod';
import { type Clock, systemClock } from '../time/clock.ts';
import { systemTimers } from '../time/timers.ts';
import { outgoingTraceparent, recordingSpan, storeSpan } from '../tracing/spans.ts';
import type { AnswerMemory, Reservation } from './answer-memory.ts';
import { readBody, readErrorBody } from './body.ts';
import { type Agents, Connections, newConnection } from './connections.ts';
import type { Listed, Resource, ResourceKind } from './resources.ts';
import type { Fetch, FetchOptions, StoreAnswer } from './store.ts';
import { JsonError, parseJson } from './json.ts';
import { asStoreError, garbled, malformed, StoreError, type StoreErrorKind } from './store-error.ts';

/** One call that was sent, or that could not be. */
export interface StoreCall {
  readonly resource: ResourceKind;
  readonly outcome: StoreAnswer<unknown>['kind'] | StoreErrorKind;
  /** The store's HTTP status; null if none came, or none in time. */
  readonly status: number | null;
  readonly durationMs: number;
  readonly requestId: string;
  /** For the log: why there is no answer, a StoreError's message. Null if there is one. */
  readonly failure: string | null;
}

/** They report, for logs and metrics, and must not throw. */
export interface StoreClientHooks {
  readonly onCall?: (call: StoreCall) => void;
  readonly onListed?: (listed: Listed & Pick<StoreCall, 'resource' | 'requestId'>) => void;
}

export interface StoreClientOptions {
  /** http or https, with or without a path prefix; without credentials, query and trailing slash, as config has it. */
  readonly baseUrl: string;
  /** Sent as a bearer token until `useToken`; null for a store that asks for none. */
  readonly token: string | null;
  /** Called when the store refuses the token: resolves once the token in force is the newest. */
  readonly refreshToken?: () => Promise<void>;
  /** One deadline for the whole exchange: waiting for a connection, connecting, headers and body. */
  readonly timeoutMs: number;
  /** Cap on the decoded body of a 200. */
  readonly maxResponseBytes: number;
  readonly maxConnections: number;
  /** After so long no call is sent on a connection any more. */
  readonly connectionMaxAgeMs: number;
  /** Bounds what is read at a time. */
  readonly memory: AnswerMemory;
  readonly hooks?: StoreClientHooks;
  readonly clock?: Clock;
}

/** Responses of status 1xx before the one that counts (RFC 9110 section 15.2): more than any server has a use for. */
const MAX_INTERIM_RESPONSES = 16;
/** A store that asks for more is not believed: nobody waits longer than a minute on its word. */
const MAX_RETRY_AFTER_MS = 60_000;
/** Quoted or not, weak or strong, but nothing that could not be sent back in a header. */
const ETAG_PATTERN = /^[\u0020-\u007e]{1,256}$/;
const HTTP_DATE_PATTERN = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
/** The body of an error. Codes of another form are not repeated in messages. */
const errorBodySchema = z.object({ code: z.string().regex(/^[A-Z][A-Z_]{0,40}$/) });
/** Codes of Node.js, its HTTP parser, zlib, the resolver and TLS look like this. */
const codedErrorSchema = z.object({ code: z.string().regex(/^[A-Z][A-Z0-9_]{1,60}$/) });

/** Codes of connections that no call can have brought about: nothing listens, or the name or the network is not there. */
const NOBODY_THERE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Codes of a connection that the store has closed. */
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);
/** Not Found and Gone: with a code of absence, both say that there is no such record (Q9: without one, they are failures). */
const ABSENT_STATUSES: ReadonlySet<number> = new Set([404, 410]);
const REQUEST_TIMEOUT = 408;
const UNAUTHORIZED = 401;

type Exchange = FetchOptions & CallLimit & { readonly agents: Agents };

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Decoded. Empty if the body of an error could not be read. */
  readonly body: Buffer;
}

/** got as it calls the store, and its errors. */
interface Http extends Pick<typeof GotLibrary, 'RequestError' | 'AbortError'> {
  readonly client: Got;
}

export class StoreClient {
  readonly #options: StoreClientOptions;
  readonly #clock: Clock;
  readonly #connections: Connections;
  readonly #closing = new AbortController();
  #http: Promise<Http> | null = null;
  #token: string | null;

  constructor(options: StoreClientOptions) {
    const { token, clock = systemClock } = options;
    this.#options = options;
    this.#token = token;
    this.#clock = clock;
    this.#connections = new Connections({ ...options, clock });
    // Each call in flight listens to it.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Sends that token from the next call on. */
  useToken(token: string | null): void {
    this.#token = token;
  }

  /** Ends the calls in flight with kind `aborted` and closes all connections; later calls are `aborted` too. */
  close(): void {
    this.#closing.abort();
    this.#connections.close();
  }

  readonly fetch: Fetch = (resource, params, request) =>
    storeSpan(resource.name, resource.template, async () => {
      if (request.signal?.aborted === true) throw new StoreError('aborted', 'nobody waits for the answer any more');
      const path = resource.path(params);
      const startedMicros = this.#clock.nowMicros();
      const report = (result: Pick<StoreCall, 'outcome' | 'status' | 'failure'>): void => {
        const durationMs = (this.#clock.nowMicros() - startedMicros) / 1000;
        const { requestId } = request;
        this.#options.hooks?.onCall?.({ resource: resource.name, ...result, durationMs, requestId });
        const span = recordingSpan();
        span?.setAttribute('evalgate.store.outcome', result.outcome);
        if (result.status !== null) span?.setAttribute('http.response.status_code', result.status);
      };
      const timeoutMs = Math.min(this.#options.timeoutMs, request.timeoutMs ?? this.#options.timeoutMs);
      // The wait for memory may take half of the time; the rest is for the body.
      const reservation = this.#options.memory.reservation(request.keyId, timeoutMs / 2);
      try {
        const reply = await this.#get(path, { ...request, timeoutMs, title: resource.title(params) }, reservation);
        const answer = await this.#answerOf(resource, params, request, reply);
        report({ outcome: answer.kind, status: reply.status, failure: null });
        if (request.onReserved === undefined) reservation.release();
        else request.onReserved(() => reservation.release());
        return answer;
      } catch (error) {
        reservation.release();
        const failure = asStoreError(error);
        report({ outcome: failure.kind, status: failure.status, failure: failure.message });
        throw failure;
      }
    });

  /**
   * The whole reply. If the store refuses the token and there is a newer one, the call is sent once more with that. Rejects
   * with a StoreError.
   */
  async #get(path: string, request: FetchOptions & CallLimit, reservation: Reservation): Promise<Reply> {
    const deadlineMs = this.#nowMs() + request.timeoutMs;
    const token = this.#token;
    const reply = await this.#send(path, request, deadlineMs, reservation);
    if (reply.status !== UNAUTHORIZED) return reply;
    await this.#options.refreshToken?.();
    return this.#token === token ? reply : this.#send(path, request, deadlineMs, reservation);
  }

  /**
   * The whole reply. A connection that was kept may be closed by the store just when a call is sent on it. The store has not
   * looked at such a call, so it is sent again at once, once, on a new connection (RFC 9112 section 9.3.1, RFC 9110 section
   * 15.5.9). Rejects with a StoreError.
   */
  async #send(
    path: string,
    request: FetchOptions & CallLimit,
    deadlineMs: number,
    reservation: Reservation,
  ): Promise<Reply> {
    const send = (agents: Agents): Promise<Reply | null> => {
      const timeoutMs = Math.max(1, Math.floor(deadlineMs - this.#nowMs()));
      return this.#exchange(path, { ...request, timeoutMs, agents }, reservation);
    };
    const reply = (await this.#connections.use(send)) ?? (await send(newConnection()));
    if (reply !== null) return reply;
    throw new StoreError('unreachable', 'the store closed two connections in turn without an answer');
  }

  /**
   * The whole reply, bounded in time and size while it streams in; null if the connection had been kept, and the store
   * closed it instead of an answer. Rejects with a StoreError.
   */
  async #exchange(
    path: string,
    { requestId, ifNoneMatch, timeoutMs, title, agents, ...request }: Exchange,
    reservation: Reservation,
  ): Promise<Reply | null> {
    const { baseUrl, maxResponseBytes } = this.#options;
    const traceparent = outgoingTraceparent(request.traceparent);
    const http = await (this.#http ??= this.#open());
    const stream = http.client.stream(baseUrl + path, {
      agent: agents,
      // got leaves out headers that are undefined.
      headers: {
        authorization: this.#token === null ? undefined : `Bearer ${this.#token}`,
        'x-request-id': requestId,
        traceparent,
        'if-none-match': ifNoneMatch,
      },
    });
    // got's own timer would fire before what has arrived is read.
    const endWait = systemTimers.after(timeoutMs, () => {
      stream.destroy(new StoreError('timeout', `the store gave no whole answer within ${timeoutMs} ms`));
    });
    const connection = new SentOn();
    stream.once('request', (outgoing: ClientRequest) => {
      connection.watch(outgoing);
      let interim = 0;
      outgoing.on('information', () => {
        interim += 1;
        if (interim > MAX_INTERIM_RESPONSES)
          stream.destroy(garbled(`the store sent more than ${MAX_INTERIM_RESPONSES} interim responses`));
      });
    });
    let status: number | null = null;
    try {
      const { statusCode, headers } = await new Promise<PlainResponse>((resolve, reject) => {
        stream.once('response', resolve).once('error', reject);
      });
      status = statusCode;
      request.onHeaders?.();
      if (status === REQUEST_TIMEOUT && connection.wasKept) {
        stream.destroy();
        return null;
      }
      const limit = { title, maxBytes: maxResponseBytes, reservation };
      const body = status === 200 ? await readBody(stream, headers, limit) : await readErrorBody(stream, headers);
      return { status, headers, body };
    } catch (error) {
      stream.destroy();
      if (connection.wasKept && !connection.hasAnswered && CLOSED.has(codeOfFailure(error))) return null;
      throw storeErrorOf(http, error, status);
    } finally {
      endWait();
    }
  }

  /** got, loaded by the first call: until then a process starts sooner and is smaller without it. */
  async #open(): Promise<Http> {
    const { default: got, RequestError, AbortError } = await import('got');
    const client = got.extend({
      headers: {
        accept: 'application/json',
        'accept-encoding': 'gzip',
        'user-agent': 'evalgate',
      },
      // A repetition needs a budget, which belongs to the guard.
      retry: { limit: 0 },
      followRedirect: false,
      throwHttpErrors: false,
      // Decoded here, within the cap on the decoded bytes.
      decompress: false,
      signal: this.#closing.signal,
    });
    return { client, RequestError, AbortError };
  }

  /** A clock that is never set back. */
  #nowMs(): number {
    return this.#clock.nowMicros() / 1000;
  }

  /** The meaning of a reply. Rejects with a StoreError of kind `refused`, `garbled` or `malformed`. */
  async #answerOf<P, R>(
    resource: Resource<P, R>,
    params: P,
    { ifNoneMatch, requestId }: FetchOptions,
    { status, headers, body }: Reply,
  ): Promise<StoreAnswer<R>> {
    const { name, absentCodes } = resource;
    if (status === 200) {
      const value = await valueOf(body, resource.title(params), resource.isExact);
      const record = await resource.parse(value, params, (listed) =>
        this.#options.hooks?.onListed?.({ resource: name, ...listed, requestId }),
      );
      const etag = headers.etag !== undefined && ETAG_PATTERN.test(headers.etag) ? headers.etag : null;
      return { kind: 'found', record, etag, bytes: body.length };
    }
    if (status === 304 && ifNoneMatch !== undefined) return { kind: 'not-modified' };
    const code = await codeOf(body);
    const absentCode = ABSENT_STATUSES.has(status) ? absentCodes.find((known) => known === code) : undefined;
    if (absentCode !== undefined) return { kind: 'absent', code: absentCode };
    throw new StoreError('refused', `the store answered with ${status}${code === null ? '' : ` ${code}`} (${name})`, {
      status,
      retryAfterMs: retryAfterMsOf(headers['retry-after'], this.#clock.nowMs()),
    });
  }
}

interface CallLimit {
  readonly timeoutMs: number;
  /** The record's name in messages. */
  readonly title: string;
}

/**
 * The value of a 200's body. Rejects with a StoreError: the record's fault or the store's (S2: a record's trouble is its
 * own).
 */
async function valueOf(body: Buffer, title: string, isExact: boolean): Promise<unknown> {
  try {
    return await parseJson(body, { isExact });
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw error.isRecords
      ? malformed(`the store's ${title} ${error.message}`)
      : garbled(`the store's answer ${error.message}`);
  }
}

/** The `code` of an error body; null if it has none of the known form. */
async function codeOf(body: Buffer): Promise<string | null> {
  try {
    return errorBodySchema.parse(await parseJson(body, { isExact: false })).code;
  } catch {
    return null;
  }
}

/** `Retry-After` (RFC 9110 section 10.2.3) as milliseconds from `nowMs` on, at most a minute; null if it says nothing. */
function retryAfterMsOf(header: string | undefined, nowMs: number): number | null {
  const text = header?.trim() ?? '';
  const inMs = /^\d{1,15}$/.test(text)
    ? Number(text) * 1000
    : HTTP_DATE_PATTERN.test(text)
      ? Date.parse(text) - nowMs
      : NaN;
  return Number.isNaN(inMs) ? null : Math.min(Math.max(inMs, 0), MAX_RETRY_AFTER_MS);
}

/** The connection that a call was sent on. */
class SentOn {
  #kept: { readonly socket: Socket; readonly bytesBefore: number } | null = null;

  /** Called before the call is sent. */
  watch(outgoing: ClientRequest): void {
    outgoing.once('socket', (socket) => {
      if (outgoing.reusedSocket) this.#kept = { socket, bytesBefore: socket.bytesRead };
    });
  }

  /** Whether an earlier call had been sent on it. */
  get wasKept(): boolean {
    return this.#kept !== null;
  }

  /** Whether it has brought a byte since, if it was kept. */
  get hasAnswered(): boolean {
    return this.#kept !== null && this.#kept.socket.bytesRead > this.#kept.bytesBefore;
  }
}

function codeOfFailure(error: unknown): string {
  return codedErrorSchema.safeParse(error).data?.code ?? 'no code';
}

/**
 * How an exchange failed. got's errors carry the address and the bearer token of the request, and a logger writes
 * causes out, so none of them is passed on: only its code is. `status` is the store's, if its headers had arrived.
 */
function storeErrorOf(http: Http, error: unknown, status: number | null): StoreError {
  if (error instanceof StoreError) return error;
  if (error instanceof http.RequestError && error.cause instanceof StoreError) return error.cause;
  if (error instanceof http.AbortError)
    return new StoreError('aborted', 'the call was abandoned before the store had answered');
  const code = codeOfFailure(error);
  if (code.startsWith('HPE_')) return garbled(`the answer is not HTTP (${code})`, status);
  if (code.startsWith('Z_')) return garbled(`the body cannot be decoded (${code})`, status);
  const when = status === null ? 'before the answer' : 'half-way through the answer';
  const isUnprovoked = NOBODY_THERE.has(code);
  return new StoreError('unreachable', `the connection to the store failed ${when} (${code})`, {
    status,
    isUnprovoked,
  });
}
