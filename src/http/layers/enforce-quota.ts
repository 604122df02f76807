/** Counts the request against its key's two windows and tells the consumer how both stand (R1 to R4). */
import { rateLimitHeaders } from '../../quota/headers.ts';
import type { Quota, QuotaLimits, WindowName } from '../../quota/quota.ts';
import { Problem } from '../problem.ts';
import type { Middleware } from '../state.ts';

export interface QuotaOptions {
  readonly quota: Quota;
  /** The limits of keys that have none of their own; read at each request. */
  readonly defaultLimits: () => QuotaLimits;
  readonly onRefused: (window: WindowName) => void;
}

const REFUSED = 'The rate limit of this API key is used up. Try again after the time in Retry-After.';

export function enforceQuota(options: QuotaOptions): Middleware {
  return async (ctx, next) => {
    const { key } = ctx.state;
    if (key !== null) {
      const byDefault = options.defaultLimits();
      const decision = await options.quota.take(key.quotaId, {
        perMinute: key.limits.perMinute ?? byDefault.perMinute,
        perHour: key.limits.perHour ?? byDefault.perHour,
      });
      ctx.set(rateLimitHeaders(decision));
      if (!decision.admitted) {
        options.onRefused(decision.minute.remaining === 0 ? 'minute' : 'hour');
        throw new Problem(429, REFUSED);
      }
    }
    await next();
  };
}
