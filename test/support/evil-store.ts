/**
 * A store that misbehaves below the level at which an HTTP library would let it: a raw TCP server that answers every
 * request by the behaviour in force. `well` answers properly, so that a test can see a client recover.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

import { anEvaluation, WORKSPACE_B } from './records.ts';
import { listenOnLoopback, type RunningServer } from './loopback.ts';

/** Answers one request on its socket. `target` is the request's path and query. */
type Behaviour = (socket: Socket, target: string) => void;

const MEGABYTE = 1024 * 1024;

/** What the bundled behaviours are, by name. */
export const EVIL_BEHAVIOURS = {
  well: (socket, target) => {
    socket.write(whole(answerTo(target)));
  },
  /** One gigabyte of spaces in one megabyte of gzip, over and over. */
  'gzip bomb': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n');
    const member = gzipSync(Buffer.alloc(8 * MEGABYTE, ' '));
    flood(socket, Buffer.concat(Array.from({ length: 128 }, () => member)));
  },
  'endless body': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
    flood(socket, Buffer.alloc(64 * 1024, '['));
  },
  'endless gzip of nothing': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n');
    flood(socket, gzipSync(''));
  },
  'endless error body': (socket) => {
    socket.write('HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n');
    flood(socket, Buffer.alloc(64 * 1024, 'x'));
  },
  'deep arrays': (socket) => {
    socket.write(whole('['.repeat(5_000_000)));
  },
  'deep objects': (socket) => {
    const levels = 1_000_000;
    socket.write(whole('{"a":'.repeat(levels) + '0' + '}'.repeat(levels)));
  },
  'deep insights': (socket, target) => {
    const levels = 5000;
    const deep = '{"a":'.repeat(levels) + '0' + '}'.repeat(levels);
    socket.write(whole(answerTo(target).replace('{', `{"insights":${deep},`)));
  },
  'millions of values': (socket) => {
    socket.write(whole(`{"items":[${'{},'.repeat(2_500_000)}{}],"total":1}`));
  },
  'a hundred thousand faults': (socket) => {
    const people = Array.from({ length: 100_000 }, () => ({}));
    socket.write(whole(JSON.stringify({ ...anEvaluation(), people })));
  },
  'half a body with a length': (socket, target) => {
    const answer = whole(answerTo(target));
    socket.end(answer.slice(0, answer.length - 300));
  },
  'half a chunked body': (socket, target) => {
    const body = answerTo(target).slice(0, 300);
    socket.end(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n`);
  },
  'half a gzip body': (socket, target) => {
    const body = gzipSync(answerTo(target)).subarray(0, 200);
    socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`);
    socket.write(body);
  },
  'broken gzip': (socket) => {
    socket.write(whole('this is no gzip', 'content-encoding: gzip\r\n'));
  },
  'an unasked coding': (socket, target) => {
    socket.write(whole(answerTo(target), 'content-encoding: br\r\n'));
  },
  'cut-off JSON': (socket, target) => {
    socket.write(whole(answerTo(target).slice(0, 200)));
  },
  'an HTML page': (socket) => {
    socket.write(whole('<!doctype html><title>It works</title>', 'content-type: text/html\r\n'));
  },
  'an empty body': (socket) => {
    socket.write(whole(''));
  },
  'slow drip of a body': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n');
    drip(socket, ' ');
  },
  'slow drip of headers': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-slow: ');
    drip(socket, 'a');
  },
  'slow drip of an error body': (socket) => {
    socket.write('HTTP/1.1 503 Service Unavailable\r\nretry-after: 7\r\ncontent-length: 4000\r\n\r\n');
    drip(socket, ' ');
  },
  'hang before headers': () => {},
  'hang half-way': (socket, target) => {
    const answer = whole(answerTo(target));
    socket.write(answer.slice(0, answer.length - 300));
  },
  'endless interim responses': (socket) => {
    flood(socket, Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'), 'raw');
  },
  'reset before headers': (socket) => {
    socket.resetAndDestroy();
  },
  'reset half-way': (socket, target) => {
    const answer = whole(answerTo(target));
    socket.write(answer.slice(0, answer.length - 300), () => socket.resetAndDestroy());
  },
  'closed without an answer': (socket) => {
    socket.end();
  },
  redirect: (socket, target) => {
    socket.write(`HTTP/1.1 302 Found\r\nlocation: /elsewhere${target}\r\ncontent-length: 0\r\n\r\n`);
  },
  'redirect to itself': (socket, target) => {
    socket.write(`HTTP/1.1 307 Temporary Redirect\r\nlocation: ${target}\r\ncontent-length: 0\r\n\r\n`);
  },
  'header garbage': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\u0001\u0002 not a header at all\r\n\r\n');
  },
  'another protocol': (socket) => {
    socket.write('220 mail.example.com ESMTP ready\r\n');
  },
  'headers without end': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n');
    flood(socket, Buffer.from(`x-filler: ${'a'.repeat(1000)}\r\n`), 'raw');
  },
  'wrong id': (socket) => {
    socket.write(whole(JSON.stringify(anEvaluation({ _id: 'someone_elses' }))));
  },
  'wrong workspace': (socket, target) => {
    const record = anEvaluation({ _id: idIn(target), workspaceId: WORKSPACE_B });
    const isList = target.includes('/evaluations?');
    socket.write(whole(JSON.stringify(isList ? { items: [record], total: 1 } : record)));
  },
  'two answers to one request': (socket, target) => {
    socket.write(whole(answerTo(target)) + whole(JSON.stringify(anEvaluation({ _id: 'someone_elses' }))));
  },
  'a late second answer': (socket, target) => {
    socket.write(whole(answerTo(target)), () => {
      setTimeout(() => socket.write(whole(JSON.stringify(anEvaluation({ _id: 'someone_elses' })))), 20);
    });
  },
} as const satisfies Readonly<Record<string, Behaviour>>;

