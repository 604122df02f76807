/** Changes of the cache's times as the audit has them. */
import type { CacheTtl, TtlEnd, TtlState } from '../cache/ttl-policy.ts';
import { formatDuration } from '../time/duration.ts';
import { isoOrNull } from './api.ts';
import type { AuditedChange } from './audit.ts';

export const TTL_NAMES = ['fresh', 'stale', 'error'] as const;

/** The TTLs in force, the names of those that are set, and the ends of those that have one. */
export function auditedTtl({ ttl, set }: TtlState): object {
  const ends = Object.fromEntries(
    TTL_NAMES.flatMap((name) => {
      const end = isoOrNull(set[`${name}Ms`] ?? null);
      return end === null ? [] : [[name, end]];
    }),
  );
  return {
    ...ttlTexts(ttl),
    set: TTL_NAMES.filter((name) => set[`${name}Ms`] !== undefined),
    ...(Object.keys(ends).length === 0 ? {} : { ends }),
  };
}

/** As the interface writes them, such as `30s`; only those that are given. */
export function ttlTexts(ttl: Partial<CacheTtl>): object {
  return Object.fromEntries(
    TTL_NAMES.flatMap((name) => {
      const ms = ttl[`${name}Ms`];
      return ms === undefined ? [] : [[name, formatDuration(ms)]];
    }),
  );
}

/** The audit's entry for TTLs that have ended by themselves. */
export function ttlEndEntry({ cacheClass, from, to }: TtlEnd): AuditedChange {
  return { who: 'evalgate', action: 'cache.ttl.end', target: cacheClass, from: auditedTtl(from), to: auditedTtl(to) };
}
