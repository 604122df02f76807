/**
 * A route is declared once: its path, scope, parameters, response and fixed texts. The router, the OpenAPI document,
 * deprecation headers and `explain` are all made from these declarations.
 */
import { match } from 'path-to-regexp';
import { type Deprecation, deprecationOf } from '../domain/operations.ts';
import type { Headers, Middleware, Route } from './state.ts';

/** A query string, which is given without its question mark. */
export function parseQuery(querystring: string): URLSearchParams {
  // With a question mark in front: URLSearchParams would drop one that belongs to the query.
  return new URLSearchParams(`?${querystring}`);
}

/** The request depends on who reads, and nobody is named. */
export class ViewerNeeded extends Error {}

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
