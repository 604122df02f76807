/** The headers that describe a read to HTTP caches and to people: RFC 9111 (Age, Cache-Control), RFC 9211 (Cache-Status). */
import type { CacheRead } from './reader.ts';

type Provenance = Omit<CacheRead<unknown>, 'entry'>;

/** The name of this cache in Cache-Status. */
const CACHE_NAME = 'evalgate';

/**
 * A cache at the client takes an answer for fresh as long as `max-age` exceeds the answer's age, which begins at `Age`
 * (RFC 9111 section 4.2). So `max-age` is `Age` and what is left: a client never holds an answer for fresh any longer
 * than this cache does, and of an expired one not at all.
 */
export function cacheHeaders(read: Provenance): Record<string, string> {
  const ageSeconds = Math.floor(read.ageMs / 1000);
  const leftSeconds = Math.floor(read.ttlMs / 1000);
  const maxAgeSeconds = read.ttlMs > 0 ? ageSeconds + leftSeconds : 0;
  return {
    Age: String(ageSeconds),
    'Cache-Control': `private, max-age=${maxAgeSeconds}`,
    'Cache-Status': cacheStatus(read, leftSeconds),
  };
}

function cacheStatus({ outcome, forward = 'uri-miss', stored }: Provenance, ttlSeconds: number): string {
  if (outcome === 'hit') return `${CACHE_NAME}; hit; ttl=${ttlSeconds}`;
  if (outcome === 'miss') return `${CACHE_NAME}; fwd=${forward}${stored ? '; stored' : ''}`;
  if (outcome === 'collapsed') return `${CACHE_NAME}; fwd=${forward}; collapsed`;
  return `${CACHE_NAME}; hit; ttl=${ttlSeconds}; detail=${outcome}`;
}
