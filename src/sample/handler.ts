/** How the sample serves one call, from the first byte read to the last one sent. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SampleData } from './data.ts';
import { planFault } from './faults.ts';
import type { Faults } from './faults.ts';
import { drawLatencyMs } from './latency.ts';
import type { Sleep } from './latency.ts';
import { failure, sendBadly, sendInstead } from './misbehave.ts';
import { createRandom } from './random.ts';
import { encode, send } from './respond.ts';
import { answer, errorAnswer, falsified, findRoute } from './routes.ts';
import type { Answer, Route, SampleResource } from './routes.ts';

export interface HandlerOptions {
  readonly data: SampleData;
  readonly token: string;
  readonly medianLatencyMs: number;
  readonly seed: number;
  readonly sleep: Sleep;
  /** The faults in force, asked for on every call. */
  readonly faults: () => Faults;
  readonly count: (resource: SampleResource) => void;
}
/** What a caller asked for. */
export interface Target {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly route: Route;
}
type Handler = (request: IncomingMessage, response: ServerResponse, target: Target) => Promise<void>;

/** Rejects where the caller left while it was served. */
export function createHandler(options: HandlerOptions): Handler {
  const { data, token, medianLatencyMs, seed, sleep, faults, count } = options;
  const faultRandom = createRandom(seed, 'faults');
  const latencyRandom = createRandom(seed, 'latency');
  return async (request, response, { path, query, route }) => {
    // 1 Who calls?
    if (!isAuthorized(request, token)) return refuse(request, response);
    count(route.resource);
    // 2 Decide what goes wrong before anything is awaited: the outcome depends on the order of calls, not on their speed.
    const plan = planFault(faults(), faultRandom);
    const latencyMs = drawLatencyMs(medianLatencyMs, latencyRandom);
    // 3 Let the caller wait.
    const left = abortedOnClose(response);
    const wait = (ms: number): Promise<void> => sleep(ms, left);
    if (latencyMs > 0) await wait(latencyMs);
    // 4 Fail.
    if (plan.instead === 'status') {
      if (plan.retryAfter !== null && plan.status >= 429) response.setHeader('retry-after', plan.retryAfter);
      return reply(request, response, failure(plan.status));
    }
    if (plan.instead !== 'none') return sendInstead(response, plan.instead, path);
    // 5 Answer.
    if (request.method !== 'GET') return refuseMethod(request, response);
    const made = falsified(data, route, answer(data, route, query), plan.wrong);
    if (plan.body === 'whole') return reply(request, response, made);
    // Not compressed, so that what arrives is the beginning of the JSON.
    const plain = await encode({ ...request.headers, 'accept-encoding': 'identity' }, made);
    return plain.status === 200 ? sendBadly(response, plain, plan.body, wait) : send(response, plain);
  };
}

/** Split by hand: whatever a caller sends as an address, this doesn't throw. */
export function readTarget(url: string): Target {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  return { path, query: new URLSearchParams(mark === -1 ? '' : url.slice(mark + 1)), route: findRoute(path) };
}

async function reply(request: IncomingMessage, response: ServerResponse, made: Answer): Promise<void> {
  send(response, await encode(request.headers, made));
}

function refuse(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.setHeader('www-authenticate', 'Bearer');
  return reply(request, response, errorAnswer(401, 'UNAUTHENTICATED', 'the bearer token is missing or wrong'));
}

function refuseMethod(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.setHeader('allow', 'GET');
  return reply(request, response, errorAnswer(405, 'METHOD_NOT_ALLOWED', 'the interface is read with GET only'));
}

/** Compares digests, so that the time taken says nothing of the token. */
function isAuthorized(request: IncomingMessage, token: string): boolean {
  const given = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function abortedOnClose(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  if (response.destroyed) controller.abort();
  response.once('close', () => controller.abort());
  return controller.signal;
}
