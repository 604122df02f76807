/** Answers to what never becomes a request of the application: bytes that are no HTTP, clients that are too slow. */
import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** What has happened on a connection so far. */
interface Connection {
  /** Responses that are still to be sent. */
  readonly pending: Set<ServerResponse>;
  wasAnswered: boolean;
}

export class UnreadableRequests {
  readonly #connections = new WeakMap<Duplex, Connection>();
  readonly #errorBody: (message: string) => object;

  /** `errorBody`: the form of an error, since no route is there to tell it. */
  constructor(errorBody: (message: string) => object) {
    this.#errorBody = errorBody;
  }

  /** Keeps account of a response, so that nothing is written into or after it. */
  watch(socket: Duplex, response: ServerResponse): void {
    const connection = this.#connections.get(socket) ?? { pending: new Set(), wasAnswered: false };
    this.#connections.set(socket, connection);
    connection.pending.add(response);
    response.once('close', () => {
      connection.pending.delete(response);
      connection.wasAnswered = true;
    });
  }

  /** For Node's `clientError`. A request before it on the connection still gets its answer, and then the connection ends. */
  answer(error: NodeJS.ErrnoException, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    const [last] = [...(connection?.pending ?? [])].toReversed();
    // Where the last request has arrived whole, the fault is in what follows it; else it is in that request itself.
    if (last?.req.complete === true) {
      last.once('close', () => socket.destroy());
      return;
    }
    const status = statusOf(error.code);
    // An answer to a request that never ended would be taken for one to the next.
    const isLate = status === 408 && connection?.wasAnswered === true;
    if (error.code === 'ECONNRESET' || !socket.writable || isLate) socket.destroy();
    else this.refuse(socket, status, `The request could not be read: ${reasonOf(status)}.`);
  }

  /** Writes an answer by hand and ends the connection. */
  refuse(socket: Duplex, status: number, message: string): void {
    const body = JSON.stringify(this.#errorBody(message));
    socket.end(
      [
        `HTTP/1.1 ${status} ${reasonOf(status)}`,
        ...(status === 405 ? ['Allow: GET, HEAD'] : []),
        `X-Request-Id: ${randomUUID()}`,
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

function statusOf(code: string | undefined): number {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return 400;
}

function reasonOf(status: number): string {
  return STATUS_CODES[status] ?? 'Bad Request';
}
