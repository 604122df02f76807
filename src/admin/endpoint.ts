/** Endpoints of the admin listener: a declared route and its handler. Here they become a router, and failures answers. */
import { Readable } from 'node:stream';
import { Router, type RouterContext } from '@koa/router';
import type Koa from 'koa';
import type { Resolution } from '../cache/explain.ts';
import type { CacheRoom } from '../cache/open.ts';
import type { ChangesRoom } from '../changes/open.ts';
import type { CacheClass } from '../cache/ttl-policy.ts';
import type { Clock } from '../time/clock.ts';
import type { NamedToken, Role } from '../config/admin-tokens.ts';
import type { Logger } from '../log/logger.ts';
import type { KeyDirectory } from '../keys/registry.ts';
import type { RequestLimiter } from '../keys/request-limiter.ts';
import type { Instances } from '../redis/instances.ts';
import type { MetricsSource } from '../telemetry/metrics.ts';
import type { StateChange } from '../telemetry/health.ts';
import type { Readiness } from '../telemetry/readiness.ts';
import type { RedisHealth } from '../telemetry/redis-health.ts';
import type { StoreLoad } from '../telemetry/store-health.ts';
import { type AdminRoute, type AnswerOf, JSON_LINES, type ROUTES } from '../operations/api.ts';
import { AdminError, asAdminError, isOutage } from '../operations/errors.ts';
import type { Operations } from '../operations/open.ts';

/** The parts of the gateway that operators see and change. */
export interface AdminOptions {
  readonly access: AdminAccess;
  readonly status: AdminStatus;
  readonly registry: KeyDirectory;
  readonly operations: Pick<Operations, 'audit' | 'stats' | 'maintenance'>;
  readonly cache: AdminCache;
  readonly changes: Pick<ChangesRoom, 'announcements' | 'recentChanges'>;
  readonly settings: AdminSettings;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn' | 'error'>;
}

/** Who may ask, and from where. */
export interface AdminAccess {
  /** Without any, everybody who reaches the listener may do everything. */
  readonly tokens: () => readonly NamedToken[];
  /** Requests per address without a valid token. */
  readonly wrongTokens: RequestLimiter;
  /** The client's address, with trusted proxies taken into account. */
  readonly addressOf: (ctx: AdminContext) => string;
  /** Names and addresses, besides loopback ones, under which the listener may be reached; without a port. */
  readonly allowedHosts: readonly string[];
  /** Subnets of the proxies whose `X-Forwarded-Host` counts. */
  readonly trustedProxies: readonly string[];
  /** Secrets that sign announcements of changes; they may change while the gateway runs. */
  readonly changesSecrets: () => readonly string[];
}

/** How the gateway is doing. */
export interface AdminStatus {
  readonly instances: Instances;
  readonly readiness: () => Readiness;
  /** The newest first. */
  readonly stateChanges: () => readonly StateChange[];
  /** How many calls to the store may be under way, are, and wait. */
  readonly storeLoad: () => StoreLoad;
  /** Null for a gateway without Redis. */
  readonly redis: Pick<RedisHealth, 'memory'> | null;
  readonly metrics: MetricsSource;
  /** The effective configuration, without secrets. */
  readonly config: () => AnswerOf<typeof ROUTES.config>;
  /** Where the runbook is published. */
  readonly runbook: string;
}

export interface AdminCache extends Omit<CacheRoom, 'configure' | 'close'> {
  /** The cache's request for a path of the public API, by the rules of its routes; see `http/explain.ts`. */
  readonly resolve: (path: string, ownWorkspaceIds: readonly string[] | null) => Resolution;
}

/** Settings that the answers show, or go by. */
export interface AdminSettings {
  /** How many calls a second the store gets at most; null for no such limit. */
  readonly maxRequestsPerSecond: number | null;
  /** The source of a configured TTL. */
  readonly configuredBy: (
    cacheClass: CacheClass,
    name: 'fresh' | 'stale' | 'error',
  ) => 'default' | 'file' | 'environment';
  /** The share of outdated answers that is acceptable; it may change while the gateway runs. */
  readonly outdatedLimitOf: (cacheClass: CacheClass) => number;
  /** Whether the store announces its changes, all of them. */
  readonly areChangesAnnounced: boolean;
}

export interface AdminState {
  /** The name of the caller's token; `anonymous` if the listener has no tokens. Missing before authentication. */
  who?: string;
  /** The role of the caller's token; `admin` if the listener has no tokens. Missing before authentication. */
  role?: Role;
  /** The path template of the matched endpoint. Missing if none matched. */
  route?: string;
  /** The body as it was sent. Missing until it is read. */
  body?: Buffer;
}

