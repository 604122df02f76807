/**
 * What tracing puts around the parts of a gateway when they are made. Each method gives back something of the same kind
 * to be used in its place; where tracing is off that is the very same thing. Nothing here imports OpenTelemetry.
 */
import type { AroundFetch } from '../cache/flights.ts';
import type { Listener } from '../telemetry/events.ts';
import type { SharedCache } from '../cache/shared-cache.ts';
import type { PublicAppHooks, RequestHandler } from '../http/app.ts';
import type { KeyLookup } from '../keys/registry.ts';
import type { FleetLimiter } from '../quota/limiter.ts';
import type { StoreHooks } from '../telemetry/hooks.ts';
import type { Fetch } from '../upstream/store.ts';

export interface Tracing {
  /** A span for each request, which `http` ends. */
  handler(handler: RequestHandler): RequestHandler;
  http(hooks: PublicAppHooks): PublicAppHooks;
  cache(hooks: Listener): Listener;
  /** A span for each flight; one of its own trace where nobody waits for it. */
  readonly flight: AroundFetch;
  /** A span for each call to the store, which carries it on by `traceparent`. */
  store(send: Fetch): Fetch;
  storeHooks(hooks: StoreHooks): StoreHooks;
  /** Spans for what is asked of Redis. */
  quota(quota: FleetLimiter): FleetLimiter;
  keys(keys: KeyLookup): KeyLookup;
  sharedCache(cache: SharedCache): SharedCache;
  /** Sends what was not sent yet, within `TRACES_GRACE_MS`. Never rejects. */
  close(): Promise<void>;
}

/** Tracing that is off. */
export const UNTRACED: Tracing = {
  handler: (handler) => handler,
  http: (hooks) => hooks,
  cache: (hooks) => hooks,
  flight: (_task, run) => run(),
  store: (send) => send,
  storeHooks: (hooks) => hooks,
  quota: (quota) => quota,
  keys: (keys) => keys,
  sharedCache: (cache) => cache,
  close: async () => {},
};
