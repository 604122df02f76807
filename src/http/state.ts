/** Shared by the middlewares: the application's options, how a route is declared, and the state of a request. */
import type { RouterContext } from '@koa/router';
import type Koa from 'koa';
import type { ZodType } from 'zod';
import type { oas31 } from 'zod-openapi';
import type { Cache, CacheRead } from '../cache/reader.ts';
import type { ReadableFeed } from '../changes/open.ts';
import type { Clock } from '../time/clock.ts';
import type { CacheRequest } from '../cache/request.ts';
import type { Deprecation, OperationId } from '../domain/operations.ts';
import type { Authenticator } from '../keys/authenticate.ts';
import type { Scope } from '../domain/vocabulary.ts';
import type { ApiKey } from '../keys/key.ts';
import type { RequestLimiter } from '../keys/request-limiter.ts';
import type { QuotaLimiter, QuotaLimits, QuotaUsage } from '../quota/limiter.ts';
import { RedisWait } from '../redis/request-wait.ts';
import type { AnswerMemory } from '../upstream/answer-memory.ts';
import type { Unsent } from '../server/unsent.ts';
import type { PublicAppHooks, Refusal } from '../telemetry/request-report.ts';
import type { FixedTexts, Headers, Problem } from './problem.ts';
import type { Slot } from './slots.ts';

export interface PublicAppOptions {
  readonly clock: Clock;
  readonly sources: AnswerSources;
  readonly access: Access;
  readonly limits: Limits;
  readonly capacity: Capacity;
  /** R6: how long a request waits for Redis in all. */
  readonly redisTimeoutMs: number;
  /** The OpenAPI document in force; the same object until it changes. */
  readonly document: () => Promise<object>;
  readonly isDraining: () => boolean;
  readonly deprecations: readonly Deprecation[];
  readonly hooks: PublicAppHooks;
}

/** Who asks, and from where. */
export interface Access {
  readonly authenticator: Authenticator;
  /** The client's address, with trusted proxies taken into account. */
  readonly addressOf: (ctx: Context) => string;
}

export interface Limits {
  readonly quota: QuotaLimiter;
  /** Requests of one key that cost no quota (K8a: a look at one's own key). */
  readonly currentKey: RequestLimiter;
  /** The limits of keys that have none of their own; read on each request. */
  readonly defaults: () => QuotaLimits;
}

/** The resources of the process that requests may take. */
export interface Capacity {
  readonly maxInFlight: number;
  /** Bounds the answers that responses are made from. */
  readonly answerMemory: AnswerMemory;
  /** Sends bodies, and accounts for what clients have not taken yet. */
  readonly unsent: Unsent;
}

/** A request as a read of the cache, once its parameters are resolved. */
export interface ResolvedRead {
  readonly request: CacheRequest<unknown>;
  /** Workspaces that the answer may belong to, in lower case; null for all workspaces of the reader. */
  readonly workspaceIds: readonly string[] | null;
}

/** A request for `parseRequest`: one being served, or one that an operator wants explained. */
export interface RequestInput {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** All workspaces of the reader, in lower case; null for an operator who has not said who reads. */
  readonly ownWorkspaceIds: readonly string[] | null;
}

/** The sources that answers are made from. */
export interface AnswerSources {
  readonly cache: Cache;
  /** Null unless the store announces its changes. */
  readonly feed: ReadableFeed | null;
}

/** A route as it is declared. */
export interface RouteDeclaration {
  /** The OpenAPI operationId. */
  readonly name: OperationId;
  readonly surface: 'v1' | 'v2';
  /** Below the surface's prefix, with `:parameters`. */
  readonly path: string;
  /** Null if any active key may ask. */
  readonly scope: Scope | null;
  /** `none`: a request costs its key no quota and only shows how much is used (K8a). */
  readonly quota: 'counted' | 'none';
  /** The text of every 403 (K7: one text, so that its reasons cannot be distinguished). */
  readonly forbidden: string;
  /** The one text of every 404, so that a foreign record looks like none (K7). */
  readonly notFound: string;
  /** A Problem if the request is invalid. Throws ReaderNeeded. Null: the gateway answers by itself. */
  readonly parseRequest: ((input: RequestInput) => ResolvedRead | Problem) | null;
  /** Whether its answers have an ETag although `parseRequest` is null. */
  readonly hasEtag?: boolean;
  readonly answer: (ctx: RouteContext, sources: AnswerSources) => Promise<void> | void;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly oas31.ParameterObject[];
  /** S1: the failures that the operation has, beside 405. Without 400, an address that is too long is a 404. */
  readonly failures: readonly FailureStatus[];
  readonly response: ZodType;
  readonly success: string;
}

