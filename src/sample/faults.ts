/** Faults of a real store, on request: which fault a call meets, and every way to misbehave, down to the bytes. */
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import type { Random } from './random.ts';
import { type Answer, falsified } from './routes.ts';

type Rate = 'error' | 'hang' | 'reset' | 'html' | 'truncate' | 'deep' | 'wrongId' | 'wrongWorkspace';

/** Nothing goes wrong by itself: a fault that is left out is off. */
export interface Faults extends Readonly<Partial<Record<`${Rate}Rate`, number>>> {
  /** The status of every call, 400 to 599. */
  readonly status?: number;
  /** Seconds for `Retry-After` on statuses of 429 and above. */
  readonly retryAfter?: number;
  /** How every call misbehaves. */
  readonly misbehave?: Misbehaviour;
  /** How many calls at a time the store bears. */
  readonly capacity?: number;
  readonly endless?: boolean;
  readonly gzipBomb?: boolean;
  readonly slowDrip?: boolean;
  readonly redirect?: boolean;
}

/** Meets a call: a status, or a way to misbehave. */
export type Fault = number | Misbehaviour;

interface FaultOption {
  readonly name: keyof Faults;
  readonly flag: string;
  readonly description: string;
  readonly kind: 'rate' | 'status' | 'seconds' | 'calls' | 'way' | 'switch';
  /** Met by a call that the rate hits, or while the switch is on. */
  readonly fault: Fault | null;
}

/** One call and its right answer. */
export interface Exchange {
  readonly response: ServerResponse;
  /** The path of the request with its query. */
  readonly url: string;
  readonly answer: Answer;
  /** Waits; rejects when the caller has left. */
  readonly wait: (ms: number) => Promise<unknown>;
}

type Behaviour = (exchange: Exchange) => void | Promise<void>;

const CHUNK_BYTES = 65_536;
const DRIP_EVERY_MS = 10;
const MANY = 1_000_000;
const HTML = '<!doctype html><html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>\n';
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

const BEHAVIOURS = {
  // Whole responses: the connection can be used again.
  html: ({ response }) => reply(response, HTML, { 'content-type': 'text/html' }),
  'empty-body': ({ response }) => reply(response, ''),
  'cut-off-json': ({ response, answer }) => reply(response, firstHalf(bodyOf(answer))),
  'deep-arrays': ({ response }) => reply(response, '['.repeat(MANY) + ']'.repeat(MANY)),
  'deep-objects': ({ response }) => reply(response, deepObject(MANY)),
  'deep-insights': ({ response, answer }) => {
    reply(
      response,
      bodyOf(answer)
        .toString()
        .replace('{', `{"insights":${deepObject(5000)},`),
    );
  },
  'many-values': ({ response }) => reply(response, `{"items":[${'{},'.repeat(2 * MANY)}{}],"total":1}`),
  'many-faults': ({ response, answer }) => reply(response, bodyOf(falsified(answer, 'people'))),
  'broken-gzip': ({ response }) => reply(response, 'this is no gzip', { 'content-encoding': 'gzip' }),
  'half-gzip': ({ response, answer }) => {
    reply(response, firstHalf(gzipSync(bodyOf(answer))), { 'content-encoding': 'gzip' });
  },
  'unknown-coding': ({ response, answer }) => reply(response, bodyOf(answer), { 'content-encoding': 'br' }),
  redirect: ({ response, url }) => void response.writeHead(302, { location: `/moved${url}` }).end(),
  'redirect-loop': ({ response, url }) => void response.writeHead(307, { location: url }).end(),
  'wrong-id': ({ response, answer }) => reply(response, bodyOf(falsified(answer, 'id'))),
  'wrong-workspace': ({ response, answer }) => reply(response, bodyOf(falsified(answer, 'workspace'))),
  // Bodies without end.
  'endless-body': ({ response }) => flood(response, Buffer.alloc(CHUNK_BYTES, '[')),
  /** A gzip stream may have many members (RFC 1952, 2.2). */
  'gzip-bomb': ({ response }) => flood(gzipped(response), gzipSync(Buffer.alloc(8 * MANY, ' '))),
  'endless-gzip': ({ response }) => flood(gzipped(response), gzipSync('')),
  'endless-error': ({ response }) => flood(response.writeHead(503), Buffer.alloc(CHUNK_BYTES, 'x')),
  // Too slow.
  'no-answer': () => {},
  hang: (exchange) => sendHalf(exchange, () => {}),
  'slow-headers': (exchange) => drip(exchange, 'HTTP/1.1 200 OK\r\nx-slow: ', 'a'),
  'slow-body': (exchange) => drip(exchange, `HTTP/1.1 200 OK\r\ncontent-length: ${MANY}\r\n\r\n`, ' '),
  'slow-error': (exchange) => {
    return drip(exchange, 'HTTP/1.1 503 \r\nretry-after: 7\r\ncontent-length: 4000\r\n\r\n', ' ');
  },
  // Broken connections.
  reset: ({ response }) => void response.socket?.resetAndDestroy(),
  'reset-half-way': (exchange) => sendHalf(exchange, (socket) => socket?.resetAndDestroy()),
  close: ({ response }) => void response.socket?.end(),
  'half-body': (exchange) => sendHalf(exchange, (socket) => socket?.end()),
  'half-chunked': ({ response }) => void response.socket?.end(`${CHUNKED}ff\r\n{"items":[`),
  // No HTTP, or too much of it.
  'bad-header': ({ response }) => void response.socket?.write('HTTP/1.1 200 OK\r\n\u0001 no header\r\n\r\n'),
  'not-http': ({ response }) => void response.socket?.write('220 mail.example ESMTP ready\r\n'),
  'endless-headers': ({ response }) => {
    return floodRaw(response, 'HTTP/1.1 200 OK\r\n', `x-filler: ${'a'.repeat(1000)}\r\n`);
  },
  'endless-interim': ({ response }) => floodRaw(response, '', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
  'two-answers': (exchange) => answerTwice(exchange, 0),
  'late-second-answer': (exchange) => answerTwice(exchange, 20),
} as const satisfies Readonly<Record<string, Behaviour>>;

export type Misbehaviour = keyof typeof BEHAVIOURS;

export const MISBEHAVIOURS: readonly Misbehaviour[] = Object.keys(BEHAVIOURS).filter((name): name is Misbehaviour =>
  Object.hasOwn(BEHAVIOURS, name),
);

/** Rejects when the caller has had enough. The response may be left open. */
export async function misbehave(way: Misbehaviour, exchange: Exchange): Promise<void> {
  await BEHAVIOURS[way](exchange);
}

function bodyOf({ body }: Answer): Buffer {
  return Buffer.from(JSON.stringify(body));
}

function firstHalf(body: Buffer): Buffer {
  return body.subarray(0, Math.ceil(body.length / 2));
}

function deepObject(levels: number): string {
  return `${'{"a":'.repeat(levels)}0${'}'.repeat(levels)}`;
}

function reply(response: ServerResponse, body: string | Buffer, headers: Readonly<Record<string, string>> = {}): void {
  const length = Buffer.byteLength(body);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length, ...headers }).end(body);
}

