/**
 * Every setting of the gateway, once: where it stands in the file, the environment variable that overrides it, its
 * default, what is allowed, what it does and when to change it. Types, checks and the reference table come from here.
 */
import { z } from 'zod';
import { redisUrl } from './addresses.ts';
import { cacheSettings } from './cache-settings.ts';
import { deprecations } from './deprecations.ts';
import { duration, limit, oneOf } from './kinds.ts';
import { adminSettings, serverSettings } from './listener-settings.ts';
import { DAY, secret, setting } from './setting.ts';
import { upstreamSettings } from './upstream-settings.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

export const configSchema = z.strictObject({
  server: serverSettings,
  admin: adminSettings,
  redis: z.strictObject({
    url: secret(redisUrl(), {
      env: 'REDIS_URL',
      does: 'Redis for keys, quotas and what several processes share; without it all of that is in the memory of one process. A Redis, a Cluster, or the primary that Sentinels name.',
    }),
    cacheUrl: secret(redisUrl(), {
      env: 'REDIS_CACHE_URL',
      does: 'A second Redis for the response cache alone, which may evict. Without it the first one is used.',
    }),
    timeout: setting(duration(10, 500), {
      env: null,
      initial: '250ms',
      does: 'How long a request waits for Redis. After one timeout Redis counts as away for the process until it answers a probe, and no further request waits for it. Longer only for a Redis far away.',
    }),
  }),
  upstream: upstreamSettings,
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
  api: z.strictObject({
    deprecations: setting(deprecations(), {
      env: null,
      initial: [],
      does: 'Surfaces and operations whose answers say that they are going to end, and when. See [versions](versions.md).',
    }),
  }),
  cache: cacheSettings,
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
