/** The rate-limit headers written down a second time, by counting in integers, to compare the gateway's with. */
import type { QuotaDecision } from '../../src/quota/quota.ts';
import { rateLimitFields } from '../../src/quota/headers.ts';

/** The smallest whole number of seconds that is not less. */
function ceilSeconds(micros: number): bigint {
  const exact = BigInt(micros);
  return exact / 1_000_000n + (exact % 1_000_000n > 0n ? 1n : 0n);
}

export function headersByTheBook({ nowMicros, minute, hour, retryAtMicros }: QuotaDecision): Record<string, string> {
  const active = minute.remaining <= hour.remaining ? minute : hour;
  const expected: Record<string, string> = {
    'X-RateLimit-Active-Window': active === minute ? 'minute' : 'hour',
    'RateLimit-Policy': [`"minute";q=${minute.limit};w=60`, `"hour";q=${hour.limit};w=3600`].join(', '),
    RateLimit: [
      `"minute";r=${minute.remaining};t=${ceilSeconds(minute.nextFreeAtMicros - nowMicros)}`,
      `"hour";r=${hour.remaining};t=${ceilSeconds(hour.nextFreeAtMicros - nowMicros)}`,
    ].join(', '),
  };
  for (const [prefix, window] of [['', active] as const, ['Minute-', minute] as const, ['Hour-', hour] as const]) {
    expected[`X-RateLimit-${prefix}Limit`] = `${window.limit}`;
    expected[`X-RateLimit-${prefix}Remaining`] = `${window.remaining}`;
    expected[`X-RateLimit-${prefix}Reset`] = `${ceilSeconds(window.emptyAtMicros)}`;
  }
  if (retryAtMicros !== null) expected['Retry-After'] = `${ceilSeconds(retryAtMicros - nowMicros)}`;
  return expected;
}

/** The fields of a decision by name. */
export function rateLimitHeaders(decision: QuotaDecision): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const line of rateLimitFields(decision).split('\r\n').slice(0, -1)) {
    const [name = '', value = ''] = line.split(': ');
    headers[name] = value;
  }
  return headers;
}
