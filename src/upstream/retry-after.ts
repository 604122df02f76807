/** The store's `Retry-After` (RFC 9110 section 10.2.3). */

/** A store that asks for more is not believed: nobody waits longer than an hour on its word. */
const MAX_RETRY_AFTER_MS = 3_600_000;

const HTTP_DATE_PATTERN = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Milliseconds to wait from `nowMs` (Unix milliseconds) on, 0 to MAX_RETRY_AFTER_MS; null where the header says nothing. */
export function retryAfterMsOf(header: string | undefined, nowMs: number): number | null {
  const text = header?.trim() ?? '';
  if (/^\d{1,15}$/.test(text)) return Math.min(Number(text) * 1000, MAX_RETRY_AFTER_MS);
  if (!HTTP_DATE_PATTERN.test(text)) return null;
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs)) return null;
  return Math.min(Math.max(atMs - nowMs, 0), MAX_RETRY_AFTER_MS);
}
