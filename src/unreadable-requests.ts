/** Answers to what never becomes a request of the application: bytes that are no HTTP, clients that are too slow. */
import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** The form of an error at an address (path and query); null where it could not be read. */
export type ErrorBody = (message: string, address: string | null) => object;

/** What has happened on a connection so far. */
interface Connection {
  /** Responses that are still to be sent, in order. */
  readonly pending: ServerResponse[];
  wasAnswered: boolean;
}

export type RefusalReason = 'too-large' | 'too-slow' | 'no-http';

export interface Refusal {
  readonly status: 400 | 405;
  readonly reason: RefusalReason;
  readonly message: string;
  readonly address: string | null;
}

/** What was answered without ever becoming a request. */
export type RefusalReport = Pick<Refusal, 'status' | 'reason'> & { readonly requestId: string };

/** What Node says of bytes that it could not parse: `rawPacket` is the last piece of them. */
interface ClientError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

export class UnreadableRequests {
  readonly #connections = new WeakMap<Duplex, Connection>();
  readonly #errorBody: ErrorBody;
  readonly #onRefused: (report: RefusalReport) => void;

  /** `errorBody`: the form of an error, since no route is there to tell it. */
  constructor(errorBody: ErrorBody, onRefused: (report: RefusalReport) => void = () => {}) {
    this.#errorBody = errorBody;
    this.#onRefused = onRefused;
  }

  /** Keeps account of a response, so that nothing is written into or after it, until the returned function is called. */
  watch(socket: Duplex, response: ServerResponse): () => void {
    const connection = this.#connections.get(socket) ?? this.#begin(socket);
    const { pending } = connection;
    pending.push(response);
    return () => {
      const index = pending.indexOf(response);
      if (index !== -1) pending.splice(index, 1);
      connection.wasAnswered = true;
    };
  }

  #begin(socket: Duplex): Connection {
    const connection: Connection = { pending: [], wasAnswered: false };
    this.#connections.set(socket, connection);
    // Node tells the response that was being sent of its end, but none of those that waited behind it.
    socket.once('close', () => {
      process.nextTick(() => {
        for (const response of connection.pending.splice(0)) response.emit('close');
      });
    });
    return connection;
  }

  /** For Node's `clientError`. A request before it on the connection still gets its answer, and then the connection ends. */
  answer(error: ClientError, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    const last = connection?.pending.at(-1);
    // Where the last request has arrived whole, the fault is in what follows it; else it is in that request itself.
    if (last?.req.complete === true) {
      last.once('close', () => socket.destroy());
      return;
    }
    // An answer to a request that never ended would be taken for one to the next.
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection?.wasAnswered === true;
    if (error.code === 'ECONNRESET' || !socket.writable || isLate) socket.destroy();
    else this.refuse(socket, { status: 400, ...faultOf(error.code), address: addressIn(error.rawPacket) });
  }

  /** Writes an answer by hand and ends the connection. */
  refuse(socket: Duplex, { status, reason, message, address }: Refusal): void {
    const requestId = randomUUID();
    this.#onRefused({ requestId, status, reason });
    const body = JSON.stringify(this.#errorBody(message, address));
    socket.end(
      [
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
        ...(status === 405 ? ['Allow: GET, HEAD'] : []),
        `X-Request-Id: ${requestId}`,
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

/** 400 is the only status for it that the API has (S1), so that the message has to tell what was wrong. */
function faultOf(code: string | undefined): Pick<Refusal, 'reason' | 'message'> {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return { reason: 'too-large', message: 'The request could not be read: its address and headers are too large.' };
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { reason: 'too-slow', message: 'The request could not be read: it did not arrive in time.' };
  }
  return { reason: 'no-http', message: 'The request could not be read: it is not proper HTTP.' };
}

/** `GET /path?query HTTP/1.1`, or as much of it as is there. */
const REQUEST_LINE = /^[A-Z]+ (\/[^ \r\n]*)/;
const MAX_LOOKED_AT_BYTES = 1024;

/** The address of the request that the bytes begin, if they do: those that came before them are not at hand. */
function addressIn(bytes: Buffer | undefined): string | null {
  return REQUEST_LINE.exec(bytes?.toString('latin1', 0, MAX_LOOKED_AT_BYTES) ?? '')?.[1] ?? null;
}
