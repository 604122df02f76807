/** HTTP servers with limits on their clients, and a drain that lets requests in flight finish. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Duplex } from 'node:stream';
import { type ClientErrorReport, type Connection, type ErrorBody, UnparsedRequests } from './unparsed-requests.ts';

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

const DEFAULT_LIMITS = {
  /** For the headers of a request, and for the whole request. */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  /** For an idle connection; longer than that of common balancers, so that they close first. */
  keepAliveTimeoutMs: 75_000,
  maxHeaderBytes: 16_384,
  /** Further connections are closed at once. */
  maxConnections: 10_000,
  /** The same for the connections of one address. */
  maxConnectionsPerAddress: Infinity,
  /** For a client to receive a response, plus the time that the rest of a large one takes at the slowest allowed rate. */
  sendTimeoutMs: 30_000,
  minSendBytesPerMs: 10,
};

export interface ListenerOptions extends Readonly<Partial<typeof DEFAULT_LIMITS>> {
  /** The setting of the port, named if the address cannot be used; its host is set by the setting of the same prefix. */
  readonly portSetting?: 'PORT' | 'ADMIN_PORT';
  /** The body of a response to what could not be read as HTTP, which no route can answer. */
  readonly errorBody: ErrorBody;
  readonly hooks?: ListenerHooks;
}

/** For logs and metrics. Neither may throw. */
export interface ListenerHooks {
  readonly onClientError?: (report: ClientErrorReport) => void;
  /** A connection was closed at once, because as many as there may be were open. */
  readonly onDropped?: () => void;
}

/** How often Node checks for slow clients. Often, so that thousands of them do not end in one turn of the event loop. */
const CHECK_INTERVAL_MS = 250;

export interface Listener {
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  connections(): number;
  /** Stops accepting, lets requests in flight finish for `graceMs`, then closes what is left. */
  close(graceMs: number): Promise<void>;
}

