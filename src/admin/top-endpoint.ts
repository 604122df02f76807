/** GET /api/cache/top: the keys and the routes that cost the store most. */
import type { EndpointContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { badParameter, queryOf } from './query.ts';
import type { TopView } from './top-loads.ts';

const DEFAULT_LIMIT = 20;
const MOST = 100;
const ALLOWED = { limit: `an integer from 1 to ${MOST}; ${DEFAULT_LIMIT} if it is left out` };

export interface TopEndpointOptions {
  readonly top: (limit: number) => TopView;
}

export function topEndpoint({ top }: TopEndpointOptions): Endpoint {
  return {
    method: 'GET',
    path: '/api/cache/top',
    what: 'the keys and routes for which this process made the store work most, of the last hour at most',
    handle: async (ctx) => {
      const { sinceMs, keys, routes } = top(limitOf(ctx));
      ctx.body = {
        since: new Date(sinceMs).toISOString(),
        scope: 'process',
        keys: keys.map((load) => ({ ...load, storeMs: Math.round(load.storeMs) })),
        routes: routes.map((load) => ({ ...load, storeMs: Math.round(load.storeMs) })),
      };
    },
  };
}

function limitOf(ctx: EndpointContext): number {
  const [text] = queryOf(ctx, { allowed: ALLOWED }).get('limit') ?? [];
  if (text === undefined) return DEFAULT_LIMIT;
  const limit = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MOST) throw badParameter('limit', text, ALLOWED.limit);
  return limit;
}
