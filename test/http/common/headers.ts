/** Groups of response headers, picked out so that a test compares all of a group at once: those that are there, and no others. */
import type { IncomingHttpHeaders } from 'node:http';

interface WithHeaders {
  readonly headers: IncomingHttpHeaders;
}

export const RATE_LIMIT_NAMES: readonly string[] = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-ratelimit-active-window',
  'x-ratelimit-minute-limit',
  'x-ratelimit-minute-remaining',
  'x-ratelimit-minute-reset',
  'x-ratelimit-hour-limit',
  'x-ratelimit-hour-remaining',
  'x-ratelimit-hour-reset',
  'ratelimit-policy',
  'ratelimit',
];
const CACHE_NAMES: readonly string[] = ['etag', 'age', 'cache-status', 'cache-control'];

export function pickHeaders({ headers }: WithHeaders, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => headers[name] !== undefined).map((name) => [name, headers[name]]));
}

/** The ten headers of the specification, the IETF draft's two, and `Retry-After`. */
export function rateLimitOf(reply: WithHeaders): Record<string, unknown> {
  return pickHeaders(reply, [...RATE_LIMIT_NAMES, 'retry-after']);
}

export function cachingOf(reply: WithHeaders): Record<string, unknown> {
  return pickHeaders(reply, CACHE_NAMES);
}

/** Every header but those that differ from request to request by their nature. */
function steadyHeaders({ headers }: WithHeaders): Record<string, unknown> {
  const { date: _date, 'x-request-id': _requestId, ...steady } = headers;
  return steady;
}

/** Those that stay the same although the key was counted once more. */
export function uncountedHeaders(reply: WithHeaders): Record<string, unknown> {
  return Object.fromEntries(Object.entries(steadyHeaders(reply)).filter(([name]) => !RATE_LIMIT_NAMES.includes(name)));
}
