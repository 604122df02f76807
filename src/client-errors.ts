/** Responses to what never becomes a request of the application: bytes that are not HTTP, clients that are too slow. */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** The body of an error for a request target (path and query); null if the target could not be read. */
export type ErrorBody = (message: string, target: string | null) => object;

/** A response that was sent without a request of the application. */
export interface ClientErrorReport {
  readonly requestId: string;
  readonly status: 400 | 405;
  readonly reason: 'too-large' | 'too-slow' | 'no-http';
}

interface Refusal extends Omit<ClientErrorReport, 'requestId'> {
  readonly message: string;
  readonly target: string | null;
}

interface Connection {
  /** Responses that are still to be sent, in order. */
  readonly pending: ServerResponse[];
  hasResponded: boolean;
}

/** The error of Node's `clientError`: `rawPacket` is the last piece of the bytes that it could not parse. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

export class ClientErrors {
  readonly #connections = new WeakMap<Duplex, Connection>();
  readonly #errorBody: ErrorBody;
  readonly #onError: (report: ClientErrorReport) => void;

  constructor(errorBody: ErrorBody, onError: (report: ClientErrorReport) => void = () => {}) {
    this.#errorBody = errorBody;
    this.#onError = onError;
  }

  /** Keeps account of a response until it closes, so that nothing is written into it or after it. */
  track(socket: Duplex, response: ServerResponse): void {
    const connection = this.#connections.get(socket) ?? this.#open(socket);
    const { pending } = connection;
    pending.push(response);
    response.once('close', () => {
      const index = pending.indexOf(response);
      if (index !== -1) pending.splice(index, 1);
      connection.hasResponded = true;
    });
  }

  #open(socket: Duplex): Connection {
    const connection: Connection = { pending: [], hasResponded: false };
    this.#connections.set(socket, connection);
    // When a connection ends, Node closes the response that was being sent, but none of those that waited behind it.
    socket.once('close', () => {
      process.nextTick(() => {
        for (const response of connection.pending.splice(0)) response.emit('close');
      });
    });
    return connection;
  }

  /** For Node's `clientError`. Requests before it on the connection are still answered; then the connection ends. */
  handle(error: ClientError, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    const last = connection?.pending.at(-1);
    // If the last request has arrived whole, the fault is in what follows it; else it is in that request itself.
    if (last?.req.complete === true) {
      last.once('close', () => socket.destroy());
      return;
    }
    // A response to a request that never ended would be taken for that of the next one.
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection?.hasResponded === true;
    if (error.code === 'ECONNRESET' || !socket.writable || isLate) socket.destroy();
    else this.#refuse(socket, { status: 400, ...faultOf(error.code), target: targetIn(error.rawPacket) });
  }

  /** A request without exactly one Host header. */
  refuseHost({ socket, url }: IncomingMessage): void {
    const message = 'The request must have one Host header.';
    this.#refuse(socket, { status: 400, reason: 'no-http', message, target: url ?? null });
  }

  refuseConnect(socket: Duplex): void {
    this.#refuse(socket, { status: 405, reason: 'no-http', message: 'CONNECT is not allowed here.', target: null });
  }

  /** Writes a whole response to the socket, as Node's documentation of `clientError` shows it, and ends the connection. */
  #refuse(socket: Duplex, { status, reason, message, target }: Refusal): void {
    const requestId = randomUUID();
    this.#onError({ requestId, status, reason });
    const body = JSON.stringify(this.#errorBody(message, target));
    socket.end(
      [
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
        ...(status === 405 ? ['Allow: GET, HEAD'] : []),
        `X-Request-Id: ${requestId}`,
        `X-Error-Code: ${status === 405 ? 'method_not_allowed' : 'request_unreadable'}`,
        'Vary: Authorization, Accept-Encoding',
        'Content-Type: application/json; charset=utf-8',
        `Content-Length: ${Buffer.byteLength(body)}`,
        'Cache-Control: no-store',
        'Connection: close',
        '',
        body,
      ].join('\r\n'),
    );
  }
}

/** 400 is the only status that the API has for these (S1), so the message says what was wrong. */
function faultOf(code: string | undefined): Pick<Refusal, 'reason' | 'message'> {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return { reason: 'too-large', message: 'The request could not be read: its address and headers are too large.' };
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { reason: 'too-slow', message: 'The request could not be read: it did not arrive in time.' };
  }
  return { reason: 'no-http', message: 'The request could not be read: it is not proper HTTP.' };
}

/** `GET /path?query HTTP/1.1`, or the part of it that has arrived. */
const REQUEST_LINE = /^[A-Z]+ (\/[^ \r\n]*)/;
const MAX_REQUEST_LINE_BYTES = 1024;

/** The target of the request that the bytes begin, if they begin one: earlier bytes are not available. */
function targetIn(bytes: Buffer | undefined): string | null {
  return REQUEST_LINE.exec(bytes?.toString('latin1', 0, MAX_REQUEST_LINE_BYTES) ?? '')?.[1] ?? null;
}
