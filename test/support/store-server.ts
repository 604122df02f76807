/**
 * A scripted upstream store: a real HTTP server on a loopback port that implements the store's interface over the
 * records a test puts into it, remembers what it was asked, can hold its answers back, and can be made to misbehave.
 *
 *     const store = await createStoreServer();
 *     store.put({ evaluations: [anEvaluation()], transcripts: [aTranscript()] });
 *     ... new client against store.url with store.token ...
 *     expect(store.calls('evaluation')).toBe(1);
 *     await store.close();
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';

import type {
  ApiKeyRecord,
  DealInsightsRecord,
  EvaluationRecord,
  ScorecardRecord,
  ScoredCardRecord,
  TranscriptRecord,
} from '../../src/domain/records.ts';
import { listenOnLoopback, type RunningServer } from './loopback.ts';

export type StoreServerResource =
  | 'list'
  | 'evaluation'
  | 'transcript'
  | 'scorecard'
  | 'dealInsights'
  | 'rubric'
  | 'apiKey'
  | 'unknown';

/** One request as it arrived. */
export interface SeenRequest {
  readonly resource: StoreServerResource;
  /** The id in the path; null for a list. */
  readonly id: string | null;
  readonly method: string;
  /** With the query string. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
}

export type StoreHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** What a test puts in. The maps of the server take anything, malformed records and foreign ids included. */
export interface StoreContents {
  readonly evaluations?: readonly EvaluationRecord[];
  readonly transcripts?: readonly TranscriptRecord[];
  readonly scoredCards?: readonly ScoredCardRecord[];
  readonly dealInsights?: readonly DealInsightsRecord[];
  readonly scorecards?: readonly ScorecardRecord[];
  /** By the lower-case hex SHA-256 of the key. */
  readonly apiKeys?: Readonly<Record<string, ApiKeyRecord>>;
}

/** Answers are held from the moment a gate is set until `release` is called. */
export interface Gate {
  release(): void;
}

/** An answer that is ready and was not sent yet. */
export interface HeldAnswer {
  readonly path: string;
  send(): void;
}

/** Answers as they were when their requests arrived, in order of arrival, until the test sends them. */
export interface Hold {
  readonly answers: readonly HeldAnswer[];
  /** Sends all of them, and holds no more. */
  release(): void;
}

interface Override {
  readonly match: string | RegExp;
  readonly handler: StoreHandler;
}

/** A record on the wire, which may lack anything. */
type WireRecord = Readonly<Record<string, unknown>>;

export class StoreServer {
  readonly token = 'store-token-for-tests';
  /** Raw records by id. Setting one directly lets a test store a malformed record, or one under a foreign id. */
  readonly evaluations = new Map<string, unknown>();
  readonly transcripts = new Map<string, unknown>();
  readonly scoredCards = new Map<string, unknown>();
  readonly dealInsights = new Map<string, unknown>();
  readonly scorecards = new Map<string, unknown>();
  readonly apiKeys = new Map<string, unknown>();
  /** All requests so far, in order of arrival, refused and overridden ones included. */
  readonly requests: SeenRequest[] = [];

  readonly #recordsBy: Partial<Record<StoreServerResource, ReadonlyMap<string, unknown>>> = {
    evaluation: this.evaluations,
    transcript: this.transcripts,
    scorecard: this.scoredCards,
    dealInsights: this.dealInsights,
    rubric: this.scorecards,
    apiKey: this.apiKeys,
  };
  readonly #running: RunningServer;
  #overrides: Override[] = [];
  #gate: Promise<void> | null = null;
  #held: { readonly match: RegExp; readonly answers: HeldAnswer[] } | null = null;
  #arrivals: { readonly isReached: () => boolean; readonly resolve: () => void }[] = [];

  private constructor(running: RunningServer) {
    this.#running = running;
  }

  /** Listens on a free loopback port. */
  static async start(): Promise<StoreServer> {
    let store: StoreServer | null = null;
    const server = createServer((request, response) => {
      void store?.handle(request, response);
    });
    store = new StoreServer(await listenOnLoopback(server));
    return store;
  }

  /** The base address, without a trailing slash: what `UPSTREAM_URL` would be. */
  get url(): string {
    return this.#running.url;
  }

  /** TCP connections opened so far. */
  get connections(): number {
    return this.#running.connections();
  }

