/**
 * Responses. A read from the cache is sent as bytes rendered once per entry, compressed once per coding, named by their ETag,
 * with everything that a cache at the consumer needs (C5: ETag, Age, Cache-Control, Cache-Status). `sendResponse` is the one
 * place that writes to Node's response itself: `ctx.set` and `ctx.body` cost more for two dozen headers than the read, so these
 * go out in one documented call, `writeHead` with a flat array, and Koa learns from `ctx.respond = false` that it has nothing
 * left to send.
 */
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, zstdCompress } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import Negotiator from 'negotiator';
import type { CacheRead } from '../cache/reader.ts';
import { hashOf } from '../server/static-file.ts';
import { FairQueue } from '../shares/shares.ts';
import { systemClock } from '../time/clock.ts';
import { systemTimers } from '../time/timers.ts';
import { type Headers, type Problem, problemBody, problemOf } from './problem.ts';
import type { Answer, Context, Middleware, PublicAppOptions } from './state.ts';

/** RFC 9110 content codings on offer, the preferred one first. */
export const CODINGS = ['br', 'zstd', 'gzip'] as const;
type Coding = (typeof CODINGS)[number];

/** Below this a coding saves less than its header costs. */
const MIN_CODED_BYTES = 1024;
/** The memory of a representation beside its bytes. Measured, rounded up. */
const OVERHEAD_BYTES = 600;
/** Middling effort: a response is compressed once, while a reader waits. */
const BROTLI_QUALITY = 5;
/** A megabyte. The default of four takes several times as much memory and finds little more in a transcript. */
const BROTLI_WINDOW_BITS = 20;

const compressors: Readonly<Record<Coding, (bytes: Buffer) => Promise<Buffer>>> = {
  br: (bytes) =>
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
  zstd: (bytes) => promisify(zstdCompress)(bytes),
  gzip: (bytes) => promisify(gzip)(bytes),
};

/** From so many bytes on, compressing a body takes a core for milliseconds, and megabytes of memory. */
const LARGE_BYTES = 256 * 1024;
/** One at a time, in a fair turn per API key: so they leave cores to the event loop, and memory to the rest. */
const large = new FairQueue(
  { capacity: 1, reservePercent: 0, maxWaiting: Infinity },
  { clock: systemClock, timers: systemTimers },
);

function compress(bytes: Buffer, coding: Coding, holder: string): Promise<Buffer> {
  if (bytes.length < LARGE_BYTES) return compressors[coding](bytes);
  return large.run({ holder }, () => compressors[coding](bytes));
}

/** The coding that a consumer prefers, by `Accept-Encoding`: there are few different ones. */
const preferences = new LRUCache<string, string>({
  max: 100,
  memoMethod: (acceptEncoding) =>
    new Negotiator({ headers: { 'accept-encoding': acceptEncoding } }).encoding([...CODINGS, 'identity'], {
      preferred: CODINGS,
    }) ?? 'identity',
});

/** One public form of one record, as JSON. */
export class Representation {
  /** Its own headers: `Link` of a page of a list or a transcript, `X-Records-Omitted` of one of a list. */
  readonly headers: Headers;
  readonly #bytes: Buffer;
  readonly #hash: string;
  readonly #coded = new Map<Coding, Promise<Buffer>>();

  constructor(value: object, headers: Headers = {}) {
    this.headers = headers;
    const text = JSON.stringify(value);
    // Memory of its own: a slice of Node's shared pool would keep the whole pool alive for as long as the entry is cached.
    this.#bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
    this.#bytes.write(text);
    this.#hash = hashOf(this.#bytes);
  }

  /** The bytes that it may come to hold, its codings included. */
  get weightBytes(): number {
    return OVERHEAD_BYTES + 2 * this.#bytes.length;
  }

