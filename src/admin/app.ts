/** The admin listener's application: what a request passes through, from top to bottom. */
import Koa from 'koa';
import type { RequestHandler } from '../server.ts';
import type { MetricsSource } from '../telemetry/metrics.ts';
import { type AnswerOf, PROBES, ROUTES } from './api.ts';
import { type CacheViewOptions, cacheViewEndpoints } from './cache.ts';
import { type CacheControlOptions, cacheControlEndpoints } from './cache-control.ts';
import { dashboardEndpoints } from './dashboard/files.ts';
import { adminRouter, callerOf, endpoint, errorHandler, notFound } from './endpoint.ts';
import type { AdminLog, AdminMiddleware, AdminState, Endpoint } from './endpoint.ts';
import { explainEndpoint, type ExplainOptions } from './explain.ts';
import { authenticate, hostGuard, jsonGuard, originGuard, securityHeaders } from './guards.ts';
import type { AuthenticateOptions } from './guards.ts';
import { type KeyEndpointOptions, keyEndpoints } from './keys.ts';
import { type Readiness, readinessStatus, renderReadiness } from './readiness.ts';

export type AdminOptions = AuthenticateOptions &
  KeyEndpointOptions &
  CacheViewOptions &
  CacheControlOptions &
  ExplainOptions & {
    /** Names and addresses, besides loopback ones, under which the listener may be reached; without a port. */
    readonly allowedHosts: readonly string[];
    readonly isReady: () => Readiness;
    /** The effective configuration, without secrets. */
    readonly config: () => AnswerOf<typeof ROUTES.config>;
    readonly metrics: MetricsSource;
    readonly log: AdminLog;
  };

export function createAdminApp(options: AdminOptions): RequestHandler {
  const probes = probeEndpoints(options);
  const endpoints = [
    ...operationEndpoints(options),
    ...keyEndpoints(options),
    ...cacheViewEndpoints(options),
    explainEndpoint(options),
    ...cacheControlEndpoints(options),
  ];
  const dashboard = dashboardEndpoints([...Object.values(PROBES), ...Object.values(ROUTES)]);
  const app = new Koa<AdminState>();
  app.on('error', logBroken(options.log));

  app.use(requestState());
  app.use(securityHeaders());
  app.use(errorHandler(options.log, options.addressOf));
  app.use(hostGuard(options.allowedHosts));
  app.use(originGuard());
  // Open to anyone who passes the guards: the dashboard's files hold no data, and it sends a token for what it shows.
  app.use(adminRouter([...probes, ...dashboard]).routes());
  // Before a body is read, so that a stranger cannot make the gateway read any.
  app.use(authenticate(options));
  app.use(jsonGuard());
  app.use(adminRouter(endpoints).routes());
  app.use(notFound());
  return app.callback();
}

function requestState(): AdminMiddleware {
  return (ctx, next) => {
    ctx.state = { who: null, route: null };
    return next();
  };
}

/**
 * Failures are rendered and logged by the error handler; what is left for Koa is a broken connection. Node's parse errors
 * carry the bytes that were sent, perhaps with a token, so only the message is logged.
 */
function logBroken(log: AdminLog): (error: unknown) => void {
  return (error) => {
    const reason = error instanceof Error ? error.message : 'unknown';
    log.warn({ reason }, 'admin connection broke');
  };
}

function probeEndpoints({ isReady }: AdminOptions): readonly Endpoint[] {
  return [
    endpoint(PROBES.livez, () => ({ status: 'alive' })),
    {
      route: PROBES.readyz,
      handle: async (ctx) => {
        const readiness = isReady();
        ctx.status = readinessStatus(readiness);
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = renderReadiness(readiness);
      },
    },
  ];
}

function operationEndpoints({ metrics, config, audit, members }: AdminOptions): readonly Endpoint[] {
  return [
    {
      route: ROUTES.metrics,
      handle: async (ctx) => {
        const text = await metrics.render();
        ctx.set('Content-Type', metrics.contentType);
        ctx.body = text;
      },
    },
    // Loaded when somebody asks: most gateways never need it.
    endpoint(ROUTES.openApi, async () => ({ ...(await import('./openapi.ts')).buildAdminDocument() })),
    endpoint(ROUTES.whoAmI, (ctx) => ({ who: callerOf(ctx) })),
    endpoint(ROUTES.config, config),
    endpoint(ROUTES.audit, async () => ({
      problem: members.isConnected()
        ? null
        : 'Redis does not answer, so only changes that are not yet written there are shown',
      entries: await audit.entries(),
    })),
  ];
}