  put(contents: StoreContents): void {
    for (const record of contents.evaluations ?? []) this.evaluations.set(record['_id'], record);
    for (const record of contents.transcripts ?? []) this.transcripts.set(record.evaluationId, record);
    for (const record of contents.scoredCards ?? []) this.scoredCards.set(record.evaluationId, record);
    for (const record of contents.dealInsights ?? []) this.dealInsights.set(record.evaluationId, record);
    for (const record of contents.scorecards ?? []) this.scorecards.set(record['_id'], record);
    for (const [hash, record] of Object.entries(contents.apiKeys ?? {})) this.apiKeys.set(hash, record);
  }

  /** How many requests arrived, of one resource or of all. */
  calls(resource?: StoreServerResource): number {
    return this.requests.filter((request) => resource === undefined || request.resource === resource).length;
  }

  /** Resolves as soon as that many requests have arrived, answered or not. */
  async waitForCalls(count: number, resource?: StoreServerResource): Promise<void> {
    const isReached = (): boolean => this.calls(resource) >= count;
    if (isReached()) return;
    await new Promise<void>((resolve) => {
      this.#arrivals.push({ isReached, resolve });
    });
  }

  /** Holds every answer to requests that arrive from now on, until released. */
  gate(): Gate {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    return {
      release: () => {
        if (this.#gate === promise) this.#gate = null;
        resolve();
      },
    };
  }

  /**
   * Makes each answer when its request arrives, from the records of that moment, and keeps it until it is sent; of
   * requests whose path (without query) is matched.
   */
  hold(match: RegExp = /^/): Hold {
    const answers: HeldAnswer[] = [];
    const held = { match, answers };
    this.#held = held;
    return {
      answers,
      release: () => {
        if (this.#held === held) this.#held = null;
        for (const answer of answers.slice()) answer.send();
      },
    };
  }

  /**
   * Answers requests whose path (without query) is `match`, or is matched by it, by the handler instead; the latest
   * override wins. Returns a function that takes it back.
   */
  override(match: string | RegExp, handler: StoreHandler): () => void {
    const override = { match, handler };
    this.#overrides = [override, ...this.#overrides];
    return () => {
      this.#overrides = this.#overrides.filter((other) => other !== override);
    };
  }

  /** Every request fails with that status until the returned function is called. */
  fail(status: number, headers: Readonly<Record<string, string>> = {}): () => void {
    return this.override(/^/, (_request, response) => {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      sendError(response, status, status === 429 ? 'TOO_MANY_REQUESTS' : 'FAILURE');
    });
  }

  /** Every connection is reset as soon as a request arrives on it, until the returned function is called. */
  resetConnections(): () => void {
    return this.override(/^/, (request) => {
      request.socket.resetAndDestroy();
    });
  }

  async close(): Promise<void> {
    await this.#running.close();
  }

  /** The server's request listener. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://store.invalid');
    const { resource, id } = resourceOf(url.pathname);
    this.requests.push({
      resource,
      id,
      method: request.method ?? '',
      path: request.url ?? '',
      query: url.searchParams,
      headers: request.headers,
    });
    this.#arrivals = this.#arrivals.filter((arrival) => {
      if (arrival.isReached()) arrival.resolve();
      return !arrival.isReached();
    });
    await this.#gate;
    if (response.destroyed) return;
    if (this.#held?.match.test(url.pathname) === true) keepUntilSent(this.#held.answers, url.href, response);
    const override = this.#overrides.find(({ match }) =>
      typeof match === 'string' ? match === url.pathname : match.test(url.pathname),
    );
    if (override !== undefined) override.handler(request, response);
    else if (request.headers.authorization !== `Bearer ${this.token}`) sendError(response, 401, 'UNAUTHENTICATED');
    else if (resource === 'list') this.#list(url.searchParams, request, response);
    else this.#single(resource, id ?? '', { request, response });
  }

  #list(query: URLSearchParams, request: IncomingMessage, response: ServerResponse): void {
    const workspaceIds = query.getAll('workspaceId').map((id) => id.toLowerCase());
    if (workspaceIds.length === 0) {
      sendError(response, 400, 'BAD_REQUEST');
      return;
    }
    const matching = [...this.evaluations.values()]
      .filter((value) => isWireRecord(value))
      .filter((record) => workspaceIds.includes(String(record['workspaceId']).toLowerCase()))
      .filter((record) => query.get('state') === null || record['state'] === query.get('state'))
      .filter((record) => matchesScorecard(record, query.get('scorecardId')))
      .filter((record) => matchesSearch(record, query.get('q')))
      .toSorted(newestFirst);
    const offset = Number(query.get('offset') ?? '0');
    const limit = Number(query.get('limit') ?? '50');
    sendJson(request, response, { items: matching.slice(offset, offset + limit), total: matching.length });
  }

  #single(
    resource: StoreServerResource,
    id: string,
    exchange: { readonly request: IncomingMessage; readonly response: ServerResponse },
  ): void {
    const record = this.#recordsBy[resource]?.get(id);
    if (record !== undefined) {
      sendJson(exchange.request, exchange.response, record);
      return;
    }
    const isPart = resource === 'transcript' || resource === 'scorecard' || resource === 'dealInsights';
    sendError(exchange.response, 404, isPart && this.evaluations.has(id) ? 'NOT_READY' : 'NOT_FOUND');
  }
}

/** Starts a scripted store on a free loopback port. Close it when the test is over. */
export async function createStoreServer(): Promise<StoreServer> {
  return await StoreServer.start();
}

/** Nothing of an answer goes out before it ends. */
function keepUntilSent(held: HeldAnswer[], path: string, response: ServerResponse): void {
  const end = response.end.bind(response);
  response.end = (body?: unknown) => {
    const answer: HeldAnswer = {
      path,
      send: () => {
        const at = held.indexOf(answer);
        if (at < 0) return;
        held.splice(at, 1);
        end(body);
      },
    };
    held.push(answer);
    return response;
  };
}

/** The form that the store's errors have. */
export function sendError(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ code, message: `The store says ${code}.` }));
}

