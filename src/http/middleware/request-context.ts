/** What every request has: an id, the headers that every response begins with, an abort signal, and a report at its end. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../clock.ts';
import { RedisWait } from '../../redis/request-wait.ts';
import { surfaceOf } from '../problem.ts';
import type { Context, Middleware, Refusal, RequestState } from '../state.ts';

/** What became of a request, for the log and the metrics. Holds no path, query string or credential. */
export interface RequestReport {
  readonly requestId: string;
  readonly keyId: string | null;
  readonly surface: 'v1' | 'v2' | 'other';
  /** The route's template, or null if none matched. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  readonly cache: RequestState['cache'];
  readonly refusal: Refusal | null;
  readonly failure: unknown;
  /** The client left before the whole response was sent. */
  readonly aborted: boolean;
  /** Set by tracing, if it is on. */
  readonly traceId?: string;
}

export interface RequestContextOptions {
  readonly clock: Clock;
  /** How long a request waits for Redis in all. */
  readonly redisTimeoutMs: number;
  /** Called once per request, when its response has been sent or its client has left. */
  readonly onRequest: (report: RequestReport, response: ServerResponse) => void;
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
/** A key that was sent as an id by mistake must not get into logs and to the store. */
const KEY_PREFIX = 'evg_';
/** Scheme and authority of a request target in absolute form. */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;
/** W3C Trace Context: the version ff and ids of zeros alone are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Never sent: the status that server logs give a request whose client left before it was answered. */
const CLIENT_CLOSED_REQUEST = 499;

const COMMON_HEADERS = {
  Vary: 'Authorization, Accept-Encoding',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
};

export function requestContext({ clock, redisTimeoutMs, onRequest }: RequestContextOptions): Middleware {
  return (ctx, next) => {
    const startedMicros = clock.nowMicros();
    const left = new AbortController();
    const target = ctx.req.url ?? '/';
    if (!target.startsWith('/') || target.includes('#')) ctx.url = originForm(target);
    const { traceparent } = ctx.req.headers;
    const requestId = requestIdOf(ctx.req.headers['x-request-id']);
    ctx.state = {
      requestId,
      traceparent: typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : undefined,
      redisWait: new RedisWait(redisTimeoutMs),
      signal: left.signal,
      headers: [{ 'X-Request-Id': requestId }, COMMON_HEADERS],
      route: null,
      apiKey: null,
      keyId: null,
      usage: null,
      cache: null,
      response: null,
      refusal: null,
      failure: null,
    };
    ctx.res.once('close', () => {
      if (!ctx.res.writableFinished) left.abort();
      onRequest(reportOf(ctx, (clock.nowMicros() - startedMicros) / 1000), ctx.res);
    });
    return next();
  };
}

/** The client's own id if it is valid, else a new one (A3). */
function requestIdOf(given: string | readonly string[] | undefined): string {
  const isUsable = typeof given === 'string' && REQUEST_ID.test(given) && !given.includes(KEY_PREFIX);
  return isUsable ? given : randomUUID();
}

/**
 * A request target as path and query alone (RFC 9112 section 3.2). One in absolute form may hold any text for an
 * authority, and parsers of addresses throw at some of them.
 */
function originForm(target: string): string {
  const [address = ''] = target.replace(ABSOLUTE, '').split('#');
  if (address.startsWith('/') || address === '*') return address;
  return `/${address}`;
}

/** Called once the response has closed. */
function reportOf({ state, res, path, method }: Context, durationMs: number): RequestReport {
  return {
    requestId: state.requestId,
    keyId: state.keyId,
    surface: surfaceOf(path),
    route: state.route?.template ?? null,
    method,
    status: res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST,
    durationMs,
    cache: state.cache,
    refusal: state.refusal,
    failure: state.failure,
    aborted: !res.writableFinished,
  };
}
