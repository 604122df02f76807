/** The admin listener: what a request passes through, from top to bottom, and the HTTP server of its own. */
import { setImmediate } from 'node:timers/promises';
import Koa from 'koa';
import type { CacheRoom } from '../cache/open.ts';
import type { ChangesRoom } from '../changes/open.ts';
import { type ConfigInForce, originOf, redactedConfig } from '../config/effective.ts';
import { isLoopback } from '../config/formats.ts';
import { createClientAddress } from '../keys/client-address.ts';
import type { Keys } from '../keys/open.ts';
import type { Operations } from '../operations/open.ts';
import type { Instances } from '../redis/instances.ts';
import type { Clock } from '../time/clock.ts';
import type { Guard } from '../upstream/guard.ts';
import { listen, type Listener, StartError } from '../server/server.ts';
import type { Health } from '../telemetry/health.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { OwnReadiness, Readiness, Workers } from '../telemetry/readiness.ts';
import { fastestAt, type StoreLoad } from '../telemetry/store-health.ts';
import { type AnswerOf, PROBES, ROUTES } from '../operations/api.ts';
import { cacheViewEndpoints } from './cache.ts';
import { cacheControlEndpoints } from './cache-control.ts';
import { acceptSigned, changesEndpoints } from './changes.ts';
import { dashboardEndpoints } from './dashboard/files.ts';
import { adminRouter, callerOf, endpoint, errorHandler, notFound } from './endpoint.ts';
import type { AdminCache, AdminOptions, AdminState, AdminStatus, Endpoint } from './endpoint.ts';
import { explainEndpoint } from './explain.ts';
import {
  authenticate,
  authorized,
  hostGuard,
  jsonGuard,
  originGuard,
  securityHeaders,
  withoutBrackets,
} from './guards.ts';
import { keyEndpoints, stateEndpoints } from './keys.ts';
import { SingleFlight } from '../time/single-flight.ts';

/** Requests per address without a valid admin token. */
const TOKEN_LIMIT = { name: 'admin-tokens', points: 60, windowSeconds: 60 };
/** The target of a probe's request. */
const PROBE = /^(?:\/livez|\/readyz)(?:\?|$)/;

export interface AdminContext {
  readonly inForce: ConfigInForce;
  readonly keys: Pick<Keys, 'registry' | 'limiter'>;
  readonly operations: Operations;
  readonly cache: CacheRoom;
  /** By the rules of the public API's routes (`http/explain.ts`). */
  readonly resolve: AdminCache['resolve'];
  readonly changes: ChangesRoom;
  readonly telemetry: AdminTelemetry;
  readonly clock: Clock;
}

export interface AdminTelemetry {
  readonly instances: Instances;
  readonly logger: AdminOptions['log'];
  readonly health: Pick<Health, 'changes'>;
  readonly metrics: Pick<Metrics, 'registry'>;
  readonly readiness: OwnReadiness;
  /** Null in a gateway of one process. */
  readonly workers: Workers | null;
  readonly guard: Pick<Guard, 'status'>;
  /** Null for a gateway without Redis. */
  readonly redis: AdminStatus['redis'];
}

/**
 * Starts the listener apart from the public one: it answers even if that is busy or draining. Rejects with a StartError
 * if the address cannot be used, or if it is not loopback and no token is set.
 */
export async function openAdmin(context: AdminContext): Promise<Listener> {
  const options = optionsOf(context);
  const { host, port, maxConnectionsPerAddress } = context.inForce.config.admin;
  if (!isLoopback(withoutBrackets(host)) && options.access.tokens().length === 0) {
    throw new StartError(
      `The admin listener would be open to anyone who reaches ${host === '' ? 'this machine' : host}: that is no loopback address and ADMIN_TOKEN is not set. Set ADMIN_TOKEN, or set ADMIN_HOST to 127.0.0.1.`,
    );
  }
  return await listen(
    createAdminApp(options),
    { host: withoutBrackets(host), port },
    {
      portSetting: 'ADMIN_PORT',
      // Probes must be answered while somebody sends headers slowly.
      headersTimeoutMs: 5000,
      requestTimeoutMs: 30_000,
      keepAliveTimeoutMs: 5000,
      maxConnections: 512,
      maxConnectionsPerAddress,
      errorBody: (message) => ({ error: { message } }),
      isHostNeeded: ({ url = '' }) => !PROBE.test(url),
    },
  );
}

function optionsOf(context: AdminContext): AdminOptions {
  const { inForce, keys, operations, cache, resolve, changes, telemetry, clock } = context;
  const { instances, logger, health, metrics, readiness, workers, guard, redis } = telemetry;
  const { admin, server, upstream } = inForce.config;
  return {
    access: {
      tokens: () => inForce.config.admin.tokens,
      wrongTokens: keys.limiter(TOKEN_LIMIT),
      addressOf: createClientAddress(server.trustedProxies),
      allowedHosts: admin.allowedHosts,
      trustedProxies: server.trustedProxies,
      changesSecrets: () => inForce.config.changes.secrets,
    },
    status: {
      instances,
      readiness: () => readiness.now(workers?.status()),
      stateChanges: () => health.changes(),
      storeLoad: () => guard.status(),
      redis,
      metrics: {
        contentType: metrics.registry.contentType,
        render: () => workers?.metrics() ?? metrics.registry.metrics(),
      },
      config: () => redactedConfig(inForce.loaded),
      runbook: admin.runbook,
    },
    registry: keys.registry,
    operations,
    cache: { ...cache, resolve },
    changes,
    settings: {
      maxRequestsPerSecond: upstream.maxRequestsPerSecond,
      configuredBy: (cacheClass, name) => originOf(inForce.loaded, `cache.classes.${cacheClass}.${name}`),
      outdatedLimitOf: (cacheClass) => inForce.config.cache.classes[cacheClass].outdatedLimit,
      areChangesAnnounced: inForce.config.changes.announced,
    },
    clock,
    log: logger,
  };
}

