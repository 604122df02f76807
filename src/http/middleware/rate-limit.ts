/**
 * Counts the request against its key's two windows, and shows the consumer both (R1 to R4: exact limits and their headers;
 * K8a: a look at one's own key costs none). A refused request costs nothing in either window: only admitted ones are added,
 * by CONSUME in quota/redis-limiter.ts, without Redis by quota/window-log.ts.
 */
import { LRUCache } from 'lru-cache';
import { rateLimitHeaders } from '../../quota/headers.ts';
import type { QuotaLimits, QuotaUsage } from '../../quota/limiter.ts';
import { ErrorText, Problem, refuse } from '../problem.ts';
import type { Context, Middleware, PublicAppOptions } from '../state.ts';

const REFUSED = new Problem(
  'rate_limited',
  new ErrorText('The rate limit of this API key is used up. Try again after the time in Retry-After.'),
);
const TOO_MANY_DETAILS = new Problem(
  'rate_limited',
  new ErrorText("Too many requests for this key's details. Try again after the time in Retry-After."),
);

/** K8a: a look at one's own key costs no quota, and has this limit. */
export const CURRENT_KEY_LIMIT = { name: 'current-key', points: 60, windowSeconds: 60 };

/** A refused request for a key's details shows the usage of at most so long ago: it may cost no look-up of the quota. */
const REFUSED_USAGE_MS = 1000;
const MAX_REFUSED_KEYS = 1000;

interface Look {
  readonly usage: Promise<QuotaUsage>;
  readonly limits: QuotaLimits;
  /** When it began, by this process's clock. */
  readonly atMicros: number;
}

export function rateLimit(options: PublicAppOptions): Middleware {
  const {
    limits: { quota, defaults: defaultLimits },
    hooks,
    access,
  } = options;
  const countDetails = detailsLimit(options);
  return async (ctx, next) => {
    const { state } = ctx;
    const { apiKey } = state;
    if (apiKey === null) return next();
    const defaults = defaultLimits();
    const limits = {
      perMinute: apiKey.limits.perMinute ?? defaults.perMinute,
      perHour: apiKey.limits.perHour ?? defaults.perHour,
    };
    if (state.route?.quota === 'none') {
      await countDetails(ctx, apiKey, limits);
      return state.problem === null ? next() : undefined;
    }
    const decision = await state.redisWait.timed(quota.consume(apiKey.quotaId, limits));
    state.headers.push(rateLimitHeaders(decision));
    // A client may have left while its key and quota were looked up.
    if (decision.admitted) return state.hasLeft ? undefined : next();
    const window = decision.minute.remaining === 0 ? 'minute' : 'hour';
    hooks.onQuotaRefused(window);
    state.refusal = { reason: window, address: access.addressOf(ctx) };
    refuse(state, REFUSED);
  };
}

/** Requests for a key's own details cost no quota, only a limit of their own, which is looked at first (K8a). */
function detailsLimit({ clock, limits: { quota, currentKey }, access }: PublicAppOptions) {
  const looks = new LRUCache<string, Look>({ max: MAX_REFUSED_KEYS });
  /** The usage for a request that is refused: a flood of them costs one look-up a second. */
  const usageOfRefused = (quotaId: string, limits: QuotaLimits): Promise<QuotaUsage> => {
    const last = looks.get(quotaId);
    const nowMicros = clock.nowMicros();
    const isRecent = last !== undefined && nowMicros - last.atMicros < 1000 * REFUSED_USAGE_MS;
    const isSame = last?.limits.perMinute === limits.perMinute && last.limits.perHour === limits.perHour;
    if (isRecent && isSame) return last.usage;
    const usage = quota.usage(quotaId, limits);
    looks.set(quotaId, { usage, limits, atMicros: nowMicros });
    return usage;
  };
  return async (
    ctx: Context,
    { keyId, quotaId }: { readonly keyId: string; readonly quotaId: string },
    limits: QuotaLimits,
  ): Promise<void> => {
    const { state } = ctx;
    const waitSeconds = await state.redisWait.timed(currentKey.consume(keyId));
    const look = waitSeconds === null ? quota.usage(quotaId, limits) : usageOfRefused(quotaId, limits);
    state.usage = await state.redisWait.timed(look);
    state.headers.push(rateLimitHeaders({ ...state.usage, retryAtMicros: null }));
    if (waitSeconds === null) return;
    state.refusal = { reason: 'current-key', address: access.addressOf(ctx) };
    state.headers.push({ 'Retry-After': String(waitSeconds) });
    refuse(state, TOO_MANY_DETAILS);
  };
}
