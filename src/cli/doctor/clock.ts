/** Compares this machine's clock with the store's. */
import { type Check, fail, ok, skipped } from './check.ts';
import type { ProbeAnswer } from './probe.ts';

const TOLERANCE_MS = 5000;
/** The Date header is cut to whole seconds (RFC 9110, 6.6.1): on average it lags by half of one. */
const DATE_LAG_MS = 500;

/** Expiry of keys and ages of answers go by this clock. */
export function checkClock({
  headers,
  sentAtMs,
  answeredAtMs,
}: Pick<ProbeAnswer, 'headers' | 'sentAtMs' | 'answeredAtMs'>): Check {
  const theirsMs = Date.parse(headers.get('date') ?? '');
  if (Number.isNaN(theirsMs)) return skipped('clock', 'the store sends no Date header to compare with');
  const offMs = Math.round((sentAtMs + answeredAtMs) / 2 - theirsMs - DATE_LAG_MS);
  const uncertainMs = (answeredAtMs - sentAtMs) / 2;
  if (Math.abs(offMs) <= TOLERANCE_MS + uncertainMs)
    return ok('clock', "agrees with the store's to within some seconds");
  const seconds = Math.round(Math.abs(offMs) / 1000);
  return fail(
    'clock',
    `this machine's clock is ${seconds} s ${offMs > 0 ? 'ahead of' : 'behind'} the store's`,
    'Synchronise both with NTP (timedatectl, chronyc tracking). A wrong clock ends keys too soon or too late.',
  );
}
