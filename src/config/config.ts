/** The configuration as the gateway uses it: typed, frozen, with units in the names. */
import type { Settings } from './schema.ts';
import type { NamedToken } from './tokens.ts';

type DeepReadonly<T> = T extends readonly (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

export type Config = DeepReadonly<ReturnType<typeof shape>>;

/** Makes the configuration of checked settings. Nothing of it can be changed afterwards. */
export function configOf(settings: Settings): Config {
  return deepFreeze(shape(settings));
}

function shape({ server, admin, redis, upstream, keys, rateLimit, api, cache, log }: Settings) {
  return {
    server: {
      host: server.host,
      port: server.port,
      trustedProxies: server.trustedProxies,
      drainDelayMs: server.drainDelay,
      maxConnections: server.maxConnections,
      maxConnectionsPerAddress: server.maxConnectionsPerAddress ?? Infinity,
      maxInFlight: server.maxInFlight,
      workers: server.workers,
    },
    admin: {
      host: admin.host,
      port: admin.port,
      maxConnectionsPerAddress: admin.maxConnectionsPerAddress,
      tokens: admin.token ?? noTokens(),
      allowedHosts: admin.allowedHosts,
    },
    redis: { url: redis.url, cacheUrl: redis.cacheUrl, timeoutMs: redis.timeout },
    upstream: {
      url: upstream.url,
      token: upstream.token,
      timeoutMs: upstream.timeout,
      maxResponseBytes: upstream.maxResponse,
      maxConnections: upstream.maxConnections,
      maxQueue: upstream.maxQueue,
      queueTimeoutMs: upstream.queueTimeout,
      maxRequestsPerSecond: upstream.maxRequestsPerSecond,
      reservePercent: upstream.reservePercent,
      retryPercent: upstream.retryPercent,
      breakerPercent: upstream.breakerPercent,
    },
    keys: { source: keys.source, graceMs: keys.grace },
    rateLimit: { perMinute: rateLimit.perMinute, perHour: rateLimit.perHour },
    api: { deprecations: api.deprecations },
    cache: cacheOf(cache),
    log: { level: log.level },
  };
}

function cacheOf({ memory, redisBytes, classes }: Settings['cache']) {
  const { list, evaluation, transcript, scorecard, rubric, dealInsights, notFound } = classes;
  return {
    memoryBytes: memory,
    redisBytes,
    classes: {
      list: times(list),
      evaluation: times(evaluation),
      transcript: times(transcript),
      scorecard: times(scorecard),
      rubric: times(rubric),
      dealInsights: times(dealInsights),
      notFound: times(notFound),
    },
    outdatedLimits: {
      list: list.outdatedLimit,
      evaluation: evaluation.outdatedLimit,
      transcript: transcript.outdatedLimit,
      scorecard: scorecard.outdatedLimit,
      rubric: rubric.outdatedLimit,
      dealInsights: dealInsights.outdatedLimit,
      notFound: notFound.outdatedLimit,
    },
  };
}

function noTokens(): NamedToken[] {
  return [];
}

function times({ fresh, stale, error }: { fresh: number; stale: number; error: number }) {
  return { freshMs: fresh, staleMs: stale, errorMs: error };
}

function deepFreeze<T extends object>(value: T): DeepReadonly<T>;
function deepFreeze(value: object): object {
  for (const inner of Object.values(value)) {
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  }
  return Object.freeze(value);
}
