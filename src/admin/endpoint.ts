/** What the admin listener serves, as data: the routes, the page that lists them and `Allow` all come from it. */
import { Router, type RouterContext } from '@koa/router';
import type Koa from 'koa';
import type { AdminMiddleware, AdminState } from './context.ts';
import { AdminError } from './errors.ts';

export type EndpointContext = RouterContext<AdminState>;

export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path's template, with `:name` for a parameter. */
  readonly path: string;
  /** One line for the page that lists the endpoints. */
  readonly what: string;
  readonly handle: (ctx: EndpointContext) => Promise<void>;
}

/** Routes to the endpoints: 405 with `Allow` for a known path and another method, 404 for any other path. */
export function mount(app: Koa<AdminState>, endpoints: readonly Endpoint[]): void {
  const router = new Router<AdminState>({ strict: true, sensitive: true });
  for (const { method, path, handle } of endpoints) {
    router.register(path, [method], async (ctx) => {
      ctx.state.route = path;
      await handle(ctx);
    });
  }
  // After all endpoints: the first match answers, so these only ever see methods that no endpoint of the path takes.
  for (const path of new Set(endpoints.map((endpoint) => endpoint.path))) {
    const allow = allowed(endpoints, path);
    router.all(path, (ctx) => {
      ctx.state.route = path;
      throw new AdminError(405, `${ctx.method} is not possible here. Allowed: ${allow}.`, {
        privateMessage: 'method not allowed',
        headers: { Allow: allow },
      });
    });
  }
  app.use(router.routes());
  app.use(noEndpoint);
}

/** The router answers HEAD wherever it answers GET. */
function allowed(endpoints: readonly Endpoint[], path: string): string {
  return endpoints
    .filter((endpoint) => endpoint.path === path)
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ');
}

const noEndpoint: AdminMiddleware = () => {
  throw new AdminError(404, 'There is no such endpoint. GET / lists those that there are.', {
    privateMessage: 'no such endpoint',
  });
};
