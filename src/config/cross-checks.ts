/** Settings that are each allowed but not together. */
import type { Config } from './config.ts';
import { parseRedisAddress } from '../redis/address.ts';
import { isLoopback } from './formats.ts';

export interface Conflict {
  /** The setting to blame, by id. */
  readonly setting: string;
  /** The others that take part; a conflict over a value that is itself faulty is not reported. */
  readonly others: readonly string[];
  readonly problem: string;
  readonly allowed: string;
}

const CONFLICTS: readonly (Conflict & { readonly isMet: (config: Config) => boolean })[] = [
  {
    setting: 'admin.host',
    others: ['admin.token'],
    isMet: ({ admin }) => !isLoopback(admin.host) && admin.tokens.length === 0,
    problem: 'other machines could reach the admin listener, and there is no admin token',
    allowed: 'a loopback address (127.0.0.1, ::1, localhost), or any with ADMIN_TOKEN or ADMIN_TOKEN_FILE set',
  },
  {
    setting: 'server.workers',
    others: ['redis.url'],
    isMet: ({ server, redis }) => server.workers > 1 && redis.url === null,
    problem: 'several processes share keys and quotas through Redis, and there is none',
    allowed: '1, or more with REDIS_URL or REDIS_URL_FILE set',
  },
  {
    setting: 'redis.cacheUrl',
    others: ['redis.url'],
    isMet: ({ redis }) => redis.cacheUrl !== null && redis.url === null,
    problem: 'it is the second Redis, and there is no first',
    allowed: 'an address together with REDIS_URL or REDIS_URL_FILE, which alone is enough',
  },
  {
    setting: 'admin.port',
    others: ['server.port', 'admin.host', 'server.host'],
    isMet: ({ admin, server }) => admin.port === server.port && admin.port !== 0 && overlap(admin.host, server.host),
    problem: 'the public API listens on the same address and port',
    allowed: 'a port other than PORT',
  },
];

/** Conflicts with which the gateway does not start. */
export function conflictsOf(config: Config): readonly Conflict[] {
  return CONFLICTS.filter(({ isMet }) => isMet(config));
}

function overlap(one: string, other: string): boolean {
  const isEverywhere = [one, other].some((host) => host === '0.0.0.0' || host === '::');
  return isEverywhere || one === other || (isLoopback(one) && isLoopback(other));
}

/** A shorter token can be guessed. */
export const MIN_TOKEN_LENGTH = 16;

/** Values that are allowed but hardly meant, in whole sentences. */
export function warningsOf(config: Config): readonly string[] {
  const { admin, upstream, cache } = config;
  const warnings = Object.entries(cache.classes)
    .filter(([, { staleMs, errorMs }]) => errorMs < staleMs)
    .map(
      ([name]) =>
        `cache.classes.${name}: "error" is shorter than "stale" and so changes nothing: a copy within "stale" is served whether the store fails or not.`,
    );
  const weak = admin.tokens.filter(({ token }) => token.length < MIN_TOKEN_LENGTH).map(({ name }) => name);
  if (weak.length > 0 && !isLoopback(admin.host)) {
    warnings.push(
      `ADMIN_TOKEN: other machines can reach the admin listener, and tokens of fewer than ${MIN_TOKEN_LENGTH} characters can be guessed: ${weak.join(', ')}. Make new ones: openssl rand -base64 24`,
    );
  }
  if (upstream.url !== null && upstream.token === null) {
    warnings.push('UPSTREAM_URL is set and UPSTREAM_TOKEN is not: requests to the store carry no Authorization.');
  }
  if (isCacheExposed(config)) {
    const name = config.redis.cacheUrl === null ? 'REDIS_URL' : 'REDIS_CACHE_URL';
    warnings.push(
      `${name}: cached records cross the network unencrypted. Set CACHE_ENCRYPTION_KEYS (make one: openssl rand -base64 32), or use TLS (rediss://).`,
    );
  }
  return warnings;
}

/**
 * Whether cached records leave this machine unencrypted: Redis is not at a loopback address, without TLS, and there are no
 * keys. A private network counts as well: others may be in it, and a name does not show where it leads.
 */
export function isCacheExposed({ redis, cache }: Config): boolean {
  const url = redis.cacheUrl ?? redis.url;
  if (url === null || cache.encryptionKeys.length > 0) return false;
  const { tls, nodes } = parseRedisAddress(url);
  return tls === null && nodes.some(({ host }) => !isLoopback(host));
}
