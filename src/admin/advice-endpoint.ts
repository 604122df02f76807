/** GET /api/cache/advice: what the hit ratio and the store's load would be with other times, from live traffic. */
import { adviceOf, type ClassAdvice } from '../cache/what-if/advice.ts';
import type { Measured } from '../cache/what-if/feed.ts';
import type { WhatIf } from '../cache/what-if/what-if.ts';
import type { CacheClass, TtlPolicy } from '../cache/ttl-policy.ts';
import type { Clock } from '../clock.ts';
import type { Endpoint } from './endpoint.ts';

export interface AdviceEndpointOptions {
  readonly whatIf: Pick<WhatIf, 'reports'>;
  readonly times: Pick<TtlPolicy, 'of'>;
  /** The share of outdated answers that is put up with; it may change while the gateway runs. */
  readonly outdatedLimits: () => Readonly<Record<CacheClass, number>>;
  readonly clock: Clock;
}

/** Rates over less than this would be of chance. */
const SHORTEST_MS = 1000;

export function adviceEndpoint({ whatIf, times, outdatedLimits, clock }: AdviceEndpointOptions): Endpoint {
  return {
    method: 'GET',
    path: '/api/cache/advice',
    what: 'for each class what other times would do to hit ratio, store load and staleness, and which one to set',
    handle: async (ctx) => {
      const reports = await whatIf.reports();
      const nowMs = clock.nowMs();
      const snapshots = reports.map(({ snapshot }) => snapshot);
      const measured = reports.flatMap((report) => report.measured);
      ctx.body = {
        at: new Date(nowMs).toISOString(),
        processes: reports.length,
        classes: adviceOf(snapshots, { times, outdatedLimits: outdatedLimits(), nowMs }).map((advice) =>
          withMeasured(advice, measured, nowMs),
        ),
      };
    },
  };
}

/** Beside what would be, what really happened: null where nothing was read. */
function withMeasured(advice: ClassAdvice, all: readonly Measured[], nowMs: number): object {
  const { class: cacheClass, reads, since, outdatedLimit, current, ...rest } = advice;
  const own = all.filter((one) => one.class === cacheClass);
  return { class: cacheClass, reads, since, outdatedLimit, current, measured: measuredOf(own, nowMs), ...rest };
}

/** Each process has its own time: what joined a minute ago adds its rate, not its share of an hour. */
function measuredOf(each: readonly Measured[], nowMs: number): object | null {
  const reads = each.reduce((sum, one) => sum + one.reads, 0);
  if (reads === 0) return null;
  const storeCalls = each.reduce((sum, one) => sum + one.storeCalls, 0);
  const upstreamRps = each.reduce(
    (sum, one) => sum + (one.storeCalls * 1000) / Math.max(SHORTEST_MS, nowMs - one.sinceMs),
    0,
  );
  // A read that a purge overtakes asks again: there may be more calls than reads.
  return { hitRatio: Math.max(0, 1 - storeCalls / reads), upstreamRps };
}