export interface Route extends RouteDeclaration {
  /** The path as logs, metrics and the OpenAPI document show it: `/v2/calls/{callId}`. */
  readonly template: string;
  readonly texts: FixedTexts;
}

export type FailureStatus = 400 | 401 | 403 | 404 | 429 | 500;

/** A response for `sendResponse`, with its own headers beside those that were collected. The body of a 304 is null. */
export interface Answer {
  readonly status: number;
  readonly body: Buffer | null;
  readonly headers: readonly Headers[];
  /** How the cache answered; null if it was not read, or what it brought is not sent. */
  readonly cache: Pick<CacheRead<unknown>, 'outcome' | 'failure'> | null;
}

interface Arrival {
  readonly requestId: string;
  readonly traceparent: string | undefined;
  readonly redisTimeoutMs: number;
}

export class RequestState {
  readonly requestId: string;
  /** The caller's W3C trace context, if it sent a valid one. */
  readonly traceparent: string | undefined;
  readonly redisWait: RedisWait;
  /** Headers of the response, whatever it will be; each middleware adds its own group. */
  readonly headers: Headers[];
  /** The slot that the request holds; null before it has been let in. */
  slot: Slot | null = null;
  /** The declared route of the path and of a method that it allows; null if there is none. */
  route: Route | null = null;
  /** The active key of the request. */
  apiKey: ApiKey | null = null;
  /** The key that was given, active or not, as the log names it; of one that is not known, if it was good within the hour. */
  keyId: string | null = null;
  /** Usage of the key's quota, on routes that cost no quota. */
  usage: QuotaUsage | null = null;
  /** Set by a route that answers, and for a problem in its end; null for the pages of the docs, which Koa sends. */
  answer: Answer | null = null;
  /** Set by a middleware or a route that refuses the request: the next ones are not called. */
  problem: Problem | null = null;
  /** Set if the key was refused, or a limit was used up. */
  refusal: Refusal | null = null;
  /** The error that was thrown, for the log. */
  failure: unknown = null;
  /** Whether the client left before the whole response was sent. */
  hasLeft = false;
  #left: AbortController | null = null;

  constructor({ requestId, traceparent, redisTimeoutMs }: Arrival, headers: Headers[]) {
    this.requestId = requestId;
    this.traceparent = traceparent;
    this.redisWait = new RedisWait(redisTimeoutMs);
    this.headers = headers;
  }

  /** Aborted when the client leaves before its response was sent. Made when it is first asked for: hits wait for nothing. */
  get signal(): AbortSignal {
    this.#left ??= new AbortController();
    if (this.hasLeft) this.#left.abort();
    return this.#left.signal;
  }

  /** The response has closed. */
  close(isSent: boolean): void {
    this.hasLeft = !isSent;
    this.slot?.leave();
    if (!isSent) this.#left?.abort();
  }
}

export type Context = Koa.ParameterizedContext<RequestState>;
/** Koa's middleware, with a `next` that resolves with nothing. */
export type Middleware<C = object> = (
  ctx: Koa.ParameterizedContext<RequestState, C>,
  next: () => Promise<void>,
) => Promise<void> | void;
/** Behind a router, which adds `ctx.params`. */
export type RouteContext = RouterContext<RequestState>;

/** The key of an authenticated request. Throws if a route has no authentication in front of it. */
export function apiKeyOf(ctx: Context): ApiKey {
  if (ctx.state.apiKey === null) throw new Error('A route reads the API key without authentication in front of it.');
  return ctx.state.apiKey;
}
