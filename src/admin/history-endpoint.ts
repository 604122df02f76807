/** GET /api/cache/history: what was read of each class, how much of it at once, and what the store was asked. */
import { CACHE_CLASSES } from '../cache/ttl-policy.ts';
import type { Endpoint } from './endpoint.ts';
import { type History, type HistoryPoint, STEP_MS } from './history.ts';

export function historyEndpoint(history: Pick<History, 'view'>): Endpoint {
  return {
    method: 'GET',
    path: '/api/cache/history',
    what: 'reads, hits, store calls and failures by class over the last hour, of the whole fleet',
    handle: async (ctx) => {
      const { scope, points } = await history.view();
      ctx.body = { scope, stepMs: STEP_MS, points: points.map(viewOf) };
    },
  };
}

const NOTHING = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };

/** All classes stand in each point, so that a chart needn't ask. */
function viewOf({ atMs, classes }: HistoryPoint): object {
  const entries = CACHE_CLASSES.map((cacheClass) => [cacheClass, classes.get(cacheClass) ?? NOTHING] as const);
  return { at: new Date(atMs).toISOString(), classes: Object.fromEntries(entries) };
}
