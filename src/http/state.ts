/** What the middlewares of a request leave in `ctx.state` for those after them, and for the log line at its end. */
import type { RouterContext } from '@koa/router';
import type Koa from 'koa';
import type { ReadOutcome } from '../cache/reader.ts';
import type { ApiKey } from '../keys/key.ts';
import type { QuotaUsage } from '../quota/limiter.ts';
import type { RedisWait } from '../redis/request-wait.ts';
import type { Refusal } from '../telemetry/request-report.ts';
import type { Representation } from './representation.ts';
import type { Route } from './route.ts';

/** Response headers by name. */
export type Headers = Readonly<Record<string, string>>;

/** A cached representation as it goes out: see respond.ts. */
export interface CachedResponse {
  readonly status: 200 | 304;
  /** Null for a 304. */
  readonly body: Awaited<ReturnType<Representation['body']>> | null;
}

export interface RequestState {
  requestId: string;
  /** The caller's W3C trace context, if it sent a valid one. */
  traceparent: string | undefined;
  /** How long it waits for Redis in all (R6). */
  readonly redisWait: RedisWait;
  /** Aborted when the client leaves before its response was sent. */
  signal: AbortSignal;
  /** Headers of the response, whatever it will be; each middleware adds its own group. */
  readonly headers: Headers[];
  /** The declared route of the path, whatever the method; null if there is none. */
  route: Route | null;
  /** The active key of the request. */
  apiKey: ApiKey | null;
  /** The key that was given, active or not, as the log names it. */
  keyId: string | null;
  /** Usage of the key's quota, on routes that cost no quota. */
  usage: QuotaUsage | null;
  /** How the cache answered; null if it was not read. */
  cache: ReadOutcome | null;
  /** Set by `respond`: a cached representation to be sent. */
  response: CachedResponse | null;
  /** Set if the key was refused, or a limit was used up. */
  refusal: Refusal | null;
  /** Why the request failed, for the log. */
  failure: unknown;
}

export type Context = Koa.ParameterizedContext<RequestState>;
/** Koa's middleware, with a `next` that resolves with nothing. */
export type Middleware<C = object> = (
  ctx: Koa.ParameterizedContext<RequestState, C>,
  next: () => Promise<void>,
) => Promise<void> | void;
/** Behind a router, which adds `ctx.params`. */
export type RouteContext = RouterContext<RequestState>;
export type RouteMiddleware = (ctx: RouteContext, next: () => Promise<void>) => Promise<void> | void;

/** The key of an authenticated request. Throws if a route has no authentication in front of it. */
export function apiKeyOf(ctx: Context): ApiKey {
  if (ctx.state.apiKey === null) throw new Error('A route reads the API key without authentication in front of it.');
  return ctx.state.apiKey;
}
