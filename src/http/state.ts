/** What the layers of a request leave for those further in, and for the log line at the end. */
import type Koa from 'koa';
import type { ReadOutcome } from '../cache/reader.ts';
import type { ApiKey } from '../keys/key.ts';
import type { QuotaStanding } from '../quota/quota.ts';
import type { FieldLines } from './head.ts';

/** One endpoint, as the log, the metrics and the error texts know it. */
export interface Route {
  readonly surface: 'v1' | 'v2';
  /** The OpenAPI operationId. */
  readonly name: string;
  /** The path's template; what logs and metrics show in place of the path. */
  readonly template: string;
  /** The one text of every 403 here, so that its reasons can't be told apart. */
  readonly forbidden: string;
  /** The one text of every 404 here, so that another workspace's resource can't be told from none. */
  readonly notFound: string;
  /** Whether a request to it costs its key anything; where not, it is only told how its quota stands. */
  readonly isCounted: boolean;
  /** What all its answers say of its deprecation; most often nothing. */
  readonly notices: FieldLines;
}

/** What an address was found to be. The same object for all requests of that address, as long as it is remembered. */
export interface Match {
  readonly route: Route;
  /** Those of the path. */
  readonly parameters: Readonly<Record<string, string>>;
  /** With a question mark in front. */
  readonly query: string;
}

export interface RequestState {
  requestId: string;
  traceparent: string | undefined;
  /** Of the answer, whatever it will be. */
  fields: FieldLines;
  /** Null where no endpoint has the address. */
  match: Match | null;
  /** Set once the caller is known to hold an active key. */
  key: ApiKey | null;
  /** How its quota stands, where the request isn't counted. */
  standing: QuotaStanding | null;
  /** The key that was given, active or not, as the log names it; null where it is none that was ever issued. */
  keyId: string | null;
  /** How the read was answered; null where none was made. */
  cache: ReadOutcome | null;
  /** Why the request failed, for the log line: the private message. */
  failure: unknown;
}

export type Context = Koa.ParameterizedContext<RequestState>;

/** The key of an authenticated request. Throws where a route was built without the authentication layer. */
export function keyOf(ctx: Context): ApiKey {
  if (ctx.state.key === null) throw new Error('A route reads the key but has no authentication in front of it');
  return ctx.state.key;
}

/** What the address of a matched request was found to be. Throws where a route was built without. */
export function matchOf(ctx: Context): Match {
  if (ctx.state.match === null) throw new Error('A route was built without its description');
  return ctx.state.match;
}

export function routeOf(ctx: Context): Route {
  return matchOf(ctx).route;
}
