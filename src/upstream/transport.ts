/** One GET to the store and its whole answer, bounded in time and size. The only file that sends requests there. */
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { createAgents } from './agents.ts';
import { ACCEPTED_CODING, readBody } from './bounded-body.ts';
import type { Deadline } from './deadline.ts';
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
   * `path` begins with a slash and is relative to the base address. Rejects with a StoreError: the deadline's reason
   * when it is over, else of kind `unreachable` or `garbled`.
   */
  get(path: string, headers: Readonly<Record<string, string>>, deadline: Deadline): Promise<Reply>;
  /** Closes every connection. */
  close(): void;
}

/**
 * Nothing is tried again and no redirect is followed: a repetition needs a budget, which belongs to whatever guards the
 * store. Throws a TypeError where the base address cannot be one.
 */
export function createTransport(options: TransportOptions): Transport {
  const base = baseOf(options.baseUrl);
  const agents = createAgents(options.maxConnections);
  const isEncrypted = base.protocol === 'https:';
  const send = isEncrypted ? httpsRequest : httpRequest;
  const agent = isEncrypted ? agents.https : agents.http;
  const { protocol, hostname, port } = urlToHttpOptions(base);
  const prefix = base.pathname.replace(/\/+$/, '');
  const common = {
    ...(options.token === null ? {} : { authorization: `Bearer ${options.token}` }),
    accept: 'application/json',
    'accept-encoding': ACCEPTED_CODING,
    'user-agent': 'evalgate',
  };
  return {
    get: async (path, headers, deadline) => {
      deadline.throwIfOver();
      const outgoing = { protocol, hostname, port, agent, path: prefix + path, headers: { ...common, ...headers } };
      const request = begun(() => send(outgoing));
      return new Exchange(request, deadline).reply(options.maxResponseBytes);
    },
    close: () => agents.destroy(),
  };
}

/** What can't be sent, such as a header of characters that none may have, is noticed at once. */
function begun(send: () => ClientRequest): ClientRequest {
  try {
    return send();
  } catch (error) {
    throw storeErrorOf(error, null);
  }
}

class Exchange {
  readonly #request: ClientRequest;
  readonly #deadline: Deadline;
  /** The store's, once its headers are there. */
  #status: number | null = null;
  /** Why this side has ended it. */
  #fault: StoreError | null = null;

  constructor(request: ClientRequest, deadline: Deadline) {
    this.#request = request;
    this.#deadline = deadline;
  }

  async reply(maxResponseBytes: number): Promise<Reply> {
    this.#deadline.whenOver(() => void this.#request.destroy());
    try {
      const response = await this.#response();
      const { statusCode: status = 0, headers } = response;
      this.#status = status;
      const body =
        status === 200
          ? await readBody(response, { contentEncoding: headers['content-encoding'], maxBytes: maxResponseBytes })
          : await readErrorBody(response, headers);
      this.#deadline.throwIfOver();
      return { status, headers, body };
    } catch (error) {
      this.#request.destroy();
      this.#deadline.throwIfOver();
      throw this.#fault ?? storeErrorOf(error, this.#status);
    } finally {
      this.#deadline.whenOver(null);
    }
  }

  #response(): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    this.#limitInterimResponses();
    this.#request.once('response', resolve);
    // It stays: what fails later is seen by whoever reads the body, and would end the process if nobody listened here.
    this.#request.on('error', reject);
    this.#request.end();
    return promise;
  }

  /** RFC 9110 section 15.2 allows any number of them, and with it a store that never gets to its answer. */
  #limitInterimResponses(): void {
    let count = 0;
    this.#request.on('information', () => {
      count += 1;
      if (count !== MAX_INTERIM_RESPONSES + 1) return;
      this.#fault = new StoreError('garbled', `the store sent more than ${MAX_INTERIM_RESPONSES} interim responses`);
      this.#request.destroy();
    });
  }
}

/** The status says that the call failed, whatever becomes of the body: one that cannot be read is taken as empty. */
async function readErrorBody(stream: Readable, headers: IncomingHttpHeaders): Promise<Buffer> {
  const timer = setTimeout(() => stream.destroy(), ERROR_BODY_TIMEOUT_MS);
  try {
    return await readBody(stream, { contentEncoding: headers['content-encoding'], maxBytes: MAX_ERROR_BODY_BYTES });
  } catch {
    return Buffer.alloc(0);
  } finally {
    clearTimeout(timer);
  }
}

function baseOf(baseUrl: string): URL {
  const url = URL.parse(baseUrl);
  if (url === null) throw new TypeError("the store's address is no URL");
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('the store speaks http or https');
  if (url.username !== '' || url.password !== '') throw new TypeError("the store's address must not hold credentials");
  if (url.search !== '' || url.hash !== '') throw new TypeError("the store's address must not have a query or a hash");
  return url;
}
