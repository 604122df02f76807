/** Sending an answer over HTTP: entity tags, conditional requests, compression. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Answer } from './routes.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';
/** Smaller bodies aren't worth the work. */
const GZIP_FROM_BYTES = 1024;
const gzipAsync = promisify(gzip);

/** A response before it is sent. */
export interface Encoded {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Turns an answer into bytes and headers. A 200 carries an ETag; it is weak on a compressed body, whose bytes may
 * change while the record doesn't (RFC 9110, 8.8.1). `If-None-Match` that holds it makes a 304 of it.
 */
export async function encode(asked: IncomingHttpHeaders, answer: Answer): Promise<Encoded> {
  const plain = Buffer.from(JSON.stringify(answer.body));
  const headers = { 'content-type': JSON_TYPE, vary: 'Accept-Encoding' };
  if (answer.status !== 200) return { status: answer.status, headers, body: plain };
  const isZipped = plain.length > GZIP_FROM_BYTES && acceptsGzip(asked['accept-encoding']);
  const tag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  const tagged = { ...headers, etag: isZipped ? `W/${tag}` : tag };
  if (matchesTag(asked['if-none-match'], tag)) {
    return { status: 304, headers: { vary: headers.vary, etag: tagged.etag }, body: Buffer.alloc(0) };
  }
  if (!isZipped) return { status: 200, headers: tagged, body: plain };
  return { status: 200, headers: { ...tagged, 'content-encoding': 'gzip' }, body: await gzipAsync(plain) };
}

/** Sends it whole, with its length. */
export function send(response: ServerResponse, { status, headers, body }: Encoded): void {
  response.writeHead(status, status === 304 ? headers : { ...headers, 'content-length': body.length });
  response.end(body);
}

/** RFC 9110, 12.5.3: gzip is named, or everything is, with a weight above 0. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  const weights = new Map(
    String(header ?? '')
      .split(',')
      .map((item) => {
        const [coding = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
        const weight = parameters.find((parameter) => parameter.startsWith('q='));
        return [coding, weight === undefined ? 1 : Number(weight.slice(2))] as const;
      }),
  );
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0;
}

/** RFC 9110, 13.1.2: weak comparison, so a `W/` on either side makes no difference. */
function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => item.trim() === '*' || item.trim().replace(/^W\//, '') === tag);
}