  /** The coding that the consumer prefers, or null for none. */
  codingFor(acceptEncoding: string | undefined): Coding | null {
    if (acceptEncoding === undefined || this.#bytes.length < MIN_CODED_BYTES) return null;
    const preferred = preferences.memo(acceptEncoding);
    return CODINGS.find((coding) => coding === preferred) ?? null;
  }

  /** A strong validator: it names the bytes and their coding (RFC 9110 section 8.8.3). */
  etag(coding: Coding | null): string {
    return coding === null ? `"${this.#hash}"` : `"${this.#hash}-${coding}"`;
  }

  /** `holder`: whose turn it takes if it has to be compressed first. */
  body(coding: Coding | null, holder: string): Buffer | Promise<Buffer> {
    return coding === null ? this.#bytes : this.#encode(coding, holder);
  }

  /** Once, however many readers wait for it. */
  #encode(coding: Coding, holder: string): Promise<Buffer> {
    const known = this.#coded.get(coding);
    if (known !== undefined) return known;
    const made = compress(this.#bytes, coding, holder).then((bytes) => Buffer.from(bytes));
    this.#coded.set(coding, made);
    return made;
  }
}

const ETAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/** Whether `If-None-Match` names the ETag, by weak comparison (RFC 9110 section 13.1.2). */
function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag || ifNoneMatch.trim() === '*') return true;
  const candidates = ifNoneMatch.match(ETAG) ?? [];
  return candidates.some((candidate) => candidate.replace(/^W\//, '') === etag);
}

/**
 * The `Link` header of a list or of a transcript page (A4: first, prev, next and last, as far as there are such pages; RFC
 * 8288). `page` is from 1. `parameters` are those that the request has beside `page`; one that is null is left out. The links
 * are relative to the address of the request (RFC 3986, section 5.2), so that they hold behind any prefix and under any host
 * name.
 */
export function pageLinks(
  { page, totalPages }: { readonly page: number; readonly totalPages: number },
  parameters: Readonly<Record<string, string | number | null>>,
): string {
  const query = new URLSearchParams({ page: '1' });
  for (const [name, value] of Object.entries(parameters)) if (value !== null) query.set(name, String(value));
  const link = (rel: string, number: number): string => {
    query.set('page', String(number));
    return `<?${query.toString()}>; rel="${rel}"`;
  };
  const links = [link('first', 1)];
  if (page > 1 && totalPages > 0) links.push(link('prev', Math.min(page - 1, totalPages)));
  if (page < totalPages) links.push(link('next', page + 1));
  if (totalPages > 0) links.push(link('last', totalPages));
  return links.join(', ');
}

/** The `Link` header of a page that was asked for with `after`: `first`, and `next` unless it is the last. */
export function walkLinks(next: string | null, parameters: Readonly<Record<string, string | number | null>>): Headers {
  const link = (rel: string, after: string): string => {
    const query = new URLSearchParams({ after });
    for (const [name, value] of Object.entries(parameters)) if (value !== null) query.set(name, String(value));
    return `<?${query.toString()}>; rel="${rel}"`;
  };
  const links = [link('first', ''), ...(next === null ? [] : [link('next', next)])];
  return { Link: links.join(', ') };
}

/** In Cache-Status. */
const CACHE_NAME = 'evalgate';
const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' };

/** Answers with a read whose reader was authorized for it. */
export function respond(ctx: Context, read: CacheRead<unknown>, representation: Representation): Promise<void> {
  return respondWith(ctx, representation, cacheHeaders(read), read);
}

/** Answers with these headers beside those of the representation; with 304 if the client has these bytes. */
export async function respondWith(
  ctx: Context,
  representation: Representation,
  caching: Headers,
  cache: Answer['cache'],
): Promise<void> {
  const { headers: asked } = ctx.req;
  const { state } = ctx;
  const coding = representation.codingFor(asked['accept-encoding']);
  const etag = representation.etag(coding);
  const ifNoneMatch = asked['if-none-match'];
  const isNotModified = ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag);
  const body = isNotModified ? null : await representation.body(coding, state.slot?.holder ?? '');
  const headers = [{ ETag: etag }, caching, representation.headers];
  if (coding !== null && body !== null) headers.push({ 'Content-Encoding': coding });
  state.answer = { status: body === null ? 304 : 200, body, headers, cache };
}

