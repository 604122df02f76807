/**
 * The open connections of a listener. It bounds what one client can cost the others by its connections:
 * - As many are open as may be, in all and per address. For a new one, one that idles is closed: of the address that has
 *   most of them, the one that has idled longest. One that has sent only a part of a request for two seconds idles, too.
 * - Node parses all that it gets from a connection at once, and it may get 64 kB: 2,400 requests. So what arrives is handed on
 *   in pieces, one of them per turn of the event loop, and none while a request that has arrived whole is unanswered.
 * - A few of the requests in a piece, pipelined ones (RFC 9112 section 9.3.2), are begun; the others one by one as these are
 *   answered, each in a turn of its own. A connection with far more of them is closed.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface Connection {
  readonly address: string;
  /** Responses that are still to be sent, in order. The first of them are begun. */
  readonly pending: ServerResponse[];
  begun: number;
  hasResponded: boolean;
  /** When the first byte of a request came that has not arrived whole; null if none has. Milliseconds since the start. */
  begunAtMs: number | null;
  /** Whether its next piece waits for its turn. */
  isQueued: boolean;
  /** How many requests have been parsed. */
  parsed: number;
  /** The beginning of a request that has not arrived whole; null if it may lie within a piece. */
  head: Buffer | null;
}

/** Why the server closed a connection before its client did. */
export const CUT_REASONS = ['idle', 'pipelined', 'stalled', 'slow', 'unsent'] as const;
export type CutReason = (typeof CUT_REASONS)[number];

export interface ConnectionLimits {
  readonly maxConnections: number;
  readonly maxConnectionsPerAddress: number;
}

export interface ConnectionHooks {
  /** A new connection was closed at once, because as many as there may be were open, and none of them idle. */
  readonly onDropped?: () => void;
  readonly onCut?: (reason: CutReason) => void;
}

/** More unanswered requests of a connection wait; no client that is known sends any. */
const MAX_BEGUN = 4;
/** Beyond this, a connection is closed. */
const MAX_PIPELINED = 64;

/** Clients send the head of a request at once: one that takes longer to arrive keeps nobody else out. */
export const ARRIVAL_MS = 2000;
/** So many idle connections on which a request arrives are passed over in search of one to close. */
const MAX_ARRIVING = 16;

/** At most so much is parsed of a connection in its turn. Shorter pieces, as most requests are, need no turn. */
const PIECE_BYTES = 4096;
const SMALL_PIECE_BYTES = 1024;

/** Begins the work for a request. */
type Begin = (request: IncomingMessage, response: ServerResponse) => void;

export class Connections {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #hooks: ConnectionHooks;
  readonly #begin: Begin;
  readonly #open = new Map<Duplex, Connection>();
  readonly #perAddress = new Map<string, number>();
  /** By address, those that have idled longest first. */
  readonly #idle = new Map<string, Set<Socket>>();
  /** Those of which a piece waits for its turn. */
  readonly #queue: Socket[] = [];

