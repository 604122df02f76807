/**
 * Every setting of the gateway, once: its name in the file, the environment variable that overrides it, its default, what
 * is allowed, what it does and when to change it. Types, checks and the reference table come from here. The schema takes
 * the values as written, at the settings' keys.
 */
import type { z } from 'zod';
import { duration, integer, oneOf, optional, port, share, size } from './codecs.ts';
import { adminTokens, deprecations, host, hostNames, httpUrl, networks, redisUrl, upstreamToken } from './formats.ts';
import { secret, section, setting, settingsOf } from './settings.ts';

const SECOND = 1000;
const DAY = 86_400_000;
const MAX_REQUESTS = 1_000_000_000;
const NOT_FOUND = "the store's word that there is no such thing";
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const REQUEST_LINES = ['all', 'errors', 'off'] as const;

export const configSchema = section({
  server: section({
    host: setting(host(), { env: 'HOST', default: '127.0.0.1' }).describe(
      'Address that the public API listens on. `0.0.0.0` or `::` to be reached from other machines.',
    ),
    port: setting(port(), { env: 'PORT', default: 8080 }).describe('Port of the public API.'),
    trustedProxies: setting(networks(), { env: 'TRUSTED_PROXIES', default: [] }).describe(
      "Networks of the proxies in front, whose `X-Forwarded-For` is believed. Set it to your balancer's; never to networks that clients are in.",
    ),
    drainDelayMs: setting(duration(0, 600 * SECOND), { env: 'DRAIN_DELAY', default: '2s' }).describe(
      'How long after SIGTERM new requests are still accepted, so that balancers can notice. Longer than their check interval.',
    ),
    maxConnections: setting(integer(1, 1_000_000), { env: null, default: 10_000 }).describe(
      'Most connections of clients that a process holds open; further ones are closed at once. Below the limit on open files.',
    ),
    maxConnectionsPerAddress: setting(optional(integer(1, 1_000_000), Infinity), { env: null, default: null }).describe(
      'The same for the connections of one address; without it there is no such limit. Not behind a balancer, which is one address.',
    ),
    maxInFlight: setting(integer(1, 100_000), { env: null, default: 1000 }).describe(
      'Most requests that a process works on at a time; further ones are refused early, with 500 and `Retry-After`. Lower it where memory is scarce.',
    ),
    workers: setting(integer(1, 256), { env: 'WORKERS', default: 1 }).describe(
      'Processes that serve, beside one that keeps them running; more than one needs Redis. Set it to the number of cores that are to be used; each has a cache memory of its own.',
    ),
  }),
  admin: section({
    host: setting(host(), { env: 'ADMIN_HOST', default: '127.0.0.1' }).describe(
      'Address of the admin listener. Anything but a loopback address demands an admin token.',
    ),
    port: setting(port(), { env: 'ADMIN_PORT', default: 8081 }).describe('Port of the admin listener.'),
    maxConnectionsPerAddress: setting(integer(1, 1_000_000), { env: null, default: 100 }).describe(
      'Most connections of one address that the admin listener holds open; further ones are closed at once. More only if all probes and operators come through one proxy.',
    ),
    tokens: secret(adminTokens(), [], { path: 'admin.token', env: 'ADMIN_TOKEN' }).describe(
      'The admin listener answers only to these tokens; the name of a token goes into the audit.',
    ),
    allowedHosts: setting(hostNames(), { env: 'ADMIN_ALLOWED_HOSTS', default: [] }).describe(
      'Names and addresses, besides loopback ones, by which the admin listener may be addressed. Add those under which operators and Prometheus reach it.',
    ),
  }),
  redis: section({
    url: secret(redisUrl(), null, { env: 'REDIS_URL' }).describe(
      'Redis for keys, quotas and what several processes share; without it all of that is in the memory of one process. A Redis, a Cluster, or the primary that Sentinels name.',
    ),
    cacheUrl: secret(redisUrl(), null, { env: 'REDIS_CACHE_URL' }).describe(
      'A second Redis for the response cache alone, which may evict. Without it the first one is used.',
    ),
    timeoutMs: setting(duration(10, 500), { env: null, default: '250ms' }).describe(
      'How long a request waits for Redis. After one timeout Redis counts as away for the process until it answers a probe, and no further request waits for it. Longer only for a Redis far away.',
    ),
  }),
  upstream: section({
    url: setting(optional(httpUrl(), null), { env: 'UPSTREAM_URL', default: null }).describe(
      'Base address of the evaluation store. Without it only a demo starts, in front of the bundled sample store.',
    ),
    token: secret(upstreamToken(), null, { env: 'UPSTREAM_TOKEN' }).describe(
      'Bearer token for the evaluation store. Without it requests to the store carry no `Authorization`.',
    ),
    timeoutMs: setting(duration(1, 300 * SECOND), { env: 'UPSTREAM_TIMEOUT', default: '10s' }).describe(
      "How long a call to the store may take in all. Above the store's slowest good answer.",
    ),
    maxResponseBytes: setting(size(1000, 1_000_000_000), { env: null, default: '8MB' }).describe(
      "Largest answer of the store that is read, decoded. Above the store's largest transcript, well below the memory.",
    ),
    maxConnections: setting(integer(1, 10_000), { env: null, default: 50 }).describe(
      'Most calls that a process has in flight at the store, and so most connections that it opens. What the store bears, divided by the processes.',
    ),
    maxQueue: setting(integer(0, 100_000), { env: null, default: 100 }).describe(
      'How many calls of a process may wait for their turn at the store; further ones are refused at once. More where bursts are short, fewer where a late answer is no use.',
    ),
    queueTimeoutMs: setting(duration(0, 300 * SECOND), { env: null, default: '1s' }).describe(
      'How long a call may wait for its turn at the store before it is refused. Below `upstream.timeout`, of which the wait is a part.',
    ),
    reservePercent: setting(integer(0, 90), { env: null, default: 20 }).describe(
      'Share of `upstream.maxConnections` that one API key leaves to the others. 0 for a gateway with one consumer.',
    ),
    maxRequestsPerSecond: setting(optional(integer(1, 1_000_000), null), { env: null, default: null }).describe(
      'Most calls a second that all processes together send to the store, with a tenth of it at once after a pause; without it there is no such cap. For stores that have a quota.',
    ),
    retryPercent: setting(integer(0, 100), { env: null, default: 10 }).describe(
      'How many calls may be repeated, as a share of all, where a repetition can succeed. 0 for a store that must never be asked twice.',
    ),
    breakerPercent: setting(optional(integer(1, 100), null), { env: null, default: 50 }).describe(
      'Once more than this share of the recent calls (the last 80, of the last 10 s, once there are 10) has failed, the store is left alone, but for one probe a second. Without it calls go on whatever fails. Higher for a store that fails often and is of use all the same.',
    ),
  }),
  keys: section({
    source: setting(oneOf(['registry', 'upstream']), { env: 'KEYS_SOURCE', default: 'registry' }).describe(
      "`upstream`: a key that the registry doesn't know is looked up at the store. For stores that issue keys themselves.",
    ),
    graceMs: setting(duration(0, 7 * DAY), { env: 'KEY_GRACE', default: '10m' }).describe(
      'How long a confirmed key stays good while it cannot be checked. Shorter: revocation is sure sooner. Longer: outages are ridden out.',
    ),
  }),
  rateLimit: section({
    perMinute: setting(integer(1, MAX_REQUESTS), { env: 'RATE_LIMIT_PER_MINUTE', default: 120 }).describe(
      'Requests that a key may make in any 60 s, where it has no limit of its own.',
    ),
    perHour: setting(integer(1, MAX_REQUESTS), { env: 'RATE_LIMIT_PER_HOUR', default: 3000 }).describe(
      'Requests that a key may make in any 3600 s, where it has no limit of its own.',
    ),
  }),
  api: section({
    deprecations: setting(deprecations(), { env: null, default: [] }).describe(
      'Surfaces and operations whose answers say that they are going to end, and when. See [versions](versions.md).',
    ),
  }),
  cache: section({
    memoryBytes: setting(size(0, 1_000_000_000_000), { env: null, default: '64MB' }).describe(
      'Memory that a process gives to cached records and their rendered forms. More where the hit ratio is low and memory is free.',
    ),
    redisBytes: setting(optional(size(0, 1_000_000_000_000_000), null), { env: null, default: null }).describe(
      'Redis memory that the cache may fill, by an estimate; above it new answers are kept in memory only. Set it where keys and limits share a Redis without maxmemory. With maxmemory the cache leaves a tenth of that free there in any case.',
    ),
    classes: section({
      list: cacheTimes('LIST', 'a list page', ['30s', '5m', '1h']),
      evaluation: cacheTimes('EVALUATION', 'a report or call', ['5m', '1h', '24h']),
      transcript: cacheTimes('TRANSCRIPT', 'a transcript', ['1h', '24h', '7d']),
      scorecard: cacheTimes('SCORECARD', 'a scored scorecard', ['15m', '1h', '24h']),
      rubric: cacheTimes('RUBRIC', 'a rubric', ['10m', '1h', '24h']),
      dealInsights: cacheTimes('DEAL_INSIGHTS', 'deal insights', ['5m', '1h', '24h']),
      notFound: cacheTimes('NOT_FOUND', NOT_FOUND, ['15s', '0s', '0s']),
    }),
    outdatedLimits: section({
      list: outdatedLimit('list', 'a list page'),
      evaluation: outdatedLimit('evaluation', 'a report or call'),
      transcript: outdatedLimit('transcript', 'a transcript'),
      scorecard: outdatedLimit('scorecard', 'a scored scorecard'),
      rubric: outdatedLimit('rubric', 'a rubric'),
      dealInsights: outdatedLimit('dealInsights', 'deal insights'),
      notFound: outdatedLimit('notFound', NOT_FOUND),
    }),
  }),
  log: section({
    level: setting(oneOf(LOG_LEVELS), { env: 'LOG_LEVEL', default: 'info' }).describe(
      'Least grave log lines to write. `debug` while looking for a fault.',
    ),
    requests: setting(oneOf(REQUEST_LINES), { env: null, default: 'all' }).describe(
      'Which requests get a line in the log: all; those with a status of 400 or more (`errors`); or none (`off`). A failure of the gateway itself always gets one. `errors` if the balancer writes an access log.',
    ),
  }),
});

