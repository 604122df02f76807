/** HTTP servers with limits on their clients, and a drain that lets requests in flight finish. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { ARRIVAL_MS, type ConnectionHooks, Connections, isIdle } from './connections.ts';
import { type ClientErrorReport, type ErrorBody, UnparsedRequests } from './unparsed-requests.ts';
import { defaultUnsentBytes, Unsent } from './unsent.ts';

/** How long each step of an orderly shutdown may take: requests in flight, admin requests, unsent spans. */
export const IN_FLIGHT_GRACE_MS = 30_000;
export const ADMIN_GRACE_MS = 5000;
export const TRACES_GRACE_MS = 3000;

/** The gateway cannot start with its configuration. The message says why and what to do, and needs no stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

export interface Address {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

const MAX_HEADER_BYTES = 16_384;

const DEFAULT_LIMITS = {
  /** For the headers of a request, and for the whole request. */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  /** For an idle connection; longer than that of common balancers, so that they close first. */
  keepAliveTimeoutMs: 75_000,
  /** For one more, an idle one is closed; if none idles, the new one. */
  maxConnections: 10_000,
  /** Most open connections of one address. */
  maxConnectionsPerAddress: Infinity,
};

export interface ListenerOptions extends Readonly<Partial<typeof DEFAULT_LIMITS>> {
  /** The setting of the port, named if the address cannot be used; its host is set by the setting of the same prefix. */
  readonly portSetting?: 'PORT' | 'ADMIN_PORT';
  /** The body of a response to what could not be read as HTTP, which no route can answer. */
  readonly errorBody: ErrorBody;
  /** Whether a request is refused if it has not exactly one `Host` header; all are by default. */
  readonly isHostNeeded?: (request: IncomingMessage) => boolean;
  readonly hooks?: ListenerHooks;
  /** Accounts for what clients have not taken yet; one that the application shares. */
  readonly unsent?: Unsent;
}

/** For logs and metrics. None may throw. */
export interface ListenerHooks extends ConnectionHooks {
  readonly onClientError?: (report: ClientErrorReport) => void;
}

/** How often Node checks for slow clients. Often, so that thousands of them do not end in one turn of the event loop. */
const CHECK_INTERVAL_MS = 250;

export interface Listener {
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  connections(): number;
  /**
   * Stops accepting, lets requests in flight finish for `graceMs`, then closes what is left. Connections on which no request has
   * arrived whole are closed after two seconds.
   */
  close(graceMs: number): Promise<void>;
}

/** Answers a request. Never rejects. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<unknown>;

/** Listens on host and port. Rejects with a StartError that names the setting if the address cannot be used. */
export async function listen(handler: RequestHandler, address: Address, options: ListenerOptions): Promise<Listener> {
  const limits = { ...DEFAULT_LIMITS, ...options };
  const {
    hooks = {},
    isHostNeeded = () => true,
    unsent = new Unsent({ maxBytes: defaultUnsentBytes(), nowMs: () => performance.now() }),
  } = options;
  const unparsed = new UnparsedRequests(options.errorBody, hooks.onClientError);
  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    // Checked here instead: Node's own 400 would have no body.
    requireHostHeader: false,
    // Most requests have no body, and need no stream that is read to its end.
    optimizeEmptyRequests: true,
  });
  const begin = (request: IncomingMessage, response: ServerResponse): void => {
    response.on('prefinish', () => unsent.watchEnd(response, request.socket.remoteAddress ?? ''));
    if (hasOneHost(request) || !isHostNeeded(request)) void handler(request, response);
    else unparsed.refuseHost(request);
  };
  const connections = new Connections(server, limits, hooks, begin);
  const serve = (request: IncomingMessage, response: ServerResponse): void => connections.serve(request, response);
  server.on('request', serve);
  // An unknown expectation is ignored (RFC 9110 section 10.1.1); Node's own 417 would have no body.
  server.on('checkExpectation', serve);
  server.on('connect', (_, socket) => unparsed.refuseConnect(socket));
  server.on('clientError', (error, socket) => unparsed.onClientError(error, socket, connections.get(socket)));
  try {
    await bind(server, address);
  } catch (error) {
    throw startErrorOf(error, address, options.portSetting ?? 'PORT');
  }
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('The server listens on no port');
  return {
    url: `http://${urlHost(address.host)}:${bound.port}`,
    connections: () => connections.size,
    close: (graceMs) => close(server, connections, graceMs),
  };
}

