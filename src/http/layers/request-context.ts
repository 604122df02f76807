/** What every request has: an id, a clock, the fields that every answer begins with, and the report at its end. */
import { randomUUID } from 'node:crypto';
import { fieldLine, fieldLines } from '../head.ts';
import type { Context, RequestState } from '../state.ts';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
/** A key that was sent as an id by mistake must not get into logs and to the store. */
const KEY_PREFIX = 'evg_';
/** Scheme and authority of a request target in absolute form. */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;
/** W3C Trace Context: neither the version ff nor ids of zeros alone are any. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Never sent: what logs of servers have for a client that went away before it was answered. */
const CLIENT_GONE = 499;

/** What became of a request, for the log and the metrics. Holds no path, query string or credential. */
export interface RequestReport {
  readonly requestId: string;
  readonly keyId: string | null;
  readonly surface: 'v1' | 'v2' | 'other';
  /** The route's template, or null where none matched. */
  readonly route: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  readonly cache: RequestState['cache'];
  readonly failure: unknown;
  /** The consumer went away before the whole answer was sent. */
  readonly aborted: boolean;
  /** Set by tracing, where it is on. */
  readonly traceId?: string;
}

const CONTENT_SECURITY_POLICY = 'Content-Security-Policy';
/** Nothing may be loaded by what is no page. */
const NOTHING = fieldLine(CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
const OF_EVERY_ANSWER = [
  fieldLines({ Vary: 'Authorization, Accept-Encoding', 'X-Content-Type-Options': 'nosniff' }),
  NOTHING,
  fieldLine('Referrer-Policy', 'no-referrer'),
].join('');

/** Gives the request its id and an empty state. */
export function beginRequest(ctx: Context): void {
  const { req } = ctx;
  if (!isOriginForm(req.url)) req.url = originForm(req.url ?? '/');
  const { traceparent } = req.headers;
  const requestId = requestIdOf(req.headers['x-request-id']);
  ctx.state = {
    requestId,
    traceparent: typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : undefined,
    // An id has no character that a field may not have.
    fields: `X-Request-Id: ${requestId}\r\n${OF_EVERY_ANSWER}`,
    match: null,
    key: null,
    standing: null,
    keyId: null,
    cache: null,
    failure: null,
  };
}

/** The caller's own, where it can be one. */
function requestIdOf(given: string | readonly string[] | undefined): string {
  const isUsable = typeof given === 'string' && REQUEST_ID.test(given) && !given.includes(KEY_PREFIX);
  return isUsable ? given : randomUUID();
}

function isOriginForm(target: string | undefined): boolean {
  return target !== undefined && target.startsWith('/') && !target.includes('#');
}

/**
 * A request target as path and query alone (RFC 9112 section 3.2). One in absolute form may hold any text for an
 * authority, and what parses addresses further in throws at some of them.
 */
function originForm(target: string): string {
  const [address = ''] = target.replace(ABSOLUTE, '').split('#');
  if (address.startsWith('/') || address === '*') return address;
  return `/${address}`;
}

/** For a page, which may load what the policy says. */
export function replacePolicy({ state }: Context, policy: string): void {
  state.fields = state.fields.replace(NOTHING, fieldLine(CONTENT_SECURITY_POLICY, policy));
}

/** To be made once the response has closed. */
export function reportOf(ctx: Context, durationMs: number): RequestReport {
  const { state } = ctx;
  const isUnanswered = !ctx.res.headersSent;
  return {
    requestId: state.requestId,
    keyId: state.keyId,
    surface: state.match?.route.surface ?? surfaceOf(ctx.path),
    route: state.match?.route.template ?? null,
    method: ctx.method,
    status: isUnanswered ? CLIENT_GONE : ctx.res.statusCode,
    durationMs,
    cache: state.cache,
    failure: state.failure,
    aborted: !ctx.res.writableFinished,
  };
}

/** Which surface an address belongs to, matched or not. */
export function surfaceOf(path: string): 'v1' | 'v2' | 'other' {
  if (path === '/v1' || path.startsWith('/v1/')) return 'v1';
  if (path === '/v2' || path.startsWith('/v2/')) return 'v2';
  return 'other';
}
