/** One GET to the store and its whole answer, bounded in time and size. The only file that knows got. */
import { once } from 'node:events';
import type { ClientRequest, IncomingHttpHeaders } from 'node:http';

import got, { type Got, type Request as GotRequest } from 'got';

import { createAgents } from './agents.ts';
import { ACCEPTED_CODING, readBody } from './bounded-body.ts';
import { storeErrorOf } from './failures.ts';
import { StoreError } from './store.ts';

/** An error's body is read for its code alone. */
const MAX_ERROR_BODY_BYTES = 8 * 1024;
/** The failure is known already, so its body is not worth the rest of the deadline. */
const ERROR_BODY_TIMEOUT_MS = 1000;
/** Responses of status 1xx before the one that counts: more than any server has a use for, each costs. */
const MAX_INTERIM_RESPONSES = 16;

export interface TransportOptions {
  /** http or https, with or without a path prefix and a trailing slash. */
  readonly baseUrl: string;
  /** Sent as a bearer token; null for a store that asks for none. */
  readonly token: string | null;
  /** Cap on the decoded body of a 200. */
  readonly maxResponseBytes: number;
  readonly maxConnections: number;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Decoded. Empty where the body of an error could not be read. */
  readonly body: Buffer;
}

export interface Transport {
  /**
   * `path` begins with a slash and is relative to the base address. Rejects with a StoreError: the signal's reason
   * when it is aborted, else of kind `unreachable` or `garbled`.
   */
  get(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Reply>;
  /** Closes every connection. */
  close(): void;
}

/** Throws a TypeError where the base address cannot be one. */
export function createTransport(options: TransportOptions): Transport {
  const base = baseOf(options.baseUrl);
  const agents = createAgents(options.maxConnections);
  const client = got.extend({
    agent: { http: agents.http, https: agents.https },
    headers: {
      ...(options.token === null ? {} : { authorization: `Bearer ${options.token}` }),
      accept: 'application/json',
      'accept-encoding': ACCEPTED_CODING,
      'user-agent': 'evalgate',
    },
    // The body is decoded here, under a cap; what a status means is decided by the caller.
    decompress: false,
    throwHttpErrors: false,
    followRedirect: false,
    // A retry needs a budget, which belongs to whatever guards the store.
    retry: { limit: 0 },
  });
  return {
    get: (path, headers, signal) => exchange(client, { url: base + path, headers, signal }, options.maxResponseBytes),
    close: () => agents.destroy(),
  };
}

interface Outgoing {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

async function exchange(client: Got, outgoing: Outgoing, maxResponseBytes: number): Promise<Reply> {
  const { signal } = outgoing;
  signal.throwIfAborted();
  let status: number | null = null;
  const stream = client.stream(outgoing.url, { headers: { ...outgoing.headers }, signal });
  // Failures are seen by whoever awaits below; this one is for those that come between two awaits.
  stream.on('error', () => {});
  let fault: StoreError | null = null;
  limitInterimResponses(stream, (tooMany) => {
    fault = tooMany;
  });
  try {
    const head = await responseHead(stream);
    status = head.status;
    const body =
      status === 200
        ? await readBody(stream, { contentEncoding: head.headers['content-encoding'], maxBytes: maxResponseBytes })
        : await readErrorBody(stream, head.headers);
    signal.throwIfAborted();
    return { ...head, body };
  } catch (error) {
    stream.destroy();
    signal.throwIfAborted();
    throw fault ?? storeErrorOf(error, status);
  }
}

/** RFC 9110 section 15.2 allows any number of them, and with it a store that never gets to its answer. */
function limitInterimResponses(stream: GotRequest, onTooMany: (fault: StoreError) => void): void {
  let count = 0;
  stream.once('request', (request: ClientRequest) => {
    request.on('information', () => {
      count += 1;
      if (count !== MAX_INTERIM_RESPONSES + 1) return;
      onTooMany(new StoreError('garbled', `the store sent more than ${MAX_INTERIM_RESPONSES} interim responses`));
      stream.destroy(new Error('too many interim responses'));
    });
  });
}

async function responseHead(stream: GotRequest): Promise<Omit<Reply, 'body'>> {
  await once(stream, 'response');
  const { response } = stream;
  if (response === undefined) throw new Error('a response was announced that is not there');
  return { status: response.statusCode, headers: response.headers };
}

/** The status says that the call failed, whatever becomes of the body: one that cannot be read is taken as empty. */
async function readErrorBody(stream: GotRequest, headers: IncomingHttpHeaders): Promise<Buffer> {
  const timer = setTimeout(() => stream.destroy(), ERROR_BODY_TIMEOUT_MS);
  try {
    return await readBody(stream, { contentEncoding: headers['content-encoding'], maxBytes: MAX_ERROR_BODY_BYTES });
  } catch {
    return Buffer.alloc(0);
  } finally {
    clearTimeout(timer);
  }
}

/** The base address without its trailing slashes. */
function baseOf(baseUrl: string): string {
  const url = URL.parse(baseUrl);
  if (url === null) throw new TypeError("the store's address is no URL");
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('the store speaks http or https');
  if (url.username !== '' || url.password !== '') throw new TypeError("the store's address must not hold credentials");
  if (url.search !== '' || url.hash !== '') throw new TypeError("the store's address must not have a query or a hash");
  return url.origin + url.pathname.replace(/\/+$/, '');
}
