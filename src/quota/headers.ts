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
  const minuteLeft = digitsOf(minute.remaining);
  const hourLeft = digitsOf(hour.remaining);
  const windows = `${isHourActive ? windowFields('', hour, hourLeft) : windowFields('', minute, minuteLeft)}\
X-RateLimit-Active-Window: ${isHourActive ? 'hour' : 'minute'}\r
${windowFields('Minute-', minute, minuteLeft)}${windowFields('Hour-', hour, hourLeft)}\
RateLimit-Policy: "minute";q=${minute.limit};w=60, "hour";q=${hour.limit};w=3600\r
RateLimit: "minute";r=${minuteLeft};t=${minuteFreeSeconds}, "hour";r=${hourLeft};t=${hourFreeSeconds}\r
`;
  if (retryAtMicros === null) return windows;
  return `${windows}Retry-After: ${Math.max(1, secondsUp(retryAtMicros - nowMicros))}\r\n`;
}

function windowFields(prefix: '' | 'Minute-' | 'Hour-', state: WindowState, remaining: string): string {
  return `\
X-RateLimit-${prefix}Limit: ${state.limit}\r
X-RateLimit-${prefix}Remaining: ${remaining}\r
X-RateLimit-${prefix}Reset: ${resetSeconds(state)}\r
`;
}

/** Of 0 to 999, with leading zeros. */
const LAST_THREE = Array.from({ length: 1000 }, (_, number) => String(number).padStart(3, '0'));

/**
 * A count as text. V8 keeps the texts of the numbers that it was asked for last, and what it keeps grows old: what remains
 * of a large quota, hardly two answers alike, would fill the old generation with them. In two parts they are few.
 */
function digitsOf(count: number): string {
  return count < 1000 ? String(count) : `${Math.trunc(count / 1000)}${LAST_THREE[count % 1000]}`;
}
