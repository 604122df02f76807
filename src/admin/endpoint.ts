/** An endpoint of the admin listener is declared once: its router, the dashboard's list and `Allow` are made from it. */
import { Router } from '@koa/router';
import type { AdminMiddleware, AdminState, EndpointContext } from './context.ts';
import { AdminError } from './errors.ts';

export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `:name` for a parameter. */
  readonly path: string;
  /** One line for the page that lists the endpoints. */
  readonly what: string;
  readonly handle: (ctx: EndpointContext) => Promise<void>;
}

const VERBS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const;

/** Routes to the endpoints, and answers 405 with `Allow` if a path has an endpoint of another method. */
export function adminRouter(endpoints: readonly Endpoint[]): Router<AdminState> {
  const router = new Router<AdminState>({ strict: true, sensitive: true });
  for (const { method, path, handle } of endpoints) router[VERBS[method]](path, inRoute(path), handle);
  // After the endpoints, since the first route that matches answers.
  for (const path of new Set(endpoints.map((endpoint) => endpoint.path))) {
    const allow = methodsOf(endpoints, path).join(', ');
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

/** The router answers HEAD where it answers GET. */
function methodsOf(endpoints: readonly Endpoint[], path: string): readonly string[] {
  return endpoints
    .filter((endpoint) => endpoint.path === path)
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}

/** The end of the way for a path that no endpoint has. */
export function notFound(): AdminMiddleware {
  return () => {
    throw new AdminError(404, 'There is no such endpoint. GET / lists those that there are.', {
      privateMessage: 'no such endpoint',
    });
  };
}
