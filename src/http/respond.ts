/**
 * Sends what the cache has read: 200 or 304, with everything that a cache at the consumer needs to know (C5). This is the
 * one place that writes to Node's response itself. `ctx.set` and `ctx.body` are the rule elsewhere; for the two dozen
 * headers of a cached response they cost more than the read itself, so these go out in one documented call, `writeHead`,
 * and Koa learns from `ctx.respond = false` that it has nothing left to send.
 */
import { cacheHeaders } from '../cache/headers.ts';
import type { CacheRead } from '../cache/reader.ts';
import { matchesEtag, type Representation } from './representation.ts';
import type { Context, Headers, Middleware } from './state.ts';

const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' };

/** Answers with a read whose reader was authorized for it. Throws if the client has left. */
export async function respond(ctx: Context, read: CacheRead<unknown>, representation: Representation): Promise<void> {
  ctx.state.signal.throwIfAborted();
  const coding = representation.codingFor(ctx.req.headers['accept-encoding']);
  const etag = representation.etag(coding);
  const validators = { ETag: etag, ...cacheHeaders(read) };
  ctx.state.cache = read.outcome;
  const ifNoneMatch = ctx.req.headers['if-none-match'];
  if (ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)) {
    ctx.state.response = { status: 304, headers: validators, body: null };
    return;
  }
  const body = await representation.body(coding);
  const contentCoding: Headers = coding === null ? {} : { 'Content-Encoding': coding };
  const headers = { ...validators, ...contentCoding, ...JSON_TYPE, 'Content-Length': String(body.length) };
  ctx.state.response = { status: 200, headers, body };
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
    if (isDraining()) state.headers = { ...state.headers, Connection: 'close' };
    if (state.response === null) {
      ctx.set(state.headers);
      return;
    }
    const { status, headers, body } = state.response;
    ctx.respond = false;
    res.writeHead(status, { ...state.headers, ...headers });
    if (body === null || ctx.method === 'HEAD') res.end();
    else res.end(body);
  };
}