export type AdminContext = Koa.ParameterizedContext<AdminState>;
export type AdminMiddleware = Koa.Middleware<AdminState>;
/** Behind a router, which adds `ctx.params`. */
export type EndpointContext = RouterContext<AdminState>;

export interface Endpoint {
  readonly route: AdminRoute;
  /** Whether OPTIONS is answered as GET is, which is the default check of HAProxy. */
  readonly takesOptions?: boolean;
  readonly handle: (ctx: EndpointContext) => Promise<void>;
}

/** An endpoint whose handler returns the answer. */
export function endpoint<R extends AdminRoute>(
  route: R,
  answer: (ctx: EndpointContext) => AnswerOf<R> | Promise<AnswerOf<R>>,
): Endpoint {
  return {
    route,
    handle: async (ctx) => {
      const body = await answer(ctx);
      ctx.status = route.status ?? 200;
      ctx.body = body;
    },
  };
}

/**
 * An endpoint that answers JSON lines, in pages as they are read. A failure before the first page is an answer like any
 * other; one after it breaks the answer off.
 */
export function linesEndpoint(
  route: AdminRoute,
  pages: (ctx: EndpointContext) => AsyncGenerator<readonly object[]>,
): Endpoint {
  return {
    route,
    handle: async (ctx) => {
      const lines = linesOf(pages(ctx));
      const first = await lines.next();
      ctx.type = `${JSON_LINES}; charset=utf-8`;
      ctx.body = Readable.from(first.done === true ? [] : withFirst(first.value, lines));
    },
  };
}

async function* linesOf(pages: AsyncGenerator<readonly object[]>): AsyncGenerator<string> {
  for await (const page of pages) yield page.map((line) => `${JSON.stringify(line)}\n`).join('');
}

async function* withFirst(first: string, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}

const VERBS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const;

/** Routes to the endpoints, and answers 405 with `Allow` if a path has an endpoint of another method. */
export function adminRouter(endpoints: readonly Endpoint[]): Router<AdminState> {
  const router = new Router<AdminState>({ strict: true, sensitive: true });
  const allowed = new Map<string, string[]>();
  for (const { route, takesOptions = false, handle } of endpoints) {
    const path = route.path.replace(/\{(\w+)\}/g, ':$1');
    router[VERBS[route.method]](path, inRoute(path), handle);
    if (takesOptions) router.options(path, inRoute(path), handle);
    const methods = [
      ...(route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]),
      ...(takesOptions ? ['OPTIONS'] : []),
    ];
    allowed.set(path, [...(allowed.get(path) ?? []), ...methods]);
  }
  // After the endpoints, since the first route that matches answers. A route for GET answers HEAD too.
  for (const [path, methods] of allowed) {
    const allow = methods.join(', ');
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

/** Refuses a path that no endpoint has. */
export function notFound(): never {
  throw new AdminError(404, 'There is no such endpoint. GET / lists those that there are.', {
    privateMessage: 'no such endpoint',
  });
}

/** Who calls, and with which role. Throws if a route has no authentication in front of it. */
export function callerOf({ state: { who, role } }: { readonly state: AdminState }): Pick<NamedToken, 'name' | 'role'> {
  if (who === undefined || role === undefined) {
    throw new Error('A route reads the caller without authentication in front of it.');
  }
  return { name: who, role };
}

/** Renders whatever was thrown further in: the only place that sets a failure's status. */
export function errorHandler({ log, access: { addressOf } }: AdminOptions): AdminMiddleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = asAdminError(thrown);
      const { method, state } = ctx;
      const { status, message: reason } = error;
      ctx.status = status;
      ctx.set({ ...error.headers });
      ctx.body = { error: { message: error.publicMessage } };
      const isRead = method === 'GET' || method === 'HEAD';
      // Never the path, which may hold anything: a token pasted in the wrong place, for instance.
      const { route = null, who = null } = state;
      const fields = { method, route, status, who, address: addressOf(ctx), reason };
      // The log has the outage once, when it begins, and not a line each time that an open page asks again.
      if (isRead && isOutage(thrown)) return;
      if (status >= 500) log.error({ ...fields, err: thrown }, 'admin request failed');
      else if (!isRead || status === 401 || status === 403) log.warn(fields, 'admin request refused');
    }
  };
}
