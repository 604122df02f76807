/** The admin listener's application: what a request passes through, from top to bottom. */
import Koa from 'koa';
import type { Clock } from '../clock.ts';
import type { KeyDirectory } from '../keys/key.ts';
import type { RequestHandler } from '../server.ts';
import type { Audit } from './audit.ts';
import { type CacheControls, cacheEndpoints } from './cache-endpoints.ts';
import { type AdminLog, type AdminMiddleware, type AdminState, callerOf } from './context.ts';
import { dashboardEndpoints } from './dashboard/files.ts';
import { type Pulse, pulseEndpoint } from './dashboard/pulse.ts';
import { adminRouter, type Endpoint, notFound } from './endpoint.ts';
import { errorHandler } from './errors.ts';
import { hostGuard, jsonGuard, originGuard, securityHeaders } from './guards.ts';
import { insightEndpoints, type InsightOptions } from './insight-endpoints.ts';
import { keyEndpoints } from './key-endpoints.ts';
import type { MetricsSource } from '../telemetry/metrics.ts';
import { type Readiness, readinessStatus, renderReadiness } from './readiness.ts';
import { authenticate, type AuthenticateOptions } from './tokens.ts';

export interface AdminOptions extends AuthenticateOptions {
  /** Names and addresses, besides loopback ones, under which the listener may be reached; without a port. */
  readonly allowedHosts: readonly string[];
  readonly isReady: () => Readiness;
  readonly registry: KeyDirectory;
  readonly cache: CacheControls;
  readonly insight: InsightOptions;
  readonly pulse: Pick<Pulse, 'view'>;
  /** The effective configuration, without secrets. */
  readonly config: () => unknown;
  readonly metrics: MetricsSource;
  readonly audit: Audit;
  readonly clock: Clock;
  readonly log: AdminLog;
}

export function createAdminApp(options: AdminOptions): RequestHandler {
  const probes = probeEndpoints(options);
  const endpoints = [
    ...operationEndpoints(options),
    ...keyEndpoints(options),
    ...cacheEndpoints(options),
    ...insightEndpoints(options),
    pulseEndpoint(options.pulse, options.insight.members.id),
  ];
  const dashboard = dashboardEndpoints([...probes, ...endpoints]);
  const app = new Koa<AdminState>();
  app.on('error', logBroken(options.log));

  app.use(requestState());
  app.use(securityHeaders());
  app.use(errorHandler(options.log));
  app.use(hostGuard(options.allowedHosts));
  app.use(originGuard());
  app.use(jsonGuard());
  // Open to anyone who passes the guards: the dashboard's files hold no data, and it sends a token for what it shows.
  app.use(adminRouter([...probes, ...dashboard]).routes());
  // Before a body is read, so that a stranger cannot make the gateway read any.
  app.use(authenticate(options));
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
    {
      method: 'GET',
      path: '/livez',
      what: '200 while the process runs',
      handle: async (ctx) => {
        ctx.body = { status: 'alive' };
      },
    },
    {
      method: 'GET',
      path: '/readyz',
      what: 'whether requests can be served, and how each dependency is doing; 503 while starting or draining',
      handle: async (ctx) => {
        const readiness = isReady();
        ctx.status = readinessStatus(readiness);
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = renderReadiness(readiness);
      },
    },
  ];
}

function operationEndpoints({ metrics, config, audit }: AdminOptions): readonly Endpoint[] {
  return [
    {
      method: 'GET',
      path: '/metrics',
      what: 'metrics in the Prometheus text format',
      handle: async (ctx) => {
        const text = await metrics.render();
        ctx.set('Content-Type', metrics.contentType);
        ctx.body = text;
      },
    },
    {
      method: 'GET',
      path: '/api/whoami',
      what: 'the name under which the audit records what you change',
      handle: async (ctx) => {
        ctx.body = { who: callerOf(ctx) };
      },
    },
    {
      method: 'GET',
      path: '/api/config',
      what: 'the effective configuration, secrets left out',
      handle: async (ctx) => {
        ctx.body = config();
      },
    },
    {
      method: 'GET',
      path: '/api/audit',
      what: 'who changed what, when, from what, to what; newest first',
      handle: async (ctx) => {
        ctx.body = { entries: await audit.entries() };
      },
    },
  ];
}
