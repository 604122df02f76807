/** The outermost layer: the request's id, its clock, the headers that every response has, and the one report at its end. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { Context, Middleware, RequestState } from '../state.ts';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
/** A key that was sent as an id by mistake must not get into logs and to the store. */
const KEY_PREFIX = 'evg_';
/** Scheme and authority of a request target in absolute form. */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

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
}

export interface RequestContextOptions {
  readonly clock: Clock;
  readonly onFinished: (report: RequestReport) => void;
  /** Whether the process is about to stop: each answer then asks its connection to close. */
  readonly isDraining: () => boolean;
}

export function requestContext(options: RequestContextOptions): Middleware {
  return async (ctx, next) => {
    const startedMicros = options.clock.nowMicros();
    initialise(ctx);
    ctx.res.once('close', () => {
      options.onFinished(reportOf(ctx, (options.clock.nowMicros() - startedMicros) / 1000));
    });
    await next();
    // Asked as late as can be: also of what began before the process was told to stop, nothing is to follow.
    if (options.isDraining()) ctx.set('Connection', 'close');
  };
}

function initialise(ctx: Context): void {
  ctx.req.url = originForm(ctx.req.url ?? '/');
  const given = ctx.get('X-Request-Id');
  const traceparent = ctx.get('traceparent');
  ctx.state.requestId = REQUEST_ID.test(given) && !given.startsWith(KEY_PREFIX) ? given : randomUUID();
  ctx.state.traceparent = TRACEPARENT.test(traceparent) ? traceparent : undefined;
  ctx.state.route = null;
  ctx.state.key = null;
  ctx.state.keyId = null;
  ctx.state.cache = null;
  ctx.state.failure = null;
  ctx.set('X-Request-Id', ctx.state.requestId);
  ctx.set('Vary', 'Authorization, Accept-Encoding');
  ctx.set('X-Content-Type-Options', 'nosniff');
  ctx.set('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'");
  ctx.set('Referrer-Policy', 'no-referrer');
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

function reportOf(ctx: Context, durationMs: number): RequestReport {
  const { state } = ctx;
  return {
    requestId: state.requestId,
    keyId: state.keyId,
    surface: surfaceOf(ctx.path),
    route: state.route?.template ?? null,
    method: ctx.method,
    status: ctx.status,
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