/** `::` takes clients of IPv6 and IPv4; of IPv4 only, if the system has no IPv6. */
async function bind(server: Server, { host, port }: Address): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    if (host !== '::' || codeOf(error) !== 'EAFNOSUPPORT') throw error;
    server.listen(port, '0.0.0.0');
    await once(server, 'listening');
  }
}

/** RFC 9112 section 3.2: exactly one in HTTP/1.1; HTTP/1.0 may do without. */
function hasOneHost({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  // Names and values take turns.
  const hosts = rawHeaders.filter(
    (text, at) => at % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host',
  ).length;
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0');
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null;
}

/** The reason in words, with the settings that change it; any other failure as it is. */
function startErrorOf(error: unknown, { host, port }: Address, portSetting: string): unknown {
  const given = `${portSetting}=${port} on ${host}`;
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return new StartError(
        `${given} is taken: something listens there already. Stop it, or set ${portSetting} to another.`,
      );
    case 'EACCES':
      return new StartError(`${given} is not allowed to this user. Set ${portSetting} to a port above 1023.`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND': {
      const hostSetting = portSetting.replace('PORT', 'HOST');
      return new StartError(`${hostSetting}=${host} is no address of this machine. Set ${hostSetting} to one that is.`);
    }
    default:
      return error;
  }
}

function urlHost(host: string): string {
  // `::` takes IPv4 too, and this address is also right outside of a container whose port is published there.
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

const MAX_DRAIN_MS = 2000;

async function close(server: Server, connections: Connections, graceMs: number): Promise<void> {
  const deadlineMs = performance.now() + MAX_DRAIN_MS;
  await closeIdle(connections, deadlineMs);
  await drainAcceptQueue(server, deadlineMs);
  const closed = once(server, 'close');
  server.close();
  // Balancers connect ahead of their requests; a server that is closing does not look for slow clients any more.
  const arrival = setTimeout(() => connections.closeUnused(), ARRIVAL_MS);
  const grace = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(arrival);
  clearTimeout(grace);
}

/**
 * Closes idle connections one at a time, each just after the event loop has read from all of them: requests that arrive
 * meanwhile are answered, and the listener still accepts clients that have to connect anew. `server.close()` would close
 * all at once, and reset those on which a request had arrived since.
 */
async function closeIdle(connections: Connections, deadlineMs: number): Promise<void> {
  for (const [socket, connection] of connections) {
    if (!isIdle(connection) || performance.now() >= deadlineMs) continue;
    await setImmediate();
    if (isIdle(connection)) socket.destroy();
  }
}

/** One turn of the event loop accepts a connection, the next one reads from it. */
const QUIET_TURNS = 3;

/**
 * Resolves when the system's queue of new connections is empty and their requests have begun: the system resets the
 * connections that are left in it when a server stops listening. A busy process can have many waiting, since it is late
 * for them as well.
 */
async function drainAcceptQueue(server: Server, deadlineMs: number): Promise<void> {
  let quietTurns = 0;
  const onConnection = (): void => {
    quietTurns = -1;
  };
  server.on('connection', onConnection);
  for (; quietTurns < QUIET_TURNS && performance.now() < deadlineMs; quietTurns += 1) await setImmediate();
  server.off('connection', onConnection);
}

/**
 * Resolves with both listeners. If one of them fails, the other is closed; rejects with one StartError that names every address
 * that cannot be used.
 */
export async function bothOrNone<A extends Listener, B extends Listener>(
  first: Promise<A>,
  second: Promise<B>,
): Promise<readonly [A, B]> {
  const [one, other] = await Promise.allSettled([first, second]);
  if (one.status === 'fulfilled' && other.status === 'fulfilled') return [one.value, other.value];
  const errors: unknown[] = [];
  for (const settled of [other, one]) {
    if (settled.status === 'fulfilled') await settled.value.close(0);
    else errors.push(settled.reason);
  }
  const startErrors = errors.filter((error) => error instanceof StartError);
  if (startErrors.length < errors.length) throw errors.find((error) => !(error instanceof StartError));
  throw new StartError(startErrors.map(({ message }) => message).join('\n'));
}
