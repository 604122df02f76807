/** GET /api/cache/advice: what the hit ratio and the store's load would be with other times, from live traffic. */
import { adviceOf } from '../cache/what-if/advice.ts';
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

export function adviceEndpoint({ whatIf, times, outdatedLimits, clock }: AdviceEndpointOptions): Endpoint {
  return {
    method: 'GET',
    path: '/api/cache/advice',
    what: 'for each class what other times would do to hit ratio, store load and staleness, and which one to set',
    handle: async (ctx) => {
      const reports = await whatIf.reports();
      const nowMs = clock.nowMs();
      ctx.body = {
        at: new Date(nowMs).toISOString(),
        processes: reports.length,
        classes: adviceOf(reports, { ttl: times, maxStaleRatio: outdatedLimits(), nowMs }),
      };
    },
  };
}
