/**
 * Finds the declared route of the path. The middlewares before the router need its fixed texts, its quota and its
 * deprecation headers, also on responses that never reach the router.
 */
import { type Deprecation, deprecationOf } from '../../domain/operations.ts';
import type { Route, RouteTable } from '../route.ts';
import type { Headers, Middleware } from '../state.ts';

export function findRoute(table: RouteTable, deprecations: readonly Deprecation[]): Middleware {
  const headersOf = new Map(table.routes.map((route) => [route, deprecationHeaders(route, deprecations)]));
  return (ctx, next) => {
    const found = table.find(ctx.path)?.route ?? null;
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
