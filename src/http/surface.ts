/** What the two surfaces have in common: the order of the layers in front of an endpoint. */
import { Router } from '@koa/router';
import Koa from 'koa';
import compose from 'koa-compose';
import { noEndpoint } from './middleware/no-endpoint.ts';
import { type ErrorForm, renderErrors } from './middleware/render-errors.ts';
import type { Context, Middleware, RequestState, Route } from './state.ts';

export interface Endpoint {
  /** The OpenAPI operationId. */
  readonly name: string;
  /** The path behind the surface's prefix, with `:parameters`. */
  readonly path: string;
  readonly forbidden: string;
  readonly notFound: string;
  /** Refuses a key that may not do this at all, before anything of the query is looked at. */
  readonly authorize: (ctx: Context) => void;
  readonly handle: (ctx: Context) => Promise<void>;
}

export interface SurfaceOptions {
  readonly prefix: 'v1' | 'v2';
  readonly endpoints: readonly Endpoint[];
  readonly errorForm: ErrorForm;
  readonly requireKey: Middleware;
  readonly recogniseKey: Middleware;
  readonly enforceQuota: Middleware;
}

/** One middleware for everything below `/v1` or `/v2`; it always answers. */
export function createSurface(options: SurfaceOptions): Middleware {
  const router = new Router<RequestState>({ prefix: `/${options.prefix}`, strict: true, sensitive: true });
  for (const endpoint of options.endpoints) {
    router.get(
      endpoint.path,
      nameRoute(routeFor(options.prefix, endpoint)),
      options.requireKey,
      options.enforceQuota,
      authorize(endpoint),
      endpoint.handle,
    );
  }
  const hasPath = (path: string): boolean => router.match(path, 'GET').pathAndMethod.length > 0;
  const stack = new Koa<RequestState>();
  stack.use(renderErrors(options.errorForm));
  stack.use(router.routes());
  stack.use(options.recogniseKey);
  stack.use(options.enforceQuota);
  stack.use(noEndpoint(hasPath));
  return compose(stack.middleware);
}

function routeFor(surface: 'v1' | 'v2', endpoint: Endpoint): Route {
  const { name, forbidden, notFound } = endpoint;
  const template = `/${surface}${endpoint.path.replaceAll(/:(\w+)/g, '{$1}')}`;
  return { surface, name, template, forbidden, notFound };
}

function nameRoute(route: Route): Middleware {
  return (ctx, next) => {
    ctx.state.route = route;
    return next();
  };
}

function authorize(endpoint: Endpoint): Middleware {
  return (ctx, next) => {
    endpoint.authorize(ctx);
    return next();
  };
}