/** Answers a request. Never rejects. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<unknown>;

/** Listens on host and port. Rejects with a StartError that names the setting if the address cannot be used. */
export async function listen(handler: RequestHandler, address: Address, options: ListenerOptions): Promise<Listener> {
  const limits = { ...DEFAULT_LIMITS, ...options };
  const onDropped = (): void => options.hooks?.onDropped?.();
  const unparsed = new UnparsedRequests(options.errorBody, options.hooks?.onClientError);
  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    // Checked here instead: Node's own 400 would have no body.
    requireHostHeader: false,
    // Most requests have no body, and need no stream that is read to its end.
    optimizeEmptyRequests: true,
  });
  const connections = trackConnections(server, limits.maxConnectionsPerAddress, onDropped);
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    trackResponse(response, connections.get(request.socket));
    limitSending(response, limits);
    // A connection that was busy when the server stopped accepting is idle now, and no request will follow on it.
    response.on('close', () => {
      if (!server.listening) server.closeIdleConnections();
    });
    if (hasOneHost(request)) void handler(request, response);
    else unparsed.refuseHost(request);
  };
  server.on('request', serve);
  // An unknown expectation is ignored (RFC 9110 section 10.1.1); Node's own 417 would have no body.
  server.on('checkExpectation', serve);
  server.on('connect', (_, socket) => unparsed.refuseConnect(socket));
  server.on('clientError', (error, socket) => unparsed.onClientError(error, socket, connections.get(socket)));
  server.on('drop', onDropped);
  server.maxConnections = limits.maxConnections;
  try {
    server.listen(address.port, address.host);
    await once(server, 'listening');
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

/**
 * The open connections. Of one address there are at most `maxPerAddress`: one that holds many half-sent requests must not
 * keep others, such as probes, from being answered.
 */
function trackConnections(
  server: Server,
  maxPerAddress: number,
  onDropped: () => void,
): ReadonlyMap<Duplex, Connection> {
  const connections = new Map<Duplex, Connection>();
  const perAddress = new Map<string, number>();
  server.on('connection', (socket) => {
    // Undefined if the client has left already.
    const address = socket.remoteAddress ?? '';
    const count = (perAddress.get(address) ?? 0) + 1;
    if (count > maxPerAddress) {
      onDropped();
      socket.destroy();
      return;
    }
    perAddress.set(address, count);
    const connection: Connection = { pending: [], hasResponded: false };
    connections.set(socket, connection);
    socket.once('close', () => {
      connections.delete(socket);
      const left = (perAddress.get(address) ?? 1) - 1;
      if (left === 0) perAddress.delete(address);
      else perAddress.set(address, left);
      // Node closes the response that was being sent, but none of those that waited behind it.
      process.nextTick(() => {
        for (const response of connection.pending.splice(0)) response.emit('close');
      });
    });
  });
  return connections;
}

/** Keeps account of a response until it closes, so that nothing is written into it or after it. */
function trackResponse(response: ServerResponse, connection: Connection | undefined): void {
  if (connection === undefined) return;
  connection.pending.push(response);
  response.once('close', () => {
    const index = connection.pending.indexOf(response);
    if (index !== -1) connection.pending.splice(index, 1);
    connection.hasResponded = true;
  });
}

/** Closes the connection of a client that does not receive its response in time; it would hold it forever. */
function limitSending(response: ServerResponse, limits: typeof DEFAULT_LIMITS): void {
  response.on('prefinish', () => {
    // Bytes that the system has not taken yet. It takes most responses at once.
    const bytes = response.writableLength;
    if (bytes === 0) return;
    const timeout = setTimeout(() => response.destroy(), limits.sendTimeoutMs + bytes / limits.minSendBytesPerMs);
    response.once('close', () => clearTimeout(timeout));
  });
}

/** RFC 9112 section 3.2: exactly one in HTTP/1.1; HTTP/1.0 may do without. */
function hasOneHost({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  // Names and values take turns.
  const hosts = rawHeaders.filter(
    (text, at) => at % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host',
  ).length;
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0');
}

/** The reason in words, with the settings that change it; any other failure as it is. */
function startErrorOf(error: unknown, { host, port }: Address, portSetting: string): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  const given = `${portSetting}=${port} on ${host}`;
  switch (code) {
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
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

const MAX_DRAIN_MS = 2000;

async function close(server: Server, connections: ReadonlyMap<Duplex, Connection>, graceMs: number): Promise<void> {
  const deadlineMs = performance.now() + MAX_DRAIN_MS;
  await closeIdle(connections, deadlineMs);
  await drainAcceptQueue(server, deadlineMs);
  const closed = once(server, 'close');
  server.close();
  const timeout = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(timeout);
}

/**
 * Closes idle connections one at a time, each just after the event loop has read from all of them: requests that arrive
 * meanwhile are answered, and the listener still accepts clients that have to connect anew. `server.close()` would close
 * all at once, and reset those on which a request had arrived since.
 */
async function closeIdle(connections: ReadonlyMap<Duplex, Connection>, deadlineMs: number): Promise<void> {
  for (const [socket, connection] of connections) {
    if (!isIdle(connection) || performance.now() >= deadlineMs) continue;
    await nextTurn();
    if (isIdle(connection)) socket.destroy();
  }
}

/** A new connection is not: its client is about to send a request. */
function isIdle({ pending, hasResponded }: Connection): boolean {
  return hasResponded && pending.length === 0;
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
  for (; quietTurns < QUIET_TURNS && performance.now() < deadlineMs; quietTurns += 1) await nextTurn();
  server.off('connection', onConnection);
}

/** Throws one StartError that names every address that cannot be used. */
export function throwIfFailed(listeners: readonly PromiseSettledResult<Listener>[]): void {
  const errors = listeners.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  const startErrors = errors.filter((error) => error instanceof StartError);
  if (startErrors.length < errors.length) throw errors.find((error) => !(error instanceof StartError));
  if (startErrors.length > 0) throw new StartError(startErrors.map(({ message }) => message).join('\n'));
}