function createAdminApp(options: AdminOptions) {
  const app = new Koa<AdminState>();
  // Failures are rendered and logged by the error handler; what is left for Koa is a broken connection. Node's parse
  // errors carry the bytes that were sent, perhaps with a token, so only the message is logged.
  app.on('error', (error: unknown) => {
    options.log.warn({ reason: error instanceof Error ? error.message : 'unknown' }, 'admin connection broke');
  });
  app.use(securityHeaders());
  app.use(errorHandler(options));
  // Before the guards: balancers and orchestrators cannot choose what they send, and there is nothing to guard. A probe
  // changes nothing, and its answer holds no secret.
  app.use(adminRouter(probeEndpoints(options)).routes());
  app.use(hostGuard(options.access.allowedHosts));
  app.use(originGuard(options.access));
  // Open to anyone who passes the guards: the dashboard's files hold no data, and it sends a token for what it shows.
  app.use(adminRouter(dashboardEndpoints(options.status)).routes());
  // The body of a signed call is read before its signature is known to be right; a stranger gets no further.
  app.use(acceptSigned(options.access));
  // Before any other body is read, so that a stranger cannot make the gateway read any.
  app.use(authenticate(options.access));
  app.use(jsonGuard());
  app.use(
    adminRouter(
      authorized(options.operations, [
        ...operationEndpoints(options),
        ...keyEndpoints(options),
        ...stateEndpoints(options),
        ...cacheViewEndpoints(options),
        explainEndpoint(options),
        ...cacheControlEndpoints(options),
        ...changesEndpoints(options),
      ]),
    ).routes(),
  );
  app.use(notFound);
  return app.callback();
}

function probeEndpoints({ status: { readiness } }: AdminOptions): readonly Endpoint[] {
  return [
    { ...endpoint(PROBES.livez, () => ({ status: 'alive' })), takesOptions: true },
    {
      route: PROBES.readyz,
      takesOptions: true,
      handle: async (ctx) => {
        const now = readiness();
        // 503 only when requests should go elsewhere. A dependency that is down takes no process out of service: it would
        // take out all of them at once, and each can still serve from its cache.
        ctx.status = now.status === 'ready' ? 200 : 503;
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = renderReadiness(now);
      },
    },
  ];
}

/** JSON with one line per dependency, to be read by eye, by grep and by machines. */
function renderReadiness({ status, dependencies }: Readiness): string {
  const lines = dependencies.map(
    ({ name, status: state, since, detail }) => `\n    ${JSON.stringify({ name, status: state, since, detail })}`,
  );
  const list = lines.length === 0 ? '[]' : `[${lines.join(',')}\n  ]`;
  return `{\n  "status": ${JSON.stringify(status)},\n  "dependencies": ${list}\n}\n`;
}

function storeCallsOf(load: StoreLoad): AnswerOf<typeof ROUTES.health>['storeCalls'] {
  const { limit, inFlight, queued } = load;
  return { limit, underWay: inFlight, waiting: queued, capacity: fastestAt(load) };
}

function operationEndpoints({ status, operations: { audit } }: AdminOptions): readonly Endpoint[] {
  const { instances, metrics, config, readiness, stateChanges, storeLoad } = status;
  const rendering = new SingleFlight<Buffer>();
  return [
    {
      route: ROUTES.metrics,
      handle: async (ctx) => {
        // It takes milliseconds of CPU, so all who ask in the same turn of the event loop share one.
        const text = await rendering.join('metrics', async () => {
          await setImmediate();
          return Buffer.from(await metrics.render());
        });
        ctx.set('Content-Type', metrics.contentType);
        ctx.body = text;
      },
    },
    // Loaded when somebody asks: most gateways never need it.
    endpoint(ROUTES.openApi, async () => ({ ...(await import('./openapi.ts')).buildAdminDocument() })),
    endpoint(ROUTES.whoAmI, (ctx) => {
      const { name, role } = callerOf(ctx);
      return { who: name, role };
    }),
    endpoint(ROUTES.config, config),
    endpoint(ROUTES.health, () => ({
      troubles: readiness().dependencies.flatMap(({ name, severity, deadline = null }) =>
        severity === undefined ? [] : [{ name, severity, deadline }],
      ),
      changes: stateChanges(),
      storeCalls: storeCallsOf(storeLoad()),
    })),
    endpoint(ROUTES.audit, async () => ({
      problem: instances.isConnected()
        ? null
        : `${instances.problem()}, so only changes that are not yet written there are shown`,
      entries: await audit.entries(),
    })),
  ];
}
