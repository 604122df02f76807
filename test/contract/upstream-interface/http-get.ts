/** A plain HTTP client that hides nothing: no redirects followed, no decoding, no retries. */
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';

export interface RawResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** As it came over the wire. */
  readonly body: Buffer;
}

/** Opens a call and gives the response as soon as its headers are there. Rejects if no response comes. */
export function open(url: string, headers: OutgoingHttpHeaders, method = 'GET'): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method, headers, agent: false }, resolve);
    call.once('error', reject);
    call.end();
  });
}

/** Reads a whole response. Rejects if the body ends before its time. */
export async function get(url: string, headers: OutgoingHttpHeaders, method = 'GET'): Promise<RawResponse> {
  const response = await open(url, headers, method);
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}

/** The body as JSON. */
export function json({ body }: RawResponse): unknown {
  return JSON.parse(body.toString());
}
