/**
 * Every setting of the gateway, once: where it stands in the file, the environment variable that overrides it, its
 * default, what is allowed, what it does and when to change it. Types, checks and the reference table come from here.
 */
import { z } from 'zod';
import { host, hostNames, httpUrl, networks, redisUrl } from './addresses.ts';
import { duration, integer, type Kind, limit, oneOf, optional, port, size } from './kinds.ts';
import { adminTokens, upstreamToken } from './tokens.ts';

/** A value as it can stand in the YAML file. */
export type Written = string | number | null | readonly string[];

export interface SettingInfo {
  /** The environment variable that overrides the file; null where there is none. */
  readonly env: string | null;
  /** The default, as it would be written in the file. */
  readonly initial: Written;
  /** Never shown, and can be given in a file named by `<env>_FILE`. */
  readonly secret: boolean;
  readonly does: string;
  readonly allowed: string;
}

export const settingInfo = z.registry<SettingInfo>();

const SECOND = 1000;
const DAY = 86_400_000;

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

function setting<T>(kind: Kind<T>, about: Omit<SettingInfo, 'allowed' | 'secret'>): z.ZodType<T> {
  return kind.schema.register(settingInfo, { ...about, secret: false, allowed: kind.allowed });
}

/** A secret has no default. */
function secret<T>(kind: Kind<T>, about: { env: string; does: string }): z.ZodType<T | null> {
  const { schema, allowed } = optional(kind);
  return schema.register(settingInfo, { ...about, initial: null, secret: true, allowed });
}

function cacheTimes(name: string, what: string, times: readonly [fresh: string, stale: string, error: string]) {
  const time = (suffix: string, initial: string, does: string): z.ZodType<number> =>
    setting(duration(0, 365 * DAY), { env: `CACHE_${name}_${suffix}`, initial, does });
  const [fresh, stale, error] = times;
  return z.strictObject({
    fresh: time('FRESH', fresh, `How long ${what} is served as it is. Longer spares the store; changes show up later.`),
    stale: time(
      'STALE',
      stale,
      `How long past its freshness ${what} is still served at once while one refresh runs behind. Longer means fewer waits.`,
    ),
    error: time(
      'ERROR',
      error,
      `How long past its freshness ${what} is served when the store fails. Longer rides out longer outages.`,
    ),
  });
}