  constructor(server: Server, limits: ConnectionLimits, hooks: ConnectionHooks, begin: Begin) {
    this.#server = server;
    this.#limits = limits;
    this.#hooks = hooks;
    this.#begin = begin;
    server.on('connection', (socket) => this.#accept(socket));
  }

  get size(): number {
    return this.#open.size;
  }

  get(socket: Duplex): Connection | undefined {
    return this.#open.get(socket);
  }

  [Symbol.iterator](): IterableIterator<[Duplex, Connection]> {
    return this.#open.entries();
  }

  /** Begins the work for a request, at once or when those before it on its connection are answered. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#open.get(socket);
    // Requests that follow in the bytes that closed the connection are ignored.
    if (connection === undefined || socket.destroyed) return;
    connection.parsed += 1;
    connection.begunAtMs = null;
    if (connection.pending.length === MAX_PIPELINED) {
      this.#cut(socket, 'pipelined');
      return;
    }
    connection.pending.push(response);
    this.#leaveIdle(socket, connection);
    response.on('close', () => this.#onResponded(socket, connection, response));
    if (connection.begun === MAX_BEGUN) return;
    connection.begun += 1;
    this.#begin(request, response);
  }

  /** Closes those without a request that is under way. */
  closeUnused(): void {
    for (const [socket, { pending }] of this.#open) if (pending.length === 0) socket.destroy();
  }

  #accept(socket: Socket): void {
    // Undefined if the client has left already.
    const address = socket.remoteAddress ?? '';
    const count = this.#perAddress.get(address) ?? 0;
    const { maxConnections, maxConnectionsPerAddress } = this.#limits;
    const isRoom =
      (count < maxConnectionsPerAddress || this.#closeIdle(address)) &&
      (this.#open.size < maxConnections || this.#closeIdle(this.#mostIdle()));
    if (!isRoom) {
      this.#hooks.onDropped?.();
      socket.destroy();
      return;
    }
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    const connection: Connection = {
      address,
      pending: [],
      begun: 0,
      hasResponded: false,
      begunAtMs: null,
      isQueued: false,
      parsed: 0,
      head: null,
    };
    this.#open.set(socket, connection);
    socket.once('close', () => {
      // One that was closed for another is forgotten already.
      this.#forget(socket, connection);
      // Node closes the response that was being sent, but none of those that waited behind it.
      process.nextTick(() => {
        for (const response of connection.pending.splice(0)) response.emit('close');
      });
    });
    // With a listener for it, nothing is parsed before it is read here.
    socket.on('readable', () => this.#onReadable(socket, connection));
    // Two turns later, all bytes that came with it have been read.
    setImmediate(() =>
      setImmediate(() => {
        if (connection.pending.length === 0 && !connection.hasResponded) this.#enterIdle(socket, connection);
      }),
    );
  }

  #onReadable(socket: Socket, connection: Connection): void {
    const { pending, isQueued } = connection;
    const { readableLength } = socket;
    // The end of what a client sends is noticed at any time: most that leave are noticed by it.
    if (readableLength === 0) {
      socket.read();
      return;
    }
    connection.begunAtMs ??= performance.now();
    if (isQueued || !(pending.length === 0 || isIncomplete(pending))) return;
    if (readableLength <= SMALL_PIECE_BYTES) {
      readPiece(socket, connection, readableLength);
      return;
    }
    connection.isQueued = true;
    if (this.#queue.push(socket) === 1) setImmediate(() => this.#readNext());
  }

  #readNext(): void {
    const socket = this.#queue.shift();
    const connection = socket && this.#open.get(socket);
    if (socket && connection) {
      connection.isQueued = false;
      readPiece(socket, connection, Math.min(PIECE_BYTES, socket.readableLength));
      this.#onReadable(socket, connection);
    }
    if (this.#queue.length > 0) setImmediate(() => this.#readNext());
  }

  #onResponded(socket: Socket, connection: Connection, response: ServerResponse): void {
    // A connection that was busy when the server stopped accepting is idle now, and no request will follow on it.
    if (!this.#server.listening) this.#server.closeIdleConnections();
    const { pending } = connection;
    const index = pending.indexOf(response);
    if (index === -1) return;
    pending.splice(index, 1);
    connection.hasResponded = true;
    connection.begunAtMs = null;
    if (index < connection.begun) connection.begun -= 1;
    if (pending.length === 0) {
      this.#enterIdle(socket, connection);
      if (socket.readableLength > 0) this.#onReadable(socket, connection);
    }
    // Others have their turn before the next one of this connection.
    else if (pending.length > connection.begun) setImmediate(() => this.#beginNext(connection));
  }

  #beginNext(connection: Connection): void {
    const next = connection.pending[connection.begun];
    if (next === undefined || connection.begun === MAX_BEGUN) return;
    connection.begun += 1;
    this.#begin(next.req, next);
  }

  #enterIdle(socket: Socket, { address }: Connection): void {
    if (socket.destroyed) return;
    const idle = this.#idle.get(address);
    if (idle === undefined) this.#idle.set(address, new Set([socket]));
    else idle.add(socket);
  }

  #leaveIdle(socket: Socket, { address }: Connection): void {
    const idle = this.#idle.get(address);
    if (idle?.delete(socket) === true && idle.size === 0) this.#idle.delete(address);
  }

  /** The address that has most idle connections; undefined if there are none. */
  #mostIdle(): string | undefined {
    let most: string | undefined;
    let count = 0;
    for (const [address, { size }] of this.#idle) if (size > count) [most, count] = [address, size];
    return most;
  }

  /** Closes the connection of that address that has idled longest; false if it has none. */
  #closeIdle(address: string | undefined): boolean {
    const nowMs = performance.now();
    let arriving = 0;
    for (const socket of (address === undefined ? undefined : this.#idle.get(address)) ?? []) {
      const begunAtMs = this.#open.get(socket)?.begunAtMs ?? Number.NEGATIVE_INFINITY;
      // A request that has just begun to arrive is under way too.
      if (nowMs - begunAtMs >= ARRIVAL_MS) {
        this.#cut(socket, 'idle');
        return true;
      }
      arriving += 1;
      if (arriving === MAX_ARRIVING) return false;
    }
    return false;
  }

  #cut(socket: Socket, reason: CutReason): void {
    this.#hooks.onCut?.(reason);
    const connection = this.#open.get(socket);
    if (connection !== undefined) this.#forget(socket, connection);
    socket.destroy();
  }

  #forget(socket: Socket, connection: Connection): void {
    this.#leaveIdle(socket, connection);
    if (!this.#open.delete(socket)) return;
    const { address } = connection;
    const left = (this.#perAddress.get(address) ?? 1) - 1;
    if (left === 0) this.#perAddress.delete(address);
    else this.#perAddress.set(address, left);
  }
}

/** Node's parser gets what `read` returns, and has parsed it by then. */
function readPiece(socket: Socket, connection: Connection, bytes: number): void {
  const { parsed } = connection;
  const piece: unknown = socket.read(bytes);
  if (connection.parsed > parsed) connection.head = null;
  else if (piece instanceof Buffer) connection.head ??= piece;
}

/** Whether the only request has not arrived whole. */
function isIncomplete([response, ...others]: readonly ServerResponse[]): boolean {
  return response?.req.complete === false && others.length === 0;
}

/** A new connection is not idle: its client is about to send a request. */
export function isIdle({ pending, hasResponded }: Connection): boolean {
  return hasResponded && pending.length === 0;
}
