/** Endpoints of the admin listener: a declared route and its handler. Here they become a router, and failures answers. */
import { Router, type RouterContext } from '@koa/router';
import type Koa from 'koa';
import { RegistryUnavailableError } from '../keys/key.ts';
import type { AdminRoute, AnswerOf } from './api.ts';
import { AdminError, asAdminError } from './errors.ts';

/** `ctx.state` as the middlewares of an admin request fill it. */
export interface AdminState {
  /** The name of the caller's token; `anonymous` if the listener has no tokens, null before authentication. */
  who: string | null;
  /** The path template of the matched endpoint; null if none matched. */
  route: string | null;
}

export type AdminContext = Koa.ParameterizedContext<AdminState>;
export type AdminMiddleware = Koa.Middleware<AdminState>;
/** Behind a router, which adds `ctx.params`. */
export type EndpointContext = RouterContext<AdminState>;

export interface Endpoint {
  readonly route: AdminRoute;
  readonly handle: (ctx: EndpointContext) => Promise<void>;
}

/** An endpoint whose handler returns the answer. */
export function endpoint<R extends AdminRoute>(
  route: R,
  answer: (ctx: EndpointContext) => AnswerOf<R> | Promise<AnswerOf<R>>,
): Endpoint {
  return {
    route,
    handle: async (ctx) => {
      const body = await answer(ctx);
      ctx.status = route.status ?? 200;
      ctx.body = body;
    },
  };
}

/** Logs refusals and failures; a pino logger is one. */
export interface AdminLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const VERBS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const;

/** Routes to the endpoints, and answers 405 with `Allow` if a path has an endpoint of another method. */
export function adminRouter(endpoints: readonly Endpoint[]): Router<AdminState> {
  const router = new Router<AdminState>({ strict: true, sensitive: true });
  const allowed = new Map<string, string[]>();
  for (const { route, handle } of endpoints) {
    const path = route.path.replace(/\{(\w+)\}/g, ':$1');
    router[VERBS[route.method]](path, inRoute(path), handle);
    allowed.set(path, [...(allowed.get(path) ?? []), ...(route.method === 'GET' ? ['GET', 'HEAD'] : [route.method])]);
  }
  // After the endpoints, since the first route that matches answers. A route for GET answers HEAD too.
  for (const [path, methods] of allowed) {
    const allow = methods.join(', ');
    router.all(path, inRoute(path), (ctx) => {
      throw new AdminError(405, `${ctx.method} is not possible here. Allowed: ${allow}.`, {
        privateMessage: 'method not allowed',
        headers: { Allow: allow },
      });
    });
  }
  return router;
}

/** For the log line of a failure. */
function inRoute(path: string): AdminMiddleware {
  return (ctx, next) => {
    ctx.state.route = path;
    return next();
  };
}

/** Refuses a path that no endpoint has. */
export function notFound(): AdminMiddleware {
  return () => {
    throw new AdminError(404, 'There is no such endpoint. GET / lists those that there are.', {
      privateMessage: 'no such endpoint',
    });
  };
}

/** Who makes the change, for the audit. Throws if a route has no authentication in front of it. */
export function callerOf(ctx: { readonly state: AdminState }): string {
  if (ctx.state.who === null) throw new Error('A route reads the caller without authentication in front of it.');
  return ctx.state.who;
}

/** Renders whatever was thrown further in: the only place that sets a failure's status. */
export function errorHandler(log: AdminLog, addressOf: (ctx: AdminContext) => string): AdminMiddleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = asAdminError(thrown);
      const { method, state } = ctx;
      ctx.status = error.status;
      ctx.set({ ...error.headers });
      ctx.body = { error: { message: error.publicMessage } };
      const isRead = method === 'GET' || method === 'HEAD';
      // Never the path, which may hold anything: a token pasted in the wrong place, for instance.
      const { status, message: reason } = error;
      const fields = { method, route: state.route, status, who: state.who, address: addressOf(ctx), reason };
      // The log has the outage once, when it begins, and not a line each time that an open page asks again.
      if (isRead && thrown instanceof RegistryUnavailableError) return;
      if (error.status >= 500) log.error({ ...fields, err: thrown }, 'admin request failed');
      else if (!isRead || error.status === 401 || error.status === 403) log.warn(fields, 'admin request refused');
    }
  };
}
