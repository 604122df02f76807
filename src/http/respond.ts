/**
 * Sends what the cache has read: 200 or 304, with everything that a cache at the consumer needs to know (C5). This is the
 * one place that writes to Node's response itself. `ctx.set` and `ctx.body` are the rule elsewhere; for the two dozen
 * headers of a cached response they cost more than the read itself, so these go out in one documented call, `writeHead`
 * with a flat array, and Koa learns from `ctx.respond = false` that it has nothing left to send.
 */
import type { CacheRead } from '../cache/reader.ts';
import { matchesEtag, type Representation } from './representation.ts';
import type { Context, Headers, Middleware } from './state.ts';

const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' };

/** Answers with a read whose reader was authorized for it. Throws if the client has left. */
export async function respond(ctx: Context, read: CacheRead<unknown>, representation: Representation): Promise<void> {
  const { headers: asked } = ctx.req;
  const { headers, signal } = ctx.state;
  signal.throwIfAborted();
  const coding = representation.codingFor(asked['accept-encoding']);
  const etag = representation.etag(coding);
  const ifNoneMatch = asked['if-none-match'];
  const isNotModified = ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag);
  const body = isNotModified ? null : await representation.body(coding);
  ctx.state.cache = read.outcome;
  headers.push({ ETag: etag }, cacheHeaders(read));
  if (representation.links !== null) headers.push({ Link: representation.links });
  if (body !== null) {
    headers.push(JSON_TYPE, { 'Content-Length': String(body.length) });
    if (coding !== null) headers.push({ 'Content-Encoding': coding });
  }
  ctx.state.response = { status: body === null ? 304 : 200, body };
}

/** Adds the headers that the middlewares collected, and sends the response if it is a cached one. */
export function sendResponse({ isDraining }: { readonly isDraining: () => boolean }): Middleware {
  return async (ctx, next) => {
    await next();
    const { state, res } = ctx;
    if (res.headersSent || res.destroyed) {
      ctx.respond = false;
      return;
    }
    // Checked last, so that requests that were in flight when the process was told to stop also close their connection.
    if (isDraining()) state.headers.push({ Connection: 'close' });
    if (state.response === null) {
      for (const group of state.headers) ctx.set(group);
      return;
    }
    const { status, body } = state.response;
    ctx.respond = false;
    res.writeHead(status, flattened(state.headers));
    if (body === null || ctx.method === 'HEAD') res.end();
    else res.end(body);
  };
}

/** Names and values in turn, as `writeHead` takes them. */
function flattened(groups: readonly Headers[]): string[] {
  const flat: string[] = [];
  for (const group of groups) for (const name of Object.keys(group)) flat.push(name, group[name] ?? '');
  return flat;
}

type Provenance = Omit<CacheRead<unknown>, 'entry'>;

/** The name of this cache in Cache-Status. */
const CACHE_NAME = 'evalgate';

/**
 * A cache at the client takes an answer for fresh as long as `max-age` exceeds the answer's age, which begins at `Age`
 * (RFC 9111 section 4.2). So `max-age` is `Age` and what is left: a client never holds an answer for fresh any longer
 * than this cache does, and a stale one not at all.
 */
function cacheHeaders(read: Provenance): Headers {
  const ageSeconds = Math.floor(read.ageMs / 1000);
  const leftSeconds = Math.floor(read.ttlMs / 1000);
  const maxAgeSeconds = read.ttlMs > 0 ? ageSeconds + leftSeconds : 0;
  return {
    Age: String(ageSeconds),
    'Cache-Control': `private, max-age=${maxAgeSeconds}`,
    'Cache-Status': cacheStatus(read, leftSeconds),
  };
}

function cacheStatus({ outcome, forward = 'uri-miss', stored }: Provenance, ttlSeconds: number): string {
  if (outcome === 'hit') return `${CACHE_NAME}; hit; ttl=${ttlSeconds}`;
  if (outcome === 'miss') return `${CACHE_NAME}; fwd=${forward}${stored ? '; stored' : ''}`;
  if (outcome === 'collapsed') return `${CACHE_NAME}; fwd=${forward}; collapsed`;
  return `${CACHE_NAME}; hit; ttl=${ttlSeconds}; detail=${outcome}`;
}
