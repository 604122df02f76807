/** What goes over the wire when the sample misbehaves. */
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { gzipSync } from 'node:zlib';
import type { FaultPlan } from './faults.ts';
import type { Sleep } from './latency.ts';
import { JSON_TYPE } from './respond.ts';
import type { Encoded } from './respond.ts';
import { errorAnswer } from './routes.ts';
import type { Answer } from './routes.ts';

const DEEP_LEVELS = 20_000;
const CHUNK_BYTES = 65_536;
const BOMB_MEGABYTES = 100;
const DRIP_BYTES = 16;
const DRIP_PAUSE_MS = 200;
const HTML = '<!doctype html><html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>\n';

const CODES: ReadonlyMap<number, string> = new Map([
  [400, 'BAD_REQUEST'],
  [401, 'UNAUTHENTICATED'],
  [429, 'RATE_LIMITED'],
  [500, 'INTERNAL'],
  [502, 'BAD_GATEWAY'],
  [503, 'UNAVAILABLE'],
]);

/** The answer of a store that fails. A 404 made up here carries none of the codes by which a record is absent. */
export function failure(status: number): Answer {
  return errorAnswer(status, CODES.get(status) ?? 'FAULT', 'the store was told to fail');
}

/** Answers with something else than the record, or not at all. The path is the one that was asked for. */
export async function sendInstead(
  response: ServerResponse,
  instead: Exclude<FaultPlan['instead'], 'none' | 'status'>,
  path: string,
): Promise<void> {
  switch (instead) {
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'redirect':
      response.writeHead(302, { location: `/moved${path}` }).end();
      return;
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(HTML);
      return;
    case 'deep':
      response.writeHead(200, { 'content-type': JSON_TYPE });
      response.end(`{"items":${'['.repeat(DEEP_LEVELS)}${']'.repeat(DEEP_LEVELS)},"total":0}`);
      return;
    case 'gzipBomb':
      response.writeHead(200, { 'content-type': JSON_TYPE, 'content-encoding': 'gzip' });
      response.end(createBomb());
      return;
    case 'endless':
      await sendEndless(response);
  }
}

/** A gzip stream may have many members (RFC 1952, 2.2): one megabyte of spaces, packed once and sent often. */
function createBomb(): Buffer {
  const member = gzipSync(Buffer.alloc(1_000_000, ' '));
  return Buffer.concat([gzipSync('{"items":['), ...Array.from({ length: BOMB_MEGABYTES }, () => member)]);
}

/** As fast as the caller reads it; rejects when the caller has had enough. */
async function sendEndless(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': JSON_TYPE });
  await pipeline(endlessList, response);
}

function* endlessList(): Generator<Buffer> {
  yield Buffer.from('{"items":[');
  const chunk = Buffer.alloc(CHUNK_BYTES, ' ');
  for (;;) yield chunk;
}

/** Sends the right answer in a wrong way. Hanging, it returns with the response still open. */
export async function sendBadly(
  response: ServerResponse,
  encoded: Encoded,
  how: Exclude<FaultPlan['body'], 'whole'>,
  wait: (ms: number) => ReturnType<Sleep>,
): Promise<void> {
  const { status, headers, body } = encoded;
  const half = body.subarray(0, Math.ceil(body.length / 2));
  switch (how) {
    case 'hang':
      response.writeHead(status, { ...headers, 'content-length': body.length });
      response.write(half);
      return;
    case 'truncate':
      response.writeHead(status, { ...headers, 'content-length': half.length }).end(half);
      return;
    case 'slowDrip':
      response.writeHead(status, { ...headers, 'content-length': body.length });
      for (let at = 0; at < body.length && !response.destroyed; at += DRIP_BYTES) {
        response.write(body.subarray(at, at + DRIP_BYTES));
        await wait(DRIP_PAUSE_MS);
      }
      response.end();
  }
}
