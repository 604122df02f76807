/**
 * Every setting of the gateway, once: its name in the file, the environment variable that overrides it, its default, what
 * is allowed, what it does and when to change it. Types, checks and the reference table come from here. The schema takes
 * the values as written, at the settings' keys.
 */
import type { z } from 'zod';
import { duration, integer, oneOf, optional, port, share, size, yesOrNo } from './codecs.ts';
import { adminTokens } from './admin-tokens.ts';
import {
  changesSecrets,
  deprecations,
  encryptionKeys,
  host,
  hostNames,
  httpUrl,
  networks,
  redisUrl,
  upstreamToken,
} from './formats.ts';
import { secret, section, setting, settingsOf } from './settings.ts';

const SECOND = 1000;
const DAY = 86_400_000;
const MAX_REQUESTS = 1_000_000_000;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const REQUEST_LINES = ['all', 'errors', 'off'] as const;

export const configSchema = section({
  server: section({
    host: setting(host, { env: 'HOST', default: '127.0.0.1' }).describe(
      'Address that the public API listens on. Set `::` to make it reachable from other machines: it takes clients of IPv6 and IPv4, and of IPv4 only on a system without IPv6.',
    ),
    port: setting(port, { env: 'PORT', default: 8080 }).describe('Port of the public API.'),
    trustedProxies: setting(networks, { env: 'TRUSTED_PROXIES', default: [] }).describe(
      "Networks of the proxies in front, whose `X-Forwarded-For` is trusted. Set it to your balancer's; never to networks that clients are in.",
    ),
    drainDelayMs: setting(duration(0, 600 * SECOND), { env: 'DRAIN_DELAY', default: '2s' }).describe(
      'How long new requests are still accepted after SIGTERM, so that balancers notice. Longer than their check interval.',
    ),
    maxConnections: setting(integer(1, 1_000_000), { env: null, default: 10_000 }).describe(
      'Most open connections of clients per process. For one more, the one is closed that has idled longest; if none idles, the new one. Below the limit on open files.',
    ),
    maxConnectionsPerAddress: setting(optional(integer(1, 1_000_000), Infinity), { env: null, default: null }).describe(
      'The same per address; no limit by default. Do not set it behind a balancer, which is one address.',
    ),
    keepAliveMs: setting(duration(1000, DAY), { env: null, default: '75s' }).describe(
      'How long an idle connection of a client stays open. Above the idle time of the balancer in front, so that the balancer closes first.',
    ),
    maxUnsentBytes: setting(optional(size(1_000_000, 1_000_000_000_000), null), { env: null, default: null }).describe(
      "Most bytes of answers per process that clients have not taken yet; of one API key, four fifths. Beyond it, connections of the one that has most are closed. By default an eighth of the heap's limit, 256MB at most. Raise it for many clients with slow connections.",
    ),
    maxInFlight: setting(integer(1, 100_000), { env: null, default: 1000 }).describe(
      'Most requests that a process serves at a time; twice as many may wait for the store. One API key, or one address without a key, leaves a fifth of both to the others; while several are busy, that fifth is for those that have less than an equal share. Further ones get 500 with `Retry-After` at once. Lower it if memory is scarce.',
    ),
    workers: setting(integer(1, 256), { env: 'WORKERS', default: 1 }).describe(
      'Number of serving processes; more than one needs Redis, and one more process supervises them. Set it to the number of cores to use; each process has its own cache memory.',
    ),
  }),
  admin: section({
    host: setting(host, { env: 'ADMIN_HOST', default: '127.0.0.1' }).describe(
      'Address of the admin listener. Any other than a loopback address requires an admin token.',
    ),
    port: setting(port, { env: 'ADMIN_PORT', default: 8081 }).describe('Port of the admin listener.'),
    maxConnectionsPerAddress: setting(integer(1, 1_000_000), { env: null, default: 100 }).describe(
      'Most open connections to the admin listener per address; further ones are closed at once. Raise it only if all probes and operators come through one proxy.',
    ),
    tokens: secret(adminTokens, [], { path: 'admin.token', env: 'ADMIN_TOKEN' }).describe(
      'The admin listener accepts only these tokens, each for what its role allows; the name of a token appears in the audit log.',
    ),
    runbook: setting(httpUrl, { env: null, default: 'https://docs.example.com/evalgate/runbook.md' }).describe(
      'Where you publish `docs/runbook.md`: the dashboard links to its sections. Set it together with the address in the alerts.',
    ),
    allowedHosts: setting(hostNames, { env: 'ADMIN_ALLOWED_HOSTS', default: [] }).describe(
      'Names and addresses of the admin listener, besides loopback ones. Add those that operators and Prometheus use.',
    ),
  }),
  redis: section({
    url: secret(redisUrl, null, { env: 'REDIS_URL' }).describe(
      'Redis for keys, quotas and the data that processes share; without it, they are in the memory of one process. One server, a Cluster, or a primary with Sentinels.',
    ),
    cacheUrl: secret(redisUrl, null, { env: 'REDIS_CACHE_URL' }).describe(
      'A second Redis, only for the response cache, which may evict. Without it, the first one is used.',
    ),
    timeoutMs: setting(duration(10, 500), { env: null, default: '250ms' }).describe(
      'How long a request waits for Redis. After one timeout, no further request of the process waits until Redis answers a probe. Raise it only for a distant Redis.',
    ),
  }),
  upstream: section({
    url: setting(optional(httpUrl, null), { env: 'UPSTREAM_URL', default: null }).describe(
      'Base address of the evaluation store. Without it, only a demo starts, in front of the bundled sample store.',
    ),
    token: secret(upstreamToken, null, { env: 'UPSTREAM_TOKEN' }).describe(
      'Bearer token for the evaluation store. Without it, requests to the store carry no `Authorization`.',
    ),
    timeoutMs: setting(duration(1, 300 * SECOND), { env: 'UPSTREAM_TIMEOUT', default: '10s' }).describe(
      "How long a call to the store may take in all. Above the store's slowest good answer.",
    ),
    maxResponseBytes: setting(size(1000, 1_000_000_000), { env: null, default: '8MB' }).describe(
      "Largest accepted answer of the store, after decompression. Above the store's largest transcript, well below the memory.",
    ),
    answerMemoryBytes: setting(optional(size(1_000_000, 1_000_000_000_000), null), {
      env: null,
      default: null,
    }).describe(
      "Most bytes of the store's answers under way per process: being read, parsed, rendered and compressed, which takes some ten times as much memory. A fifth is for answers of up to 1 MB, so that they do not wait for larger ones. One API key leaves a fifth to the others. By default a thirty-second of the heap's limit, 10MB at most. Further answers wait, for half of `upstream.timeout`; then their readers get 500 with `Retry-After`. Raise it if large transcripts are refused and memory is free.",
    ),
    maxConnections: setting(integer(1, 10_000), { env: null, default: 50 }).describe(
      'Most calls to the store in flight per process, and so most connections. With `upstream.adaptive`, only a ceiling: lower it for a store that must never see more, raise it for one that bears more.',
    ),
    adaptive: setting(yesOrNo, { env: null, default: true }).describe(
      'Whether the limit of calls in flight is found, between 1 and `upstream.maxConnections`, by how the store bears them. `false`: it is `upstream.maxConnections`. Set it to false if the first readers of a new process must not wait for turns: a limit that is found begins at 2 calls and doubles from there. See [capacity](capacity.md#the-capacity-of-the-store).',
    ),
    connectionMaxAgeMs: setting(duration(SECOND, DAY), { env: null, default: '60s' }).describe(
      'How long a connection to the store is used for new calls. Lower it if the store moves to other addresses and calls have to follow sooner; raise it if connecting is costly.',
    ),
    maxQueue: setting(integer(0, 100_000), { env: null, default: 1000 }).describe(
      'Most calls in the queue for the store per process; further ones are refused at once. `upstream.queueTimeout` bounds the wait; this bounds the memory that a burst takes, a few kilobytes per call. Lower it if many late answers are useless.',
    ),
    queueTimeoutMs: setting(duration(0, 300 * SECOND), { env: null, default: '1s' }).describe(
      'How long a call may wait in the queue for the store before it is refused; one that renews a copy from before a change, while a reader waits, may wait for `upstream.timeout`. Below `upstream.timeout`, which includes the wait.',
    ),
    reservePercent: setting(integer(0, 90), { env: null, default: 20 }).describe(
      'Share of `upstream.maxConnections` that one API key leaves to the others. 0 for a gateway with one consumer.',
    ),
    maxRequestsPerSecond: setting(optional(integer(1, 1_000_000), null), { env: null, default: null }).describe(
      'Most calls per second to the store by all processes together, a tenth of them at once after a pause; no limit by default. For stores with a quota.',
    ),
    retryPercent: setting(integer(0, 100), { env: null, default: 10 }).describe(
      'Retries in percent of all calls, if a retry can succeed. 0 for a store that has no capacity to spare. A call that met a connection just being closed is sent again in any case.',
    ),
    degradedPercent: setting(integer(1, 100), { env: null, default: 20 }).describe(
      'The store counts as degraded (`/readyz`, the page, a warning) while more than this percentage of its calls of the last 30 s failed, of at least 20. Raise it for a store that fails often and is still useful.',
    ),
    breakerPercent: setting(optional(integer(1, 100), null), { env: null, default: 50 }).describe(
      'The circuit of an API key opens if more than this percentage of its recent calls failed (the last 80 of the last 10 s, at least 10), and that of all keys if as many fail even without those of any one key: then only one probe per second is sent. `null` disables it. Raise it for a store that fails often and is still useful.',
    ),
  }),
  keys: section({
    graceMs: setting(duration(0, 7 * DAY), { env: 'KEY_GRACE', default: '10m' }).describe(
      'How long a confirmed key stays valid while it cannot be checked. Lower it for faster revocation in an outage; raise it to survive longer outages.',
    ),
  }),
  rateLimit: section({
    perMinute: setting(integer(1, MAX_REQUESTS), { env: 'RATE_LIMIT_PER_MINUTE', default: 120 }).describe(
      'Requests per key in any 60 s, unless the key has a limit of its own.',
    ),
    perHour: setting(integer(1, MAX_REQUESTS), { env: 'RATE_LIMIT_PER_HOUR', default: 3000 }).describe(
      'Requests per key in any 3600 s, unless the key has a limit of its own.',
    ),
  }),
  api: section({
    deprecations: setting(deprecations, { env: null, default: [] }).describe(
      'Versions and operations whose end is announced in their answers. See [versions](versions.md).',
    ),
  }),
  changes: section({
    announced: setting(yesOrNo, { env: 'CHANGES_ANNOUNCED', default: false }).describe(
      'Whether the store announces every change: then consumers have the feed `GET /v2/changes`. Set it only if the store announces all of them. See [the hook](store-interface.md#announcing-changes).',
    ),
    keepMs: setting(duration(60 * SECOND, 30 * DAY), { env: null, default: '7d' }).describe(
      'How long the feed keeps an event; of one workspace 100,000 at most. A consumer that was away for longer has to read all calls once. Raise it if consumers are away for longer, and Redis has room (some 100 bytes per event).',
    ),
    secrets: secret(changesSecrets, [], { path: 'changes.secret', env: 'CHANGES_SECRET' }).describe(
      'Secrets of Standard Webhooks with which the store signs its announcements: then they need no admin token. Several while you rotate them.',
    ),
  }),
  cache: section({
    memoryBytes: setting(optional(size(0, 1_000_000_000_000), null), {
      env: null,
      default: null,
    }).describe(
      'Memory for cached records and their rendered forms per process, shared fairly by API keys. By default 64MB, or an eighth of the memory that a container may have if that is less. Raise it if the hit ratio is low and memory is free.',
    ),
    redisBytes: setting(optional(size(0, 1_000_000_000_000_000), null), { env: null, default: null }).describe(
      'Redis memory that the cache may fill, by an estimate. API keys share it: near it, copies make room, first those that only came in lists, then those of the keys that have most. Set it if keys and limits share a Redis without maxmemory. With maxmemory, the cache always leaves a tenth of it free there.',
    ),
    refreshRate: setting(integer(0, 10_000), { env: 'CACHE_REFRESH_RATE', default: 0 }).describe(
      'Most records per second, of all processes together, that are renewed in the background after the store has announced that they changed, if they were read within their `stale` and the store has room. 0: each is renewed when it is next read, and that reader waits for the store. Set it if changed records are soon read again, and the store has calls to spare.',
    ),
    encryptionKeys: secret(encryptionKeys, [], { env: 'CACHE_ENCRYPTION_KEYS' }).describe(
      'Keys with which cached records are encrypted in Redis (AES-256-GCM): the first encrypts, all decrypt. Without any, they are stored as they are. Set them if others can read Redis, its backups or the network to it. See [encryption](redis.md#encryption).',
    ),
    classes: section({
      list: cacheClass('LIST', 'a list page', ['30s', '5m', '1h']),
      evaluation: cacheClass('EVALUATION', 'a report or call', ['5m', '1h', '24h']),
      transcript: cacheClass('TRANSCRIPT', 'a transcript', ['1h', '24h', '7d']),
      scorecard: cacheClass('SCORECARD', 'a scored scorecard', ['15m', '1h', '24h']),
      rubric: cacheClass('RUBRIC', 'a rubric', ['10m', '1h', '24h']),
      dealInsights: cacheClass('DEAL_INSIGHTS', 'deal insights', ['5m', '1h', '24h']),
      notFound: cacheClass('NOT_FOUND', 'a not-found answer', ['15s', '0s', '0s']),
    }),
  }),
  objectives: section({
    hitP99Ms: setting(duration(1, 60 * SECOND), { env: null, default: '50ms' }).describe(
      'Within this time 99 of 100 reads that a copy answers are to be answered. `/readyz`, the page and alerts watch it. Set it to what your consumers were promised.',
    ),
    missP99Ms: setting(duration(1, 300 * SECOND), { env: null, default: '1s' }).describe(
      'The same of reads that wait for the store. Set it above what the store takes for 99 of 100 calls on a good day.',
    ),
    availability: setting(share(99.999), { env: null, default: '99.9%' }).describe(
      'Share of requests that are to be answered; failed are 5xx, and 401 for keys that were good within the hour. Below 100%: the rest is the budget of the alerts.',
    ),
  }),
  log: section({
    level: setting(oneOf(LOG_LEVELS), { env: 'LOG_LEVEL', default: 'info' }).describe(
      'Lowest level that is written. `debug` while you look for a fault.',
    ),
    requests: setting(oneOf(REQUEST_LINES), { env: null, default: 'all' }).describe(
      'Which requests get a line in the log: all; those with a status of 400 or more (`errors`); or none (`off`). A failure of the gateway itself always gets one. `errors` if the balancer writes an access log.',
    ),
  }),
});

function cacheClass(name: string, what: string, times: readonly [fresh: string, stale: string, error: string]) {
  const [fresh, stale, error] = times;
  const time = (suffix: string, written: string) =>
    setting(duration(0, 365 * DAY), { env: `CACHE_${name}_${suffix}`, default: written });
  return section({
    freshMs: time('FRESH', fresh).describe(
      `How long ${what} is served without a refresh. Longer means fewer store calls; changes show up later.`,
    ),
    staleMs: time('STALE', stale).describe(
      `How long past its freshness ${what} is still served while one refresh runs in the background. Longer means fewer waits.`,
    ),
    errorMs: time('ERROR', error).describe(
      `How long past its freshness ${what} is served if the store fails. Raise it to survive longer outages.`,
    ),
    outdatedLimit: setting(share(), { env: null, default: '2%' }).describe(
      `Share of outdated answers that the time recommended for ${what} may cause. Lower it if those are worse than load on the store; it changes only the recommendation.`,
    ),
  });
}

/** All settings in the order of the file. */
export const SETTINGS = settingsOf(configSchema);

/** The configuration as the gateway uses it: typed, frozen, with units in the names. */
export type Config = z.output<typeof configSchema>;
