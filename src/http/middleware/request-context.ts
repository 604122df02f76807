/** Gives every request an id, the headers that every response begins with, an abort signal, and a report at its end. */
import { randomUUID } from 'node:crypto';
import { CLIENT_CLOSED_REQUEST, type RequestReport } from '../../telemetry/request-report.ts';
import { endRequestSpan } from '../request-span.ts';
import { activeSpan } from '../../tracing/spans.ts';
import { surfaceOf } from '../problem.ts';
import { type Context, type Middleware, type PublicAppOptions, RequestState } from '../state.ts';

/** The ids that a client may give its requests (A3: every response has an `X-Request-Id`). */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
/** A key that was sent as an id by mistake must not get into logs and to the store. */
const KEY_PREFIX = 'evg_';
/** Scheme and authority of a request target in absolute form. */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;
/** W3C Trace Context: the version ff and ids of zeros alone are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Every response has them. */
export const COMMON_HEADERS = {
  Vary: 'Authorization, Accept-Encoding',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
};

export function requestContext({ clock, redisTimeoutMs, hooks }: PublicAppOptions): Middleware {
  return (ctx, next) => {
    const startedMicros = clock.nowMicros();
    const span = activeSpan();
    const target = ctx.req.url ?? '/';
    if (!target.startsWith('/') || target.includes('#')) ctx.url = originForm(target);
    const { traceparent: given } = ctx.req.headers;
    const traceparent = typeof given === 'string' && TRACEPARENT.test(given) ? given : undefined;
    const requestId = requestIdOf(ctx.req.headers['x-request-id']);
    const headers = [{ 'X-Request-Id': requestId }, COMMON_HEADERS];
    ctx.state = new RequestState({ requestId, traceparent, redisTimeoutMs }, headers);
    ctx.res.on('close', () => {
      ctx.state.close(ctx.res.writableFinished);
      const durationMs = (clock.nowMicros() - startedMicros) / 1000;
      const report = reportOf(ctx, durationMs, span?.spanContext().traceId);
      if (span !== undefined) endRequestSpan(span, report);
      hooks.onRequest(report);
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
function reportOf(
  { state, res, path, method }: Context,
  durationMs: number,
  traceId: string | undefined,
): RequestReport {
  return {
    requestId: state.requestId,
    keyId: state.keyId,
    surface: surfaceOf(path),
    route: state.route?.template ?? null,
    method,
    status: res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST,
    durationMs,
    cache: state.answer?.cache?.outcome ?? null,
    storeFailure: state.answer?.cache?.failure ?? null,
    refusal: state.refusal,
    failure: state.failure,
    shedReason: state.failure === null && state.problem?.code === 'overloaded' ? state.problem.reason : null,
    aborted: state.hasLeft,
    traceId,
  };
}
