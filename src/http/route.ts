/**
 * A route is declared once: its path, scope, parameters, response and fixed texts. The router, the OpenAPI document,
 * deprecation headers and `explain` are all made from these declarations.
 */
import { match } from 'path-to-regexp';
import type { ZodType } from 'zod';
import type { oas31 } from 'zod-openapi';
import type { Cache } from '../cache/reader.ts';
import type { CacheRequest } from '../cache/request.ts';
import { type Deprecation, deprecationOf, type OperationId } from '../domain/operations.ts';
import type { Scope } from '../keys/key.ts';
import type { Headers, Middleware, RouteContext } from './state.ts';

/** A read of the cache that a request asks for. */
export interface StoreRequest {
  readonly request: CacheRequest<unknown>;
  /** Workspaces that the answer may belong to, in lower case; null for all workspaces of the reader. */
  readonly workspaceIds: readonly string[] | null;
}

/** A request for `parseRequest`: one being served, or one that an operator wants explained. */
export interface RequestView {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The workspaces of the reader, in lower case; null for an operator who has not said who reads. */
  readonly viewer: readonly string[] | null;
}

/** A query string, which is given without its question mark. */
export function parseQuery(querystring: string): URLSearchParams {
  // With a question mark in front: URLSearchParams would drop one that belongs to the query.
  return new URLSearchParams(`?${querystring}`);
}

/** The request depends on who reads, and nobody is named. */
export class ViewerNeeded extends Error {}

export interface Route {
  /** The OpenAPI operationId. */
  readonly name: OperationId;
  readonly surface: 'v1' | 'v2';
  /** Below the surface's prefix, with `:parameters`. */
  readonly path: string;
  /** The path as logs, metrics and the OpenAPI document show it: `/v2/calls/{callId}`. */
  readonly template: string;
  /** Null if any active key may ask. */
  readonly scope: Scope | null;
  /** `none`: a request costs its key no quota and only shows how much is used (K8a). */
  readonly quota: 'counted' | 'none';
  /** The one text of every 403, so that its reasons cannot be told apart (K7). */
  readonly forbidden: string;
  /** The one text of every 404, so that a foreign record looks like none (K7). */
  readonly notFound: string;
  /** Throws a Problem if the request is invalid, or ViewerNeeded. Null: the gateway answers by itself. */
  readonly parseRequest: ((view: RequestView) => StoreRequest) | null;
  readonly answer: (ctx: RouteContext, cache: Cache) => Promise<void> | void;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly oas31.ParameterObject[];
  /** The failures that the operation has, beside 405 (S1). Without 400, an address that is too long is a 404. */
  readonly failures: readonly FailureStatus[];
  readonly response: ZodType;
  readonly success: string;
}

export type FailureStatus = 400 | 401 | 403 | 404 | 429 | 500;

/** Declares a route. */
export function route(declaration: Omit<Route, 'template'>): Route {
  const { surface, path } = declaration;
  return { ...declaration, template: `/${surface}${path.replaceAll(/:(\w+)/g, '{$1}')}` };
}

export interface MatchedRoute {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Finds the route of a path before, or without, serving it; null if no route has the path. It matches as the router does: case
 * matters, and so does a trailing slash.
 */
export function routeTable(routes: readonly Route[]): (pathname: string) => MatchedRoute | null {
  const matchers = routes.map((declared) => {
    const prefix = `/${declared.surface}`;
    const options = { sensitive: true, trailing: false, decode: decodePart };
    return { declared, prefix, matches: match<Record<string, string>>(prefix + declared.path, options) };
  });
  return (pathname) => {
    for (const { declared, prefix, matches } of matchers) {
      const found = pathname.startsWith(prefix) && matches(pathname);
      if (found !== false) return { route: declared, params: found.params };
    }
    return null;
  };
}

/** A part that cannot be decoded is no id of anything; it is left as it is. */
function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Finds the declared route of the path. The middlewares before the router need its fixed texts, its quota and its
 * deprecation headers, also on responses that never reach the router.
 */
export function findRoute(
  routes: readonly Route[],
  { deprecations }: { readonly deprecations: readonly Deprecation[] },
): Middleware {
  const find = routeTable(routes);
  const headersOf = new Map(routes.map((declared) => [declared, deprecationHeaders(declared, deprecations)]));
  return (ctx, next) => {
    const found = find(ctx.path)?.route ?? null;
    if (found !== null) {
      const headers = headersOf.get(found);
      if (headers !== undefined) ctx.state.headers.push(headers);
      if (ctx.method === 'GET' || ctx.method === 'HEAD') ctx.state.route = found;
    }
    return next();
  };
}

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and a link to read more. */
function deprecationHeaders({ surface, name }: Route, deprecations: readonly Deprecation[]): Headers {
  const deprecation = deprecationOf(deprecations, surface, name);
  if (deprecation === null) return {};
  const { fromMs, untilMs, link } = deprecation;
  return {
    Deprecation: `@${Math.floor(fromMs / 1000)}`,
    ...(untilMs === null ? {} : { Sunset: new Date(untilMs).toUTCString() }),
    ...(link === null ? {} : { Link: `<${link}>; rel="deprecation"` }),
  };
}