function gzipped(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-encoding': 'gzip' });
}

/** Promises the whole body, sends half of it, and then does something to the connection. */
function sendHalf({ response, answer }: Exchange, then: (socket: ServerResponse['socket']) => unknown): void {
  const { socket } = response;
  const body = bodyOf(answer);
  response.writeHead(200, { 'content-length': body.length }).write(firstHalf(body), () => void then(socket));
}

/** Repeats the bytes as fast as the caller reads them. */
async function flood(response: ServerResponse, bytes: Buffer): Promise<void> {
  await pipeline(Readable.from(repeated(bytes)), response);
}

async function floodRaw({ socket }: ServerResponse, head: string, text: string): Promise<void> {
  if (socket === null) return;
  socket.write(head);
  await pipeline(Readable.from(repeated(Buffer.from(text))), socket);
}

function* repeated(bytes: Buffer): Generator<Buffer> {
  const times = Math.ceil(CHUNK_BYTES / bytes.length);
  const chunk = Buffer.concat(Array.from({ length: times }, () => bytes));
  for (;;) yield chunk;
}

/** One byte at a time until the caller has gone. */
async function drip({ response, wait }: Exchange, head: string, byte: string): Promise<void> {
  const { socket } = response;
  socket?.write(head);
  for (;;) {
    await wait(DRIP_EVERY_MS);
    socket?.write(byte);
  }
}

/** The right answer, and on the same connection one that nobody asked for. */
function answerTwice({ response, answer }: Exchange, afterMs: number): void {
  const { socket } = response;
  const other = bodyOf(falsified(answer, 'id')).toString('latin1');
  response.once('finish', () => {
    setTimeout(
      () => socket?.write(`HTTP/1.1 200 OK\r\ncontent-length: ${other.length}\r\n\r\n${other}`, 'latin1'),
      afterMs,
    );
  });
  reply(response, bodyOf(answer));
}

/** One command-line flag per fault. Switches come before rates, and the first rate that hits counts. */
export const FAULT_OPTIONS: readonly FaultOption[] = [
  option('status', 'status', 'answer every call with this status'),
  option('retryAfter', 'seconds', 'send Retry-After with failures of status 429 and above'),
  option('capacity', 'calls', 'bear so many calls at a time: slower beyond it, 503 beyond four times as many'),
  option('misbehave', 'way', `misbehave in one way on every call: ${MISBEHAVIOURS.join(', ')}`),
  option('endless', 'switch', 'answer every call with a body that never ends', 'endless-body'),
  option('gzipBomb', 'switch', 'answer every call with gzip that unpacks to a thousand times its size', 'gzip-bomb'),
  option('slowDrip', 'switch', 'send every body a byte at a time', 'slow-body'),
  option('redirect', 'switch', 'answer every call with a redirect', 'redirect'),
  option('errorRate', 'rate', 'share of calls answered with 500', 500),
  option('hangRate', 'rate', 'share of calls that stop half-way through the body and never end', 'hang'),
  option('resetRate', 'rate', 'share of calls whose connection is reset before an answer', 'reset'),
  option('htmlRate', 'rate', 'share of calls answered with 200 and an HTML page', 'html'),
  option('truncateRate', 'rate', 'share of calls answered with 200 and JSON that is cut off', 'cut-off-json'),
  option('deepRate', 'rate', 'share of calls answered with 200 and JSON nested a million deep', 'deep-arrays'),
  option('wrongIdRate', 'rate', 'share of calls answered with the record of another id', 'wrong-id'),
  option('wrongWorkspaceRate', 'rate', 'share of calls answered with a record of another workspace', 'wrong-workspace'),
];

function option(
  name: keyof Faults,
  kind: FaultOption['kind'],
  description: string,
  fault: Fault | null = null,
): FaultOption {
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return { name, flag, description, kind, fault };
}

/** Decides on one call; null is a good answer. */
export function chooseFault(faults: Faults, random: Random): Fault | null {
  const isHit = ({ name, kind }: FaultOption): boolean => {
    const value = faults[name];
    return value === true || (kind === 'rate' && typeof value === 'number' && value > 0 && random.chance(value));
  };
  return faults.status ?? faults.misbehave ?? FAULT_OPTIONS.find(isHit)?.fault ?? null;
}