export const configSchema = z.strictObject({
  server: z.strictObject({
    host: setting(host(), {
      env: 'HOST',
      initial: '127.0.0.1',
      does: 'Address that the public API listens on. `0.0.0.0` or `::` to be reached from other machines.',
    }),
    port: setting(port(), { env: 'PORT', initial: 8080, does: 'Port of the public API.' }),
    trustedProxies: setting(networks(), {
      env: 'TRUSTED_PROXIES',
      initial: [],
      does: "Networks of the proxies in front, whose `X-Forwarded-For` is believed. Set it to your balancer's; never to networks that clients are in.",
    }),
    drainDelay: setting(duration(0, 600 * SECOND), {
      env: 'DRAIN_DELAY',
      initial: '2s',
      does: 'How long after SIGTERM new requests are still accepted, so that balancers can notice. Longer than their check interval.',
    }),
    workers: setting(integer(1, 256), {
      env: 'WORKERS',
      initial: 1,
      does: 'Number of processes. This version runs 1 and refuses more: start several with the same Redis instead.',
    }),
  }),
  admin: z.strictObject({
    host: setting(host(), {
      env: 'ADMIN_HOST',
      initial: '127.0.0.1',
      does: 'Address of the admin listener. Anything but a loopback address demands an admin token.',
    }),
    port: setting(port(), { env: 'ADMIN_PORT', initial: 8081, does: 'Port of the admin listener.' }),
    token: secret(adminTokens(), {
      env: 'ADMIN_TOKEN',
      does: 'The admin listener answers only to these tokens; the name of a token goes into the audit.',
    }),
    allowedHosts: setting(hostNames(), {
      env: null,
      initial: [],
      does: 'Names, besides loopback ones, by which the admin listener may be addressed. Add the name under which operators reach it.',
    }),
  }),
  redis: z.strictObject({
    url: secret(redisUrl(), {
      env: 'REDIS_URL',
      does: 'Redis for keys, quotas and what several processes share; without it all of that is in the memory of one process. This version refuses Sentinels and Clusters.',
    }),
    cacheUrl: secret(redisUrl(), {
      env: 'REDIS_CACHE_URL',
      does: 'A second Redis for the response cache alone, which may evict. Without it the first one is used.',
    }),
  }),
  upstream: z.strictObject({
    url: setting(optional(httpUrl()), {
      env: 'UPSTREAM_URL',
      initial: null,
      does: 'Base address of the evaluation store. Without it the bundled sample store runs, with demo keys.',
    }),
    token: secret(upstreamToken(), {
      env: 'UPSTREAM_TOKEN',
      does: 'Bearer token for the evaluation store. Without it requests to the store carry no `Authorization`.',
    }),
    timeout: setting(duration(1, 300 * SECOND), {
      env: 'UPSTREAM_TIMEOUT',
      initial: '10s',
      does: "How long a call to the store may take in all. Above the store's slowest good answer.",
    }),
    maxResponse: setting(size(1000, 1_000_000_000), {
      env: null,
      initial: '8MB',
      does: "Largest answer of the store that is read, decoded. Above the store's largest transcript, well below the memory.",
    }),
    maxConnections: setting(integer(1, 10_000), {
      env: null,
      initial: 50,
      does: 'Most connections to the store that a process opens. What the store bears, divided by the processes.',
    }),
  }),
  keys: z.strictObject({
    source: setting(oneOf(['registry', 'upstream']), {
      env: 'KEYS_SOURCE',
      initial: 'registry',
      does: "`upstream`: a key that the registry doesn't know is looked up at the store. For stores that issue keys themselves.",
    }),
    grace: setting(duration(0, 7 * DAY), {
      env: 'KEY_GRACE',
      initial: '10m',
      does: 'How long a confirmed key stays good while it cannot be checked. Shorter: revocation is sure sooner. Longer: outages are ridden out.',
    }),
  }),
  rateLimit: z.strictObject({
    perMinute: setting(limit(), {
      env: 'RATE_LIMIT_PER_MINUTE',
      initial: 120,
      does: 'Requests that a key may make in any 60 s, where it has no limit of its own.',
    }),
    perHour: setting(limit(), {
      env: 'RATE_LIMIT_PER_HOUR',
      initial: 3000,
      does: 'Requests that a key may make in any 3600 s, where it has no limit of its own.',
    }),
  }),
  cache: z.strictObject({
    memory: setting(size(0, 1_000_000_000_000), {
      env: null,
      initial: '64MB',
      does: 'Memory that a process gives to cached records and their rendered forms. More where the hit ratio is low and memory is free.',
    }),
    classes: z.strictObject({
      list: cacheTimes('LIST', 'a list page', ['30s', '5m', '1h']),
      evaluation: cacheTimes('EVALUATION', 'a report or call', ['5m', '1h', '24h']),
      transcript: cacheTimes('TRANSCRIPT', 'a transcript', ['1h', '24h', '7d']),
      scorecard: cacheTimes('SCORECARD', 'a scored scorecard', ['15m', '1h', '24h']),
      rubric: cacheTimes('RUBRIC', 'a rubric', ['10m', '1h', '24h']),
      dealInsights: cacheTimes('DEAL_INSIGHTS', 'deal insights', ['5m', '1h', '24h']),
      notFound: cacheTimes('NOT_FOUND', "the store's word that there is no such thing", ['15s', '0s', '0s']),
    }),
  }),
  log: z.strictObject({
    level: setting(oneOf(LOG_LEVELS), {
      env: 'LOG_LEVEL',
      initial: 'info',
      does: 'Least grave log lines to write. `debug` while looking for a fault.',
    }),
  }),
});

/** All settings as written, with durations in milliseconds and sizes in bytes. */
export type Settings = z.output<typeof configSchema>;
