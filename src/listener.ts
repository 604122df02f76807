/** A node:http server with bounds on its clients, and an end that lets what is in flight finish. */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { letIn } from './let-in.ts';
import { type ErrorBody, type RefusalReport, UnreadableRequests } from './unreadable-requests.ts';

export interface ListenerOptions extends Partial<ListenerLimits> {
  /** The body of the answer to what could not be read as HTTP, which no route can answer. */
  readonly errorBody: ErrorBody;
  readonly hooks?: ListenerHooks;
}

/** They report, for logs and metrics, and must not throw. */
export interface ListenerHooks {
  readonly onRefused?: (report: RefusalReport) => void;
  /** A connection was closed as it came, because there were as many as there may be. */
  readonly onDropped?: () => void;
}

interface ListenerLimits {
  /** How long a client may take over a request's headers. */
  readonly headersTimeoutMs: number;
  /** How long it may take over the whole request. */
  readonly requestTimeoutMs: number;
  /** How long an idle connection is kept; longer than common balancers keep theirs, so that they close first. */
  readonly keepAliveTimeoutMs: number;
  readonly maxHeaderBytes: number;
  /** Most connections at a time; further ones are closed as they come. */
  readonly maxConnections: number;
  /** How long a client may take over any answer, and how fast it has to take the rest of a large one. */
  readonly sendTimeoutMs: number;
  readonly minSendBytesPerMs: number;
}

const DEFAULT_LIMITS: ListenerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  keepAliveTimeoutMs: 75_000,
  maxHeaderBytes: 16_384,
  maxConnections: 10_000,
  sendTimeoutMs: 30_000,
  minSendBytesPerMs: 10,
};

/** How often slow clients are looked for. Often, so that thousands of them don't end in one turn of the event loop. */
const CHECK_INTERVAL_MS = 250;

export interface Listener {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly port: number;
  /** How many are open. */
  connections(): number;
  /** Stops accepting, lets requests in flight finish for `graceMs`, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

/** Listens on host and port (0: any free one). Rejects with the system's error where that can't be had. */
export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => Promise<unknown>,
  address: { readonly host: string; readonly port: number },
  options: ListenerOptions,
): Promise<Listener> {
  const limits = { ...DEFAULT_LIMITS, ...options };
  const unreadable = new UnreadableRequests(options.errorBody, options.hooks?.onRefused);
  const server = createServer(serverOptions(limits), (request, response) => {
    const ended = unreadable.watch(request.socket, response);
    boundSending(response, limits);
    response.on('close', () => {
      ended();
      // A connection that was busy when the server stopped accepting is idle now, and nothing more is to come on it.
      if (!server.listening) server.closeIdleConnections();
    });
    if (!hasOneHost(request)) {
      const message = 'The request must have one Host header.';
      unreadable.refuse(request.socket, { status: 400, reason: 'no-http', message, address: request.url ?? null });
      return;
    }
    // A Koa application's promise never rejects: what fails outside its layers goes to its `error` event.
    void handler(request, response);
  });
  server.maxConnections = limits.maxConnections;
  const connections = countConnections(server);
  server.on('drop', () => options.hooks?.onDropped?.());
  // An expectation that isn't known is ignored (RFC 9110 section 10.1.1); Node's own answer would have no body.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('connect', (_, socket) =>
    unreadable.refuse(socket, {
      status: 405,
      reason: 'no-http',
      message: 'CONNECT is not allowed here.',
      address: null,
    }),
  );
  server.on('clientError', (error, socket) => unreadable.answer(error, socket));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const port = portOf(server);
  return {
    url: `http://${urlHost(address.host)}:${port}`,
    port,
    connections,
    close: (graceMs) => close(server, graceMs),
  };
}

function serverOptions(limits: ListenerLimits): ServerOptions {
  return {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    // Node's own refusal would have no body.
    requireHostHeader: false,
    // Most requests have no body: without this, each is a stream all the same, which is read to its end.
    optimizeEmptyRequests: true,
  };
}

function countConnections(server: Server): () => number {
  let open = 0;
  server.on('connection', (socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
  });
  return () => open;
}

/** A client that doesn't take its answer, or takes it by drops, loses its connection: else it would hold it for ever. */
function boundSending(response: ServerResponse, limits: ListenerLimits): void {
  response.on('prefinish', () => {
    // What the system has not taken yet. It takes most answers at once.
    const bytes = response.writableLength;
    if (bytes === 0) return;
    const cut = setTimeout(() => response.destroy(), limits.sendTimeoutMs + bytes / limits.minSendBytesPerMs);
    response.once('close', () => clearTimeout(cut));
  });
}

const HOST = 'host';

/** RFC 9112 section 3.2: exactly one in HTTP/1.1; HTTP/1.0 may do without. */
function hasOneHost({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === HOST.length && name.toLowerCase() === HOST) count += 1;
  }
  return count === 1 || (count === 0 && httpVersion === '1.0');
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server listens on no port');
  return address.port;
}

function urlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

async function close(server: Server, graceMs: number): Promise<void> {
  await letIn(server);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(cut);
}
