/** Counts the request against its key's two windows and tells the consumer how both stand (R1 to R4). */
import { rateLimitFields } from '../../quota/headers.ts';
import type { Quota, QuotaLimits, WindowName } from '../../quota/quota.ts';
import type { Answer } from '../answer.ts';
import type { Context } from '../state.ts';
import { failureAnswer } from './render-errors.ts';

export interface QuotaOptions {
  readonly quota: Quota;
  /** The limits of keys that have none of their own; read at each request. */
  readonly defaultLimits: () => QuotaLimits;
  readonly onRefused: (window: WindowName) => void;
}

const REFUSED = 'The rate limit of this API key is used up. Try again after the time in Retry-After.';

/**
 * Whether the request of a key that is known is admitted. A refusal is told by the value: it is what a client that
 * hammers gets thousands of times a second, and an error would cost more than all the rest of it.
 */
export function enforceQuota(options: QuotaOptions): (ctx: Context) => Promise<boolean> {
  return async (ctx) => {
    const { key, fields } = ctx.state;
    if (key === null) return true;
    const byDefault = options.defaultLimits();
    const decision = await options.quota.take(key.quotaId, {
      perMinute: key.limits.perMinute ?? byDefault.perMinute,
      perHour: key.limits.perHour ?? byDefault.perHour,
    });
    fields.push(...rateLimitFields(decision));
    if (!decision.admitted) options.onRefused(decision.minute.remaining === 0 ? 'minute' : 'hour');
    return decision.admitted;
  };
}

/** What a request over the limit is answered with. */
export function refused(ctx: Context): Answer {
  return failureAnswer(ctx, { status: 429, message: REFUSED });
}
