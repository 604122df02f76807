import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import * as fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { type Body, bytesOf, toBody } from '../../../src/http/body.ts';
import { fieldLine, fieldLines, HeadResponse } from '../../../src/http/head.ts';
import { listenOnLoopback, type RunningServer } from '../../support/loopback.ts';

const FIELDS = { 'X-Request-Id': 'one', Vary: 'Authorization, Accept-Encoding', ETag: '"abc"', Age: '12' };

let server: RunningServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

interface Case {
  readonly status: number;
  readonly method?: string;
  /** What Node itself goes by. */
  readonly ofTransfer: readonly string[];
  readonly body: string | null;
}

/** All bytes that come back on a connection of its own, but for the time of day. */
async function exchange({ url }: RunningServer, { method = 'GET' }: Case): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.end(`${method} / HTTP/1.1\r\nHost: here\r\n\r\n`);
  return (await text(socket)).replace(/^Date: .*\r$/m, 'Date: now\r');
}

test.each<Case>([
  { status: 200, ofTransfer: ['Content-Length', '4'], body: 'body' },
  { status: 200, ofTransfer: ['Connection', 'close', 'Content-Length', '4'], body: 'body' },
  { status: 200, method: 'HEAD', ofTransfer: ['Content-Length', '4'], body: null },
  { status: 304, ofTransfer: [], body: null },
  { status: 429, ofTransfer: ['Content-Length', '0'], body: '' },
])('a head of lines is byte by byte what Node makes of the same fields: %o', async (given) => {
  const { status, ofTransfer, body } = given;
  const answerWith = async (answer: (response: HeadResponse) => ServerResponse): Promise<string> => {
    server = await listenOnLoopback(
      createServer({ ServerResponse: HeadResponse }, (_request: IncomingMessage, response) => {
        answer(response).end(body ?? undefined);
      }),
    );
    const bytes = await exchange(server, given);
    await server.close();
    server = undefined;
    return bytes;
  };
  const byLines = await answerWith((response) => response.writeHeadLines(status, fieldLines(FIELDS), [...ofTransfer]));
  const byNode = await answerWith((response) =>
    response.writeHead(status, [...Object.entries(FIELDS).flat(), ...ofTransfer]),
  );
  expect(byLines).toBe(byNode);
  expect(byLines).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(byLines).toContain('\r\nETag: "abc"\r\n');
});

function lineOf(value: string): string | null {
  try {
    return fieldLine('X-Any', value);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

function isAllowed(code: number): boolean {
  return code === 9 || (code >= 32 && code !== 127 && code <= 255);
}

test('a line holds one field, whatever its value, or is refused', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string()), (value) => {
      const codes = Array.from(value, (character) => character.codePointAt(0) ?? 0);
      expect(lineOf(value)).toBe(codes.every(isAllowed) ? `X-Any: ${value}\r\n` : null);
    }),
  );
  expect(() => fieldLines({ 'X-Any': 'a\r\nSet-Cookie: b=c' })).toThrow('X-Any');
});

test('a body is the bytes that it was made of, in either form', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40_000, size: 'max' }), (bytes) => {
      const body = toBody(Buffer.from(bytes));
      expect(body).toHaveLength(bytes.length);
      expect(bytesOf(body).equals(bytes)).toBe(true);
    }),
  );
});

test.each([10, 14_000, 16_000, 60_000])('and %i bytes of any text arrive as they were', async (length) => {
  const sent = Buffer.from('Größe ✓ 🎧 '.repeat(length).slice(0, length));
  const body: Body = toBody(sent);
  server = await listenOnLoopback(
    createServer({ ServerResponse: HeadResponse }, (_request: IncomingMessage, response) => {
      response.writeHeadLines(200, '', ['Content-Length', String(body.length)]).end(body, 'latin1');
    }),
  );
  const received = await fetch(server.url);
  expect(Buffer.from(await received.arrayBuffer()).equals(sent)).toBe(true);
});
