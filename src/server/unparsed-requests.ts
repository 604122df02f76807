/** Answers what never becomes a request of the application: bytes that are not HTTP, and clients that are too slow. */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Connection } from './connections.ts';

/** The body of an error for a request target (path and query); null if the target could not be read. */
export type ErrorBody = (message: string, target: string | null) => object;

/** A response that was sent without a request of the application. */
export interface ClientErrorReport {
  readonly requestId: string;
  readonly status: 400 | 405;
  readonly reason: 'too-large' | 'too-slow' | 'no-http';
}

/** The error of Node's `clientError`: `rawPacket` is the last piece of the bytes that it could not parse. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

interface Refusal extends Omit<ClientErrorReport, 'requestId'> {
  readonly message: string;
}

/** The message says what was wrong (S1: 400 is the only status that the API has for these). */
function unreadable(reason: Refusal['reason'], why: string): Refusal {
  return { status: 400, reason, message: `The request could not be read: ${why}.` };
}

/** By the code of Node's error. */
const FAULTS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: unreadable('too-large', 'its address and headers are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: unreadable('too-slow', 'it did not arrive in time'),
};
const NO_HTTP = unreadable('no-http', 'it is not proper HTTP');
const NO_HOST: Refusal = { status: 400, reason: 'no-http', message: 'The request must have one Host header.' };
const CONNECT: Refusal = { status: 405, reason: 'no-http', message: 'CONNECT is not allowed here.' };

/** `GET /path?query HTTP/1.1`, or the part of it that has arrived. */
const REQUEST_LINE = /^[A-Z]+ (\/[^ \r\n]*)/;
const MAX_REQUEST_LINE_BYTES = 1024;

export class UnparsedRequests {
  readonly #errorBody: ErrorBody;
  readonly #onError: (report: ClientErrorReport) => void;

  constructor(errorBody: ErrorBody, onError: (report: ClientErrorReport) => void = () => {}) {
    this.#errorBody = errorBody;
    this.#onError = onError;
  }

  /** For Node's `clientError`. Requests before it on the connection are still answered; then the connection ends. */
  onClientError({ code = '', rawPacket }: ClientError, socket: Duplex, connection: Connection | undefined): void {
    const last = connection?.pending.at(-1);
    // If the last request has arrived whole, the fault is in what follows it; else it is in that request itself.
    if (last?.req.complete === true) {
      last.once('close', () => socket.destroy());
      return;
    }
    // A response to a request that never ended would be taken for that of the next one.
    const isLate = code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection?.hasResponded === true;
    if (code === 'ECONNRESET' || !socket.writable || isLate) {
      socket.destroy();
      return;
    }
    const bytes = connection?.head ?? rawPacket;
    const start = bytes?.toString('latin1', 0, MAX_REQUEST_LINE_BYTES) ?? '';
    this.#refuse(socket, FAULTS[code] ?? NO_HTTP, REQUEST_LINE.exec(start)?.[1]);
  }

  /** Refuses a request without exactly one Host header. */
  refuseHost({ socket, url }: IncomingMessage): void {
    this.#refuse(socket, NO_HOST, url);
  }

  refuseConnect(socket: Duplex): void {
    this.#refuse(socket, CONNECT);
  }

  /** Writes a whole response to the socket, as Node's documentation of `clientError` shows it, and ends the connection. */
  #refuse(socket: Duplex, { status, reason, message }: Refusal, target: string | null = null): void {
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