/** 200 with an ETag of the body, or 304 where the request's If-None-Match names it. */
export function sendJson(request: IncomingMessage, response: ServerResponse, value: unknown): void {
  const body = JSON.stringify(value);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  if (request.headers['if-none-match'] === etag) {
    response.writeHead(304, { etag });
    response.end();
    return;
  }
  response.writeHead(200, { 'content-type': 'application/json', etag });
  response.end(body);
}

const PATHS: readonly (readonly [RegExp, StoreServerResource])[] = [
  [/\/internal\/v1\/evaluations\/([^/]+)$/, 'evaluation'],
  [/\/internal\/v1\/evaluations\/([^/]+)\/transcript$/, 'transcript'],
  [/\/internal\/v1\/evaluations\/([^/]+)\/scorecard$/, 'scorecard'],
  [/\/internal\/v1\/evaluations\/([^/]+)\/deal-insights$/, 'dealInsights'],
  [/\/internal\/v1\/scorecards\/([^/]+)$/, 'rubric'],
  [/\/internal\/v1\/api-keys\/([^/]+)$/, 'apiKey'],
];

function resourceOf(pathname: string): { readonly resource: StoreServerResource; readonly id: string | null } {
  if (pathname.endsWith('/internal/v1/evaluations')) return { resource: 'list', id: null };
  for (const [pattern, resource] of PATHS) {
    const id = pattern.exec(pathname)?.[1];
    if (id !== undefined) return { resource, id };
  }
  return { resource: 'unknown', id: null };
}

function isWireRecord(value: unknown): value is WireRecord {
  return typeof value === 'object' && value !== null;
}

function matchesScorecard(record: WireRecord, scorecardId: string | null): boolean {
  if (scorecardId === null) return true;
  const reference = record['scorecardRef'];
  return isWireRecord(reference) && reference['id'] === scorecardId;
}

/** Case-insensitive substring of what the interface says is searched. */
function matchesSearch(record: WireRecord, search: string | null): boolean {
  if (search === null) return true;
  const evaluatee = isWireRecord(record['evaluatee']) ? record['evaluatee'] : {};
  const people = Array.isArray(record['people']) ? record['people'].filter((value) => isWireRecord(value)) : [];
  const links = Array.isArray(record['crmLinks']) ? record['crmLinks'].filter((value) => isWireRecord(value)) : [];
  const texts = [
    record['title'],
    evaluatee['displayName'],
    evaluatee['email'],
    ...people.map((person) => person['email']),
    ...links.filter((link) => link['objectType'] === 'deal').map((link) => link['label']),
  ];
  const needle = search.toLowerCase();
  return texts.some((text) => typeof text === 'string' && text.toLowerCase().includes(needle));
}

function newestFirst(a: WireRecord, b: WireRecord): number {
  const byTime = Number(b['createdAtMs']) - Number(a['createdAtMs']);
  if (byTime !== 0) return byTime;
  return String(b['_id']) > String(a['_id']) ? 1 : -1;
}
