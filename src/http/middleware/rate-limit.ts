/**
 * Counts the request against its key's two windows, and shows the consumer both (R1 to R4: exact limits and their headers;
 * K8a: a look at one's own key costs none). A refused request costs nothing in either window: only admitted ones are added,
 * by CONSUME in quota/redis-limiter.ts, without Redis by quota/window-log.ts.
 */
import { rateLimitHeaders } from '../../quota/headers.ts';
import { Problem } from '../problem.ts';
import type { Middleware, PublicAppOptions } from '../state.ts';

const REFUSED = 'The rate limit of this API key is used up. Try again after the time in Retry-After.';
const TOO_MANY_LOOKS = 'This API key was looked at too often within a minute. Try again after the time in Retry-After.';

export function rateLimit(options: PublicAppOptions): Middleware {
  const { quota, defaultLimits, currentKeyLimit, addressOf, hooks } = options;
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
      state.usage = await state.redisWait.count(quota.usage(apiKey.quotaId, limits));
      state.headers.push(rateLimitHeaders({ ...state.usage, retryAtMicros: null }));
      const waitSeconds = await state.redisWait.count(currentKeyLimit.consume(apiKey.keyId));
      if (waitSeconds === null) return next();
      state.refusal = { reason: 'current-key', address: addressOf(ctx) };
      throw new Problem('rate_limited', TOO_MANY_LOOKS, { headers: { 'Retry-After': String(waitSeconds) } });
    }
    const decision = await state.redisWait.count(quota.consume(apiKey.quotaId, limits));
    state.headers.push(rateLimitHeaders(decision));
    if (!decision.admitted) {
      const window = decision.minute.remaining === 0 ? 'minute' : 'hour';
      hooks.onQuotaRefused(window);
      state.refusal = { reason: window, address: addressOf(ctx) };
      throw new Problem('rate_limited', REFUSED);
    }
    // A client may have left while its key and quota were looked up.
    state.signal.throwIfAborted();
    return next();
  };
}