export type Evil = keyof typeof EVIL_BEHAVIOURS;

export class EvilStore {
  /** The request line of every request so far. */
  readonly requestLines: string[] = [];
  readonly #running: RunningServer;
  readonly #open = new Set<Socket>();
  #evil: Evil = 'well';
  #allClosed: (() => void)[] = [];

  private constructor(server: Server, running: RunningServer) {
    this.#running = running;
    server.on('connection', (socket: Socket) => this.#serve(socket));
  }

  static async start(evil: Evil): Promise<EvilStore> {
    const server = createServer();
    const store = new EvilStore(server, await listenOnLoopback(server));
    store.behave(evil);
    return store;
  }

  get url(): string {
    return this.#running.url;
  }

  /** Connections opened so far. */
  get connections(): number {
    return this.#running.connections();
  }

  /** Answers requests that arrive from now on that way. */
  behave(evil: Evil): void {
    this.#evil = evil;
  }

  /** Resolves when no connection is open any more: the client has given up whatever it was sent. */
  async allClosed(): Promise<void> {
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#allClosed.push(resolve);
    });
  }

  async close(): Promise<void> {
    await this.#running.close();
  }

  #serve(socket: Socket): void {
    this.#open.add(socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      if (this.#open.size > 0) return;
      for (const resolve of this.#allClosed.splice(0)) resolve();
    });
    let received = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
        const requestLine = received.slice(0, received.indexOf('\r\n'));
        received = received.slice(end + 4);
        this.requestLines.push(requestLine);
        const behaviour: Behaviour = EVIL_BEHAVIOURS[this.#evil];
        behaviour(socket, requestLine.split(' ')[1] ?? '/');
      }
    });
  }
}

/** Starts an evil store on a free loopback port. Close it when the test is over. */
export async function createEvilStore(evil: Evil): Promise<EvilStore> {
  return await EvilStore.start(evil);
}

/** A proper record for the path, as JSON in ASCII. */
function answerTo(target: string): string {
  if (target.includes('/evaluations?')) return JSON.stringify({ items: [anEvaluation()], total: 1 });
  return JSON.stringify(anEvaluation({ _id: idIn(target) }));
}

function idIn(target: string): string {
  return /\/evaluations\/([^/?]+)/.exec(target)?.[1] ?? 'ev_1';
}

/** A 200 with that body, which is ASCII. */
function whole(body: string, headers = 'content-type: application/json\r\n'): string {
  return `HTTP/1.1 200 OK\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`;
}

/** Writes the same bytes for as long as the client takes them: as HTTP chunks, or raw. */
function flood(socket: Socket, bytes: Buffer, form: 'chunks' | 'raw' = 'chunks'): void {
  const framed =
    form === 'raw'
      ? bytes
      : Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
  // Written in larger pieces, so that the flood is not slowed down by this server.
  const piece = Buffer.concat(Array.from({ length: Math.ceil((64 * 1024) / framed.length) }, () => framed));
  const pump = (): void => {
    if (socket.destroyed || !socket.writable) return;
    socket.write(piece, pump);
  };
  pump();
}

/** Sends one byte every 10 ms until the client has gone. */
function drip(socket: Socket, byte: string): void {
  const timer = setInterval(() => socket.write(byte), 10);
  socket.once('close', () => clearInterval(timer));
}
