/**
 * The response headers that tell a consumer where its quota stands: the ten `X-RateLimit-*` of the specification,
 * `Retry-After` (RFC 9110, section 10.2.3), and `RateLimit-Policy` and `RateLimit` of the IETF draft
 * draft-ietf-httpapi-ratelimit-headers.
 */
import type { QuotaStanding, WindowState } from './quota.ts';

const MICROS_PER_SECOND = 1_000_000;

function secondsUp(micros: number): number {
  return Math.ceil(micros / MICROS_PER_SECOND);
}

/** The window's `Reset`: Unix seconds, rounded up, at which it is empty again if no more requests come. */
export function resetSeconds({ emptyAtMicros }: WindowState): number {
  return secondsUp(emptyAtMicros);
}

interface Refusable {
  /** As in a decision; null also where none was asked for. */
  readonly retryAtMicros: number | null;
}

/**
 * The field lines of one decision, always in the same order. `Reset` is in Unix seconds, rounded up; `Retry-After`, only
 * where the request was refused, is in seconds, rounded up and at least 1. The active window is the one with less
 * remaining; on a tie, the minute. `t` of `RateLimit` is the seconds, rounded up, until the next request is given back.
 */
export function rateLimitFields({ minute, hour, nowMicros, retryAtMicros }: QuotaStanding & Refusable): string {
  const isHourActive = hour.remaining < minute.remaining;
  const minuteFreeSeconds = secondsUp(minute.nextFreeAtMicros - nowMicros);
  const hourFreeSeconds = secondsUp(hour.nextFreeAtMicros - nowMicros);
  const windows = `${windowFields('', isHourActive ? hour : minute)}\
X-RateLimit-Active-Window: ${isHourActive ? 'hour' : 'minute'}\r
${windowFields('Minute-', minute)}${windowFields('Hour-', hour)}\
RateLimit-Policy: "minute";q=${minute.limit};w=60, "hour";q=${hour.limit};w=3600\r
RateLimit: "minute";r=${minute.remaining};t=${minuteFreeSeconds}, "hour";r=${hour.remaining};t=${hourFreeSeconds}\r
`;
  if (retryAtMicros === null) return windows;
  return `${windows}Retry-After: ${Math.max(1, secondsUp(retryAtMicros - nowMicros))}\r\n`;
}

function windowFields(prefix: '' | 'Minute-' | 'Hour-', state: WindowState): string {
  return `\
X-RateLimit-${prefix}Limit: ${state.limit}\r
X-RateLimit-${prefix}Remaining: ${state.remaining}\r
X-RateLimit-${prefix}Reset: ${resetSeconds(state)}\r
`;
}
