/** Counts the request against its key's two windows and tells the consumer how both stand (R1 to R4). */
import { rateLimitFields } from '../../quota/headers.ts';
import type { Quota, QuotaLimits, QuotaStanding, WindowName } from '../../quota/quota.ts';
import { type MaybePromise, whenThere } from '../../maybe-promise.ts';
import type { Answer } from '../answer.ts';
import type { Context, RequestState, Route } from '../state.ts';
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
export function enforceQuota(options: QuotaOptions): (ctx: Context) => MaybePromise<boolean> {
  return ({ state }) => {
    const { key } = state;
    if (key === null) return true;
    const byDefault = options.defaultLimits();
    const limits = {
      perMinute: key.limits.perMinute ?? byDefault.perMinute,
      perHour: key.limits.perHour ?? byDefault.perHour,
    };
    if (state.match?.route.isCounted === false) return showQuota(state, options.quota.peek(key.quotaId, limits));
    return whenThere(options.quota.take(key.quotaId, limits), (decision) => {
      state.fields += rateLimitFields(decision);
      if (!decision.admitted) options.onRefused(decision.minute.remaining === 0 ? 'minute' : 'hour');
      return decision.admitted;
    });
  };
}

/** For a request that costs nothing, and so is never refused. */
function showQuota(state: RequestState, peeked: MaybePromise<QuotaStanding>): MaybePromise<boolean> {
  return whenThere(peeked, (standing) => {
    state.standing = standing;
    state.fields += rateLimitFields({ ...standing, retryAtMicros: null });
    return true;
  });
}

/** Made once for an endpoint: all its refusals read alike, and a client that hammers is to cost as little as can be. */
const refusals = new WeakMap<Route, Answer>();

/** What a request over the limit is answered with. */
export function refused(ctx: Context): Answer {
  const { match } = ctx.state;
  const known = match === null ? undefined : refusals.get(match.route);
  if (known !== undefined) return known;
  const made = failureAnswer(ctx, { status: 429, message: REFUSED });
  if (match !== null) refusals.set(match.route, made);
  return made;
}
