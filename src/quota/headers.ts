/**
 * The response headers that show a consumer how its quota stands: the ten `X-RateLimit-*` of the specification,
 * `Retry-After` (RFC 9110, section 10.2.3), and `RateLimit-Policy` and `RateLimit` of the IETF draft
 * draft-ietf-httpapi-ratelimit-headers.
 */
import type { QuotaDecision, QuotaUsage, WindowState } from './limiter.ts';

const MICROS_PER_SECOND = 1_000_000;

function secondsUp(micros: number): number {
  return Math.ceil(micros / MICROS_PER_SECOND);
}

/** The window's `Reset`: Unix seconds, rounded up, at which it is empty again if no more requests come. */
export function resetSeconds({ emptyAtMicros }: WindowState): number {
  return secondsUp(emptyAtMicros);
}

/**
 * The headers of one decision.
 * - R2: `Reset` is in Unix seconds, rounded up; `Retry-After`, only of a refused request, in seconds, rounded up, at least 1
 * - R3: the active window is the one with fewer requests remaining; on a tie, the minute
 * - R4: `t` of `RateLimit` is the seconds, rounded up, until the next request is freed
 */
export function rateLimitHeaders({
  minute,
  hour,
  nowMicros,
  retryAtMicros,
}: QuotaUsage & Pick<QuotaDecision, 'retryAtMicros'>): Record<string, string> {
  const isHourActive = hour.remaining < minute.remaining;
  const active = isHourActive ? hour : minute;
  const minuteFreeSeconds = secondsUp(minute.nextFreeAtMicros - nowMicros);
  const hourFreeSeconds = secondsUp(hour.nextFreeAtMicros - nowMicros);
  const headers = {
    'X-RateLimit-Limit': String(active.limit),
    'X-RateLimit-Remaining': String(active.remaining),
    'X-RateLimit-Reset': String(resetSeconds(active)),
    'X-RateLimit-Active-Window': isHourActive ? 'hour' : 'minute',
    'X-RateLimit-Minute-Limit': String(minute.limit),
    'X-RateLimit-Minute-Remaining': String(minute.remaining),
    'X-RateLimit-Minute-Reset': String(resetSeconds(minute)),
    'X-RateLimit-Hour-Limit': String(hour.limit),
    'X-RateLimit-Hour-Remaining': String(hour.remaining),
    'X-RateLimit-Hour-Reset': String(resetSeconds(hour)),
    'RateLimit-Policy': `"minute";q=${minute.limit};w=60, "hour";q=${hour.limit};w=3600`,
    RateLimit: `"minute";r=${minute.remaining};t=${minuteFreeSeconds}, "hour";r=${hour.remaining};t=${hourFreeSeconds}`,
  };
  if (retryAtMicros === null) return headers;
  return { ...headers, 'Retry-After': String(Math.max(1, secondsUp(retryAtMicros - nowMicros))) };
}