function cacheTimes(name: string, what: string, times: readonly [fresh: string, stale: string, error: string]) {
  const [fresh, stale, error] = times;
  const time = (suffix: string, written: string) =>
    setting(duration(0, 365 * DAY), { env: `CACHE_${name}_${suffix}`, default: written });
  return section({
    freshMs: time('FRESH', fresh).describe(
      `How long ${what} is served as it is. Longer spares the store; changes show up later.`,
    ),
    staleMs: time('STALE', stale).describe(
      `How long past its freshness ${what} is still served at once while one refresh runs behind. Longer means fewer waits.`,
    ),
    errorMs: time('ERROR', error).describe(
      `How long past its freshness ${what} is served when the store fails. Longer rides out longer outages.`,
    ),
  });
}

/** In the file it stands beside the times of the class. */
function outdatedLimit(name: string, what: string) {
  return setting(share(), { path: `cache.classes.${name}.outdatedLimit`, env: null, default: '2%' }).describe(
    `Share of answers that may be out of date with the time that is recommended for ${what}. Lower where that hurts more than load on the store; it changes the recommendation alone.`,
  );
}

/** All settings in the order of the file. */
export const SETTINGS = settingsOf(configSchema);

/** The configuration as the gateway uses it: typed, frozen, with units in the names. */
export type Config = z.output<typeof configSchema>;
