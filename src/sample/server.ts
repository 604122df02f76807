/** The sample upstream: a real HTTP server that implements the store's whole interface, and its faults on request. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { SampleData } from './data.ts';
import { NO_FAULTS } from './faults.ts';
import type { Faults } from './faults.ts';
import { createHandler, readTarget } from './handler.ts';
import type { Sleep } from './latency.ts';
import { listenOn } from './listen.ts';
import type { SampleResource } from './routes.ts';

/** One call, when it is over. */
export interface SampleCallLog {
  readonly requestId: string | null;
  readonly traceparent: string | null;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly resource: SampleResource;
  /** What was sent; the status of a call whose connection was reset is 0. */
  readonly status: number;
  /** Whether the caller got the whole answer. */
  readonly finished: boolean;
}
export interface SampleUpstreamOptions {
  readonly data: SampleData;
  /** The bearer token that callers must send. */
  readonly token: string;
  /** Median of the latency in milliseconds; 0, the default, is none. */
  readonly latency?: number;
  readonly faults?: Partial<Faults>;
  readonly log?: (call: SampleCallLog) => void;
  /** Decides on rates and latencies. */
  readonly seed?: number;
  /** How to wait; tests hand in their own. */
  readonly sleep?: Sleep;
}
export interface SampleUpstream {
  /** Binds to the port, 0 for any, on loopback unless told otherwise. Rejects where that can't be done. */
  listen(port: number, host?: string): Promise<{ readonly url: string; readonly port: number }>;
  /** Ends every connection at once, those that hang too. */
  close(): Promise<void>;
  /** How many authorized calls of each resource there were, faulty ones included. */
  readonly counts: Readonly<Record<SampleResource, number>>;
  resetCounts(): void;
  /** Replaces all faults: `setFaults({})` is a healthy store again. */
  setFaults(faults: Partial<Faults>): void;
}

const NO_COUNTS: Readonly<Record<SampleResource, number>> = {
  list: 0,
  evaluation: 0,
  transcript: 0,
  scorecard: 0,
  dealInsights: 0,
  rubric: 0,
  apiKey: 0,
  other: 0,
};
/** Longer than clients keep idle connections, so that it is they who close them. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** Makes the server; it listens when it is told to. */
export function createSampleUpstream(options: SampleUpstreamOptions): SampleUpstream {
  const { data, token, latency = 0, log, seed = data.seed, sleep = defaultSleep } = options;
  let faults: Faults = { ...NO_FAULTS, ...options.faults };
  let counts = { ...NO_COUNTS };
  const handle = createHandler({
    data,
    token,
    medianLatencyMs: latency,
    seed,
    sleep,
    faults: () => faults,
    count: (resource) => {
      counts[resource] += 1;
    },
  });
  const server = createServer((request, response) => {
    const target = readTarget(request.url ?? '/');
    const requestId = request.headers['x-request-id'];
    if (typeof requestId === 'string') response.setHeader('x-request-id', requestId);
    if (log !== undefined) response.once('close', () => log(describeCall(request, response, target.route.resource)));
    // Whatever fails here, most often a caller who left while it was waiting, concerns this call alone.
    handle(request, response, target).catch(() => response.destroy());
  });
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  return {
    listen: (port, host = '127.0.0.1') => listenOn(server, port, host),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    get counts() {
      return { ...counts };
    },
    resetCounts: () => {
      counts = { ...NO_COUNTS };
    },
    setFaults: (next) => {
      faults = { ...NO_FAULTS, ...next };
    },
  };
}

const defaultSleep: Sleep = (ms, signal) => delay(ms, undefined, { signal });

function describeCall(request: IncomingMessage, response: ServerResponse, resource: SampleResource): SampleCallLog {
  const { 'x-request-id': requestId, traceparent } = request.headers;
  return {
    requestId: typeof requestId === 'string' ? requestId : null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    method: request.method ?? '',
    url: request.url ?? '',
    resource,
    status: response.headersSent ? response.statusCode : 0,
    finished: response.writableFinished,
  };
}
