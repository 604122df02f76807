/** An endpoint of the admin listener is declared once: its router, the dashboard's list and `Allow` are made from it. */
import { Router, type RouterContext } from '@koa/router';
import type Koa from 'koa';
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

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
type Handler = (ctx: EndpointContext) => Promise<void>;

export interface Endpoint {
  readonly method: Method;
  /** With `:name` for a parameter. */
  readonly path: string;
  /** One line for the page that lists the endpoints. */
  readonly summary: string;
  readonly handler: Handler;
}

export function endpoint(method: Method, path: string, summary: string, handler: Handler): Endpoint {
  return { method, path, summary, handler };
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
  for (const { method, path, handler } of endpoints) router[VERBS[method]](path, inRoute(path), handler);
  // After the endpoints, since the first route that matches answers. A route for GET answers HEAD too.
  for (const path of new Set(endpoints.map((each) => each.path))) {
    const methods = endpoints.filter((each) => each.path === path).map((each) => each.method);
    const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
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
      if (error.status >= 500) log.error({ ...fields, err: thrown }, 'admin request failed');
      else if (!isRead || error.status === 401 || error.status === 403) log.warn(fields, 'admin request refused');
    }
  };
}
