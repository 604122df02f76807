/** Requests of the public listener. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { boundedLabel } from '../bounded-label.ts';
import { NONE, SECONDS_BUCKETS } from './buckets.ts';
import type { MetricRecorders } from './recorders.ts';

/** The API has about a dozen routes. */
const MOST_ROUTES = 40;
const MOST_REASONS = 16;

type RequestRecorders = Pick<
  MetricRecorders,
  | 'requestFinished'
  | 'authenticationFailed'
  | 'quotaRefused'
  | 'requestShed'
  | 'requestUnreadable'
  | 'connectionDropped'
>;

export function requestRecorders(registry: Registry): RequestRecorders {
  const registers = [registry];
  const failures = new Counter({
    name: 'evalgate_authentication_failures_total',
    help: 'Requests refused because of their API key or its lack.',
    labelNames: ['reason'],
    registers,
  });
  const refusals = new Counter({
    name: 'evalgate_quota_refusals_total',
    help: 'Requests refused with 429, by the window that was full.',
    labelNames: ['window'],
    registers,
  });
  const shed = new Counter({
    name: 'evalgate_http_requests_shed_total',
    help: 'Requests refused at once because `server.maxInFlight` were under way.',
    registers,
  });
  const unreadable = new Counter({
    name: 'evalgate_http_unreadable_requests_total',
    help: 'Answers to what never became a request, by why: too-large, too-slow, no-http. They are in no other count.',
    labelNames: ['reason'],
    registers,
  });
  const dropped = new Counter({
    name: 'evalgate_http_connections_dropped_total',
    help: 'Connections closed as they came because `server.maxConnections` were open.',
    registers,
  });
  const reasonLabel = boundedLabel(MOST_REASONS);
  return {
    requestFinished: finishedRequests(registers),
    authenticationFailed: ({ reason }) => failures.inc({ reason: reasonLabel(reason) }),
    quotaRefused: ({ window }) => refusals.inc({ window }),
    requestShed: () => shed.inc(),
    requestUnreadable: ({ reason }) => unreadable.inc({ reason: reasonLabel(reason) }),
    connectionDropped: () => dropped.inc(),
  };
}

function finishedRequests(registers: Registry[]): MetricRecorders['requestFinished'] {
  const requests = new Counter({
    name: 'evalgate_http_requests_total',
    help: 'Requests answered on the public listener.',
    labelNames: ['surface', 'route', 'method', 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'evalgate_http_request_duration_seconds',
    help: 'Time from the arrival of a request to the end of its answer, by how the cache answered.',
    labelNames: ['surface', 'route', 'cache'],
    buckets: SECONDS_BUCKETS,
    registers,
  });
  const routeLabel = boundedLabel(MOST_ROUTES);
  return ({ surface, route, method, status, durationMs, cache }) => {
    const place = { surface: surface === 'other' ? 'docs' : surface, route: routeLabel(route ?? 'unmatched') };
    requests.inc({ ...place, method: methodLabel(method), status });
    durations.observe({ ...place, cache: cache ?? NONE }, durationMs / 1000);
  };
}

/** Methods are a caller's choice, so all but the two that the API has are one. */
function methodLabel(method: string): string {
  return method === 'GET' || method === 'HEAD' ? method : 'OTHER';
}
