/**
 * The open connections of a listener. It bounds what one client can cost the others by its connections:
 * - As many are open as may be, in all and per address. For a new one, one that idles is closed: of the address that has
 *   most of them, the one that has idled longest.
 * - A few requests are begun per connection; pipelined ones (RFC 9112 section 9.3.2) behind them are begun one by one as
 *   these are answered, each in a turn of its own. A connection with far more unanswered requests is closed.
 * - One new connection is read per turn of the event loop, because Node parses all that it reads from one at once: 64 kB,
 *   which may be 2,400 requests.
 *
 * A connection that has been read before can still send as much at any time, and hold the event loop while that is parsed and
 * thrown away, some 30 ms, and so can many of them together; then they are closed.
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
  /** How many bytes had been read from it when it began to idle: if there are more now, a request is on its way. */
  bytesReadIdle: number;
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
  /** New connections that are not read yet. */
  readonly #unread: Socket[] = [];
  #isReading = false;
  #isNewestNext = false;

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
    // What follows in the bytes that closed the connection.
    if (connection === undefined || socket.destroyed) return;
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
    const connection: Connection = { address, pending: [], begun: 0, hasResponded: false, bytesReadIdle: 0 };
    this.#open.set(socket, connection);
    socket.once('close', () => {
      // One that was closed for another is forgotten already.
      this.#forget(socket, connection);
      // Node closes the response that was being sent, but none of those that waited behind it.
      process.nextTick(() => {
        for (const response of connection.pending.splice(0)) response.emit('close');
      });
    });
    // A tick later, because Node has scheduled a resume for this one when it gave the connection its parser.
    process.nextTick(() => socket.pause());
    this.#unread.push(socket);
    if (this.#isReading) return;
    this.#isReading = true;
    setImmediate(() => this.#readNext());
  }

  #readNext(): void {
    // Oldest and newest by turns, so that nobody waits behind all that came before.
    this.#isNewestNext = !this.#isNewestNext;
    const socket = this.#isNewestNext ? this.#unread.pop() : this.#unread.shift();
    socket?.resume();
    // In the next turn, whatever had arrived has been read.
    setImmediate(() => {
      const connection = socket && this.#open.get(socket);
      if (socket && connection?.pending.length === 0 && !connection.hasResponded)
        this.#enterIdle(socket, connection, 0);
      this.#isReading = this.#unread.length > 0;
      if (this.#isReading) this.#readNext();
    });
  }

  #onResponded(socket: Socket, connection: Connection, response: ServerResponse): void {
    // A connection that was busy when the server stopped accepting is idle now, and no request will follow on it.
    if (!this.#server.listening) this.#server.closeIdleConnections();
    const { pending } = connection;
    const index = pending.indexOf(response);
    if (index === -1) return;
    pending.splice(index, 1);
    connection.hasResponded = true;
    if (index < connection.begun) connection.begun -= 1;
    if (pending.length === 0) this.#enterIdle(socket, connection, socket.bytesRead);
    // Others have their turn before the next one of this connection.
    else if (pending.length > connection.begun) setImmediate(() => this.#beginNext(connection));
  }

  #beginNext(connection: Connection): void {
    const next = connection.pending[connection.begun];
    if (next === undefined || connection.begun === MAX_BEGUN) return;
    connection.begun += 1;
    this.#begin(next.req, next);
  }

  #enterIdle(socket: Socket, connection: Connection, bytesRead: number): void {
    if (socket.destroyed) return;
    const { address } = connection;
    connection.bytesReadIdle = bytesRead;
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
    for (const socket of (address === undefined ? undefined : this.#idle.get(address)) ?? []) {
      const connection = this.#open.get(socket);
      if (connection === undefined) continue;
      this.#leaveIdle(socket, connection);
      // A request that has not arrived whole is under way too; the time for it is bounded.
      if (socket.bytesRead > connection.bytesReadIdle) continue;
      this.#cut(socket, 'idle');
      return true;
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

/** A new connection is not idle: its client is about to send a request. */
export function isIdle({ pending, hasResponded }: Connection): boolean {
  return hasResponded && pending.length === 0;
}
