/**
 * The public listener's application: what a request passes through, from top to bottom (K8: the order of checks; each request
 * with an active key counts).
 */
import { Router } from '@koa/router';
import Koa from 'koa';
import compose from 'koa-compose';
import type { RequestHandler } from '../server/server.ts';
import { authenticate, recognise, renewKey } from './middleware/authenticate.ts';
import { keyShedding, loadShedding } from './middleware/load-shedding.ts';
import { rateLimit } from './middleware/rate-limit.ts';
import { requestContext } from './middleware/request-context.ts';
import { addDocs } from './openapi/docs.ts';
import { sendResponse } from './respond.ts';
import { answerAuthorized, begin, refuseUnknown } from './route.ts';
import { routesOf } from './routes.ts';
import type { PublicAppOptions, RequestState, RouteContext } from './state.ts';

/** Its handler never rejects. */
export function createPublicApp(options: PublicAppOptions): RequestHandler {
  const app = new Koa<RequestState>();
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  const { cache, feed } = options;
  const routes = routesOf(feed !== null);
  const enter = loadShedding(options);
  const limit = rateLimit(options);

  // Behind the match, so that a request that is shed is counted with its route, too.
  addDocs(router, enter, options.document);
  const parts = { sources: { cache, feed }, renewKey: renewKey(options) };
  const checks = [enter, authenticate(options), limit, keyShedding()];
  for (const route of routes) {
    router.get(
      route.name,
      `/${route.surface}${route.path}`,
      // Composed once: the router would do it for each request.
      compose<RouteContext>([begin(route, options), ...checks, answerAuthorized(route, parts)]),
    );
  }

  app.on('error', options.hooks.onBroken);
  app.use(requestContext(options));
  app.use(sendResponse(options));
  app.use(router.routes());
  // Only what has no route comes here.
  for (const check of [refuseUnknown(routes, options), enter, recognise(options), limit, keyShedding()]) app.use(check);
  return app.callback();
}
