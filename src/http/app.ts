/**
 * The public listener's application: what a request passes through, from top to bottom (K8: the order of checks; each request
 * with an active key counts).
 */
import { Router } from '@koa/router';
import Koa from 'koa';
import compose from 'koa-compose';
import type { Cache } from '../cache/reader.ts';
import type { ReadableFeed } from '../changes/open.ts';
import type { Config } from '../config/config.ts';
import type { ConfigInForce } from '../config/effective.ts';
import type { LoadedConfig } from '../config/load.ts';
import { createClientAddress } from '../keys/client-address.ts';
import type { Keys } from '../keys/open.ts';
import type { QuotaLimiter } from '../quota/limiter.ts';
import { listen, type Listener, type ListenerHooks, type RequestHandler } from '../server/server.ts';
import { defaultUnsentBytes, Unsent } from '../server/unsent.ts';
import type { OwnReadiness } from '../telemetry/readiness.ts';
import type { PublicAppHooks } from '../telemetry/request-report.ts';
import type { Clock } from '../time/clock.ts';
import type { AnswerMemory } from '../upstream/answer-memory.ts';
import { authenticate, recognise, renewKey } from './middleware/authenticate.ts';
import { keyShedding, loadShedding } from './middleware/load-shedding.ts';
import { CURRENT_KEY_LIMIT, rateLimit } from './middleware/rate-limit.ts';
import { requestContext } from './middleware/request-context.ts';
import type { OpenApiDocument } from './openapi/document.ts';
import { addDocs } from './openapi/docs.ts';
import { errorBody } from './problem.ts';
import { traced } from './request-span.ts';
import { sendResponse } from './respond.ts';
import { answerAuthorized, begin, refuseUnknown } from './route.ts';
import { routesOf } from './routes.ts';
import type { PublicAppOptions, RequestState, RouteContext } from './state.ts';

export interface PublicContext {
  readonly inForce: ConfigInForce;
  readonly cache: Cache;
  /** Null unless the store announces its changes. */
  readonly feed: ReadableFeed | null;
  readonly keys: Pick<Keys, 'authenticator' | 'limiter'>;
  readonly quota: QuotaLimiter;
  readonly answerMemory: AnswerMemory;
  readonly readiness: Pick<OwnReadiness, 'isDraining'>;
  readonly hooks: PublicAppHooks & Required<ListenerHooks>;
  readonly clock: Clock;
}

export interface PublicListener extends Listener {
  /** The bodies that clients have not taken yet. */
  readonly unsent: Unsent;
}

/** Starts the public listener. Rejects with a StartError if its address cannot be used. */
export async function openPublic(context: PublicContext): Promise<PublicListener> {
  const { inForce, cache, feed, keys, quota, answerMemory, readiness, hooks, clock } = context;
  const { config, isTraced } = inForce.loaded;
  const { server, redis, api } = config;
  const { maxConnections, maxConnectionsPerAddress, maxInFlight } = server;
  const unsent = new Unsent({
    maxBytes: server.maxUnsentBytes ?? defaultUnsentBytes(),
    nowMs: () => clock.nowMicros() / 1000,
    onCut: hooks.onCut,
  });
  const app = createPublicApp({
    clock,
    sources: { cache, feed },
    access: { authenticator: keys.authenticator, addressOf: createClientAddress(server.trustedProxies) },
    limits: { quota, currentKey: keys.limiter(CURRENT_KEY_LIMIT), defaults: () => inForce.config.rateLimit },
    capacity: { maxInFlight, answerMemory, unsent },
    redisTimeoutMs: redis.timeoutMs,
    document: currentDocument(inForce),
    isDraining: () => readiness.isDraining,
    deprecations: api.deprecations,
    hooks,
  });
  const listener = await listen(isTraced ? traced(app) : app, server, {
    errorBody: (message, target) => errorBody(target?.split('?')[0] ?? '', 400, message),
    keepAliveTimeoutMs: server.keepAliveMs,
    unsent,
    maxConnections,
    maxConnectionsPerAddress,
    hooks,
  });
  return { ...listener, unsent };
}

/** The OpenAPI document of the configuration in force, made at the first request for it. */
function currentDocument(inForce: ConfigInForce): () => Promise<OpenApiDocument> {
  let last: { readonly of: LoadedConfig; readonly document: Promise<OpenApiDocument> } | null = null;
  return () => {
    const { loaded } = inForce;
    if (last?.of !== loaded) last = { of: loaded, document: openApiDocument(loaded.config) };
    return last.document;
  };
}

async function openApiDocument({ rateLimit: limits, api, changes }: Config): Promise<OpenApiDocument> {
  const { buildOpenApiDocument } = await import('./openapi/document.ts');
  return buildOpenApiDocument({ limits, deprecations: api.deprecations, hasFeed: changes.announced });
}

/** Its handler never rejects. */
function createPublicApp(options: PublicAppOptions): RequestHandler {
  const app = new Koa<RequestState>();
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  const { sources } = options;
  const routes = routesOf(sources.feed !== null);
  const enter = loadShedding(options);
  const limit = rateLimit(options);

  // Behind the match, so that a request that is shed is counted with its route, too.
  addDocs(router, enter, options.document);
  const parts = { sources, renewKey: renewKey(options) };
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