/**
 * Sends the answer, or the problem that stands in its place, with the headers that were collected: every response of the API
 * goes out here, but for the pages of the docs, which Koa sends. Whatever was thrown further in is a problem, too.
 */
export function sendResponse({
  isDraining,
  capacity: { unsent },
}: Pick<PublicAppOptions, 'isDraining' | 'capacity'>): Middleware {
  return async (ctx, next) => {
    const { state, res } = ctx;
    try {
      await next();
    } catch (error) {
      if (!state.hasLeft) [state.failure, state.problem] = [error, problemOf(error)];
    }
    state.slot?.leave();
    // Checked last, so that requests that were in flight when the process was asked to stop also close their connection.
    if (isDraining()) state.headers.push({ Connection: 'close' });
    if (state.problem !== null) state.answer = refusalOf(ctx, state.problem);
    const { answer } = state;
    ctx.respond = answer === null && !state.hasLeft;
    if (ctx.respond) for (const group of state.headers) ctx.set(group);
    if (answer === null || state.hasLeft || res.destroyed) return;
    const { status, body } = answer;
    state.headers.push(...answer.headers);
    if (body !== null) state.headers.push(JSON_TYPE, { 'Content-Length': String(body.length) });
    res.writeHead(status, flattened(state.headers));
    if (body === null || ctx.method === 'HEAD') res.end();
    else unsent.send(res, body, state.slot?.holder ?? '');
  };
}

function refusalOf({ state, path }: Context, problem: Problem): Answer {
  const body = problemBody(problem, path, state.route?.texts);
  return { status: problem.status, body, headers: [problem.headers], cache: null };
}

/** Names and values in turn, as `writeHead` takes them. */
function flattened(groups: readonly Headers[]): string[] {
  const flat: string[] = [];
  for (const group of groups) for (const name in group) flat.push(name, group[name] ?? '');
  return flat;
}

/**
 * A cache at the client takes an answer for fresh as long as `max-age` exceeds the answer's age, which begins at `Age`
 * (RFC 9111 section 4.2). So `max-age` is `Age` and what is left: a client never holds an answer for fresh any longer
 * than this cache does, and a stale one not at all. `must-revalidate` keeps a client from using a stale copy while the gateway
 * cannot be reached. It also lets caches that follow RFC 9111 section 3.5 keep an answer to a request with `Authorization`.
 */
function cacheHeaders(read: CacheRead<unknown>): Headers {
  const ageSeconds = Math.floor((read.ageMs ?? 0) / 1000);
  const leftSeconds = Math.floor(read.ttlMs / 1000);
  const maxAgeSeconds = read.ttlMs > 0 ? ageSeconds + leftSeconds : 0;
  return {
    // C9: the age of a copy from the future is unknown.
    ...(read.ageMs === null ? {} : { Age: String(ageSeconds) }),
    'Cache-Control': `private, max-age=${maxAgeSeconds}, must-revalidate`,
    'Cache-Status': cacheStatus(read, leftSeconds),
  };
}

function cacheStatus(
  { outcome, forward = 'uri-miss', isKept, isAwaited }: CacheRead<unknown>,
  ttlSeconds: number,
): string {
  const parts = [CACHE_NAME];
  if (outcome === 'miss') parts.push(`fwd=${forward}`, ...(isKept ? ['stored'] : []));
  else if (outcome === 'collapsed') parts.push(`fwd=${forward}`, 'collapsed');
  else parts.push('hit', `ttl=${ttlSeconds}`);
  const isOld = outcome !== 'miss' && outcome !== 'collapsed' && outcome !== 'hit';
  if (isAwaited) parts.push('detail=changed');
  else if (isOld) parts.push(`detail=${outcome}`);
  return parts.join('; ');
}
