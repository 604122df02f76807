/** The admin listener's application: its guards in order, then its endpoints. */
import Koa from 'koa';
import type { Clock } from '../clock.ts';
import type { KeyDirectory } from '../keys/key.ts';
import type { Audit } from './audit.ts';
import { type CacheControls, cacheEndpoints } from './cache-endpoints.ts';
import type { AdminLog, AdminState } from './context.ts';
import { createDashboard } from './dashboard/files.ts';
import { type Pulse, pulseEndpoint } from './dashboard/pulse.ts';
import { type Endpoint, mount } from './endpoint.ts';
import { renderErrors } from './errors.ts';
import { guardHost, guardJson, guardOrigin, isProbe, securityHeaders } from './guards.ts';
import { insightEndpoints, type InsightOptions } from './insight-endpoints.ts';
import { keyEndpoints } from './key-endpoints.ts';
import type { MetricsSource } from './metrics/recorders.ts';
import { type Readiness, readinessStatus, renderReadiness } from './readiness.ts';
import { type AdminToken, authenticate } from './tokens.ts';

export interface AdminOptions {
  /** Without any, everybody who reaches the listener may do everything: then it only listens on loopback. */
  readonly tokens: readonly AdminToken[];
  /** Names and addresses, besides loopback ones, under which the listener may be reached; without a port. */
  readonly allowedHosts: readonly string[];
  readonly isReady: () => Readiness;
  readonly registry: KeyDirectory;
  readonly cache: CacheControls;
  readonly insight: InsightOptions;
  readonly pulse: Pick<Pulse, 'view'>;
  /** The effective configuration, with every secret left out already. */
  readonly config: () => unknown;
  readonly metrics: MetricsSource;
  readonly audit: Audit;
  readonly clock: Clock;
  readonly log: AdminLog;
}

/** The application; it is served by `createAdminServer`. */
export function createAdminApp(options: AdminOptions): Koa<AdminState> {
  const app = new Koa<AdminState>();
  // Failures are rendered and logged below; what is left for Koa is a connection that breaks. Node's parse errors carry
  // the bytes that were sent, a token among them perhaps, so the log gets the message alone.
  app.on('error', (error: unknown) => {
    const reason = error instanceof Error ? error.message : 'unknown';
    options.log.warn({ reason }, 'admin connection broke');
  });
  // What a request passes, in this order:
  // 1. its state, and the headers that every answer carries
  app.use(async (ctx, next) => {
    ctx.state = { who: null, route: null };
    await next();
  });
  app.use(securityHeaders);
  // 2. whatever fails further in becomes `{error: {message}}` here
  app.use(renderErrors(options.log));
  // 3. where it comes from: a web page elsewhere gets no further
  app.use(guardHost(options.allowedHosts));
  app.use(guardOrigin);
  // 4. what it carries, by its headers; the body itself is read by the endpoint, with its own limit
  app.use(guardJson);
  // 5. who it is; before the body is read, so that nobody unknown can make us read any
  const requireToken = authenticate(options.tokens);
  const listed = allEndpoints(options);
  const dashboard = createDashboard(listed);
  app.use(async (ctx, next) => {
    // The dashboard's files hold no data; what it shows, it asks for with a token.
    if (isProbe(ctx) || dashboard.isOpen(ctx.path)) await next();
    else await requireToken(ctx, next);
  });
  // 6. the endpoint, or 405, or 404
  mount(app, [...dashboard.endpoints, ...listed]);
  return app;
}

function allEndpoints(options: AdminOptions): readonly Endpoint[] {
  return [
    ...operationEndpoints(options),
    ...keyEndpoints(options),
    ...cacheEndpoints(options),
    ...insightEndpoints(options),
    pulseEndpoint(options.pulse, options.insight.members.id),
  ];
}

function operationEndpoints({ isReady, metrics, config, audit }: AdminOptions): readonly Endpoint[] {
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
