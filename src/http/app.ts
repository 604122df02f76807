/** The public listener's application: what a request passes through, from top to bottom. */
import type { Router } from '@koa/router';
import Koa from 'koa';
import type { Cache } from '../cache/reader.ts';
import type { Deprecation } from '../domain/operations.ts';
import type { RequestHandler } from '../server.ts';
import type { PublicAppHooks } from '../telemetry/request-report.ts';
import { authenticate, type AuthenticateOptions } from './middleware/authenticate.ts';
import { errorHandler } from './middleware/error-handler.ts';
import { findRoute } from './middleware/find-route.ts';
import { loadShedding, type LoadSheddingOptions } from './middleware/load-shedding.ts';
import { notFound } from './middleware/not-found.ts';
import { rateLimit, type RateLimitOptions } from './middleware/rate-limit.ts';
import { requestContext, type RequestContextOptions } from './middleware/request-context.ts';
import { sendResponse } from './respond.ts';
import { RouteTable } from './route.ts';
import type { RequestState } from './state.ts';
import { Transcripts } from './transcripts.ts';
import { V1_ROUTES, v1Router } from './v1.ts';
import { V2_ROUTES, v2Router } from './v2.ts';

export interface PublicAppOptions
  extends
    Pick<RequestContextOptions, 'clock' | 'redisTimeoutMs'>,
    Pick<AuthenticateOptions, 'authenticator' | 'addressOf'>,
    Pick<RateLimitOptions, 'quota' | 'defaultLimits' | 'currentKeyLimit'>,
    Pick<LoadSheddingOptions, 'maxInFlight'> {
  readonly cache: Cache;
  /** `/openapi.json` and `/docs`, which need no key. */
  readonly docs: Router<RequestState>;
  readonly isDraining: () => boolean;
  readonly deprecations: readonly Deprecation[];
  readonly hooks: PublicAppHooks;
}

/** Its handler never rejects. */
export function createPublicApp(options: PublicAppOptions): RequestHandler {
  const { cache, docs, hooks } = options;
  const transcripts = new Transcripts();
  const app = new Koa<RequestState>();
  app.on('error', hooks.onBroken);

  app.use(requestContext({ ...options, onRequest: hooks.onRequest }));
  app.use(sendResponse(options));
  app.use(errorHandler());
  app.use(findRoute(new RouteTable([...V1_ROUTES, ...V2_ROUTES]), options.deprecations));
  app.use(loadShedding({ ...options, onShed: hooks.onShed }));
  app.use(docs.routes());
  app.use(authenticate({ ...options, onRefused: hooks.onAuthenticationRefused }));
  app.use(rateLimit({ ...options, onRefused: hooks.onQuotaRefused }));
  app.use(v1Router(cache, transcripts).routes());
  app.use(v2Router(cache, transcripts).routes());
  app.use(notFound());
  return app.callback();
}
