/**
 * The public listener's application: what a request passes through, from top to bottom (K8: the order of checks; each request
 * with an active key counts).
 */
import { Router, type RouterContext } from '@koa/router';
import Koa from 'koa';
import type { Cache } from '../cache/reader.ts';
import { hasScope } from '../keys/key.ts';
import type { RequestHandler } from '../server/server.ts';
import { authenticate } from './middleware/authenticate.ts';
import { keyShedding, loadShedding } from './middleware/load-shedding.ts';
import { rateLimit } from './middleware/rate-limit.ts';
import { requestContext } from './middleware/request-context.ts';
import { ALLOWED_METHODS, errorHandler, forbidden, notFound, Problem } from './problem.ts';
import { sendResponse } from './respond.ts';
import { findRoute } from './route.ts';
import {
  apiKeyOf,
  type Middleware,
  type PublicAppOptions,
  type RequestState,
  type Route,
  type RouteContext,
} from './state.ts';
import { V1_ROUTES } from './v1.ts';
import { V2_ROUTES } from './v2.ts';

/** Path and query, in bytes as they were sent. */
const MAX_ADDRESS_BYTES = 8192;
const ADDRESS_TOO_LONG = `The address is longer than ${MAX_ADDRESS_BYTES} bytes.`;

/** Its handler never rejects. */
export function createPublicApp(options: PublicAppOptions): RequestHandler {
  const app = new Koa<RequestState>();
  app.on('error', options.hooks.onBroken);

  app.use(requestContext(options));
  app.use(sendResponse(options));
  app.use(errorHandler());
  app.use(findRoute([...V1_ROUTES, ...V2_ROUTES], options));
  app.use(loadShedding(options));
  app.use(options.docs.routes());
  app.use(authenticate(options));
  app.use(rateLimit(options));
  app.use(keyShedding());
  app.use(surfaceRouter('/v1', V1_ROUTES, options).routes());
  app.use(surfaceRouter('/v2', V2_ROUTES, options).routes());
  app.use(refuseUnknown());
  return app.callback();
}

function surfaceRouter(
  prefix: string,
  routes: readonly Route[],
  { cache }: { readonly cache: Cache },
): Router<RequestState> {
  const router = new Router<RequestState>({ prefix, strict: true, sensitive: true });
  for (const route of routes) {
    router.get(route.name, route.path, (ctx) => {
      authorize(route, ctx);
      return route.answer(ctx, cache);
    });
  }
  return router;
}

/**
 * The key must hold the route's scope, if it has one, and the workspace of the path, if there is one (K4: else 403; K5: a
 * workspace that is no UUID is nobody's). Then addresses longer than any valid one are refused before their query is parsed.
 */
function authorize(route: Route, ctx: RouteContext): void {
  const key = apiKeyOf(ctx);
  const { scope } = route;
  if (scope !== null && !hasScope(key, scope)) throw forbidden('scope_missing', `scope ${scope}`);
  const { workspaceId } = ctx.params;
  if (workspaceId !== undefined && !key.workspaceIds.includes(workspaceId.toLowerCase())) {
    throw forbidden('workspace_forbidden', "the workspace of the path is not among the key's");
  }
  // Node gives each byte of a request target as one character.
  if ((ctx.req.url?.length ?? 0) <= MAX_ADDRESS_BYTES) return;
  throw route.failures.includes(400) ? new Problem('address_too_long', ADDRESS_TOO_LONG) : notFound();
}

/** Fallback for requests that no route handled (A2: 405 if a route has the path, else 404). */
function refuseUnknown(): Middleware<Partial<Pick<RouterContext, 'matched'>>> {
  return ({ matched = [], method }) => {
    if (matched.length === 0) {
      throw new Problem('path_unknown', 'There is no such address in this API. GET /docs describes it.');
    }
    throw new Problem('method_not_allowed', `The method ${method} is not allowed here; use GET or HEAD.`, {
      headers: { Allow: ALLOWED_METHODS },
    });
  };
}
