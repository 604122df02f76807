/**
 * The store of a test: the bundled sample server on a loopback port, over records that the test puts in. It remembers
 * its calls, can hold its answers back, and can be made to misbehave.
 *
 *     const store = await createStoreServer();
 *     store.put({ evaluations: [anEvaluation()], transcripts: [aTranscript()] });
 *     ... a gateway in front of store.url with store.token ...
 *     expect(store.calls('evaluation')).toBe(1);
 *     await store.close();
 */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type * as domain from '../../src/domain/records.ts';
import type { Faults } from '../../src/sample/faults.ts';
import { type RecordTable, type SampleResource, StoreRecords } from '../../src/sample/routes.ts';
import { type SampleCall, SampleUpstream } from '../../src/sample/server.ts';

export type StoreServerResource = Exclude<SampleResource, 'other'> | 'unknown';

/** One request as it arrived. */
export interface SeenRequest {
  readonly resource: StoreServerResource;
  /** The id in the path; null for a list. */
  readonly id: string | null;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Unix milliseconds, with fractions. */
  readonly arrivedAtMs: number;
}

export type StoreHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** The records that a test puts in. The server accepts anything, including malformed records and foreign ids. */
export interface StoreContents {
  readonly evaluations?: readonly domain.EvaluationRecord[];
  readonly transcripts?: readonly domain.TranscriptRecord[];
  readonly scoredCards?: readonly domain.ScoredCardRecord[];
  readonly dealInsights?: readonly domain.DealInsightsRecord[];
  readonly scorecards?: readonly domain.ScorecardRecord[];
}

/** An answer that is ready and was not sent yet. */
export interface HeldAnswer {
  readonly path: string;
  readonly requestId: string;
  send(): void;
}

/** Answers as they were when their requests arrived, in order of arrival, until the test sends them. */
export interface Hold {
  readonly answers: readonly HeldAnswer[];
  /** Sends all of them, and holds no more. */
  release(): void;
}

const TABLES = ['evaluations', 'transcripts', 'scoredCards', 'dealInsights', 'scorecards'] as const;

export class StoreServer {
  readonly token = 'store-token-for-tests';
  readonly #records = new StoreRecords();
  /** Raw records by id. Setting one directly stores a malformed record, or one under a foreign id. */
  readonly evaluations: RecordTable = this.#records.evaluations;
  readonly transcripts: RecordTable = this.#records.transcripts;
  readonly scoredCards: RecordTable = this.#records.scoredCards;
  readonly dealInsights: RecordTable = this.#records.dealInsights;
  readonly scorecards: RecordTable = this.#records.scorecards;
  /** All requests so far, in order of arrival, refused and overridden ones included. */
  readonly requests: SeenRequest[] = [];
  readonly #upstream: SampleUpstream;
  #url = '';
  #overrides: { readonly match: string | RegExp; readonly handler: StoreHandler }[] = [];
  /** Null for the one that it started with. */
  #tokens: readonly string[] | null = null;
  #inFlight = 0;
  #mostInFlight = 0;
  #held: { readonly match: RegExp; readonly answers: HeldAnswer[] } | null = null;
  #arrivals: { readonly isReached: () => boolean; readonly resolve: () => void }[] = [];

  constructor(latencyMs: number) {
    const { token } = this;
    const intercept = (call: SampleCall): Promise<boolean> => this.#intercept(call);
    this.#upstream = new SampleUpstream({
      data: { records: this.#records },
      token,
      latency: latencyMs,
      intercept,
    });
  }

  async listen(): Promise<this> {
    this.#url = (await this.#upstream.listen(0)).url;
    return this;
  }

  /** The base address, without a trailing slash: what `UPSTREAM_URL` would be. */
  get url(): string {
    return this.#url;
  }

  get connections(): number {
    return this.#upstream.connections;
  }

  get openConnections(): number {
    return this.#upstream.openConnections;
  }

  get mostInFlight(): number {
    return this.#mostInFlight;
  }

  /** Forgets all requests so far, and how many there were at a time. */
  forget(): void {
    this.requests.length = 0;
    this.#mostInFlight = this.#inFlight;
  }

  put(contents: StoreContents): void {
    for (const name of TABLES) {
      for (const record of contents[name] ?? []) {
        this[name].set('evaluationId' in record ? record.evaluationId : record['_id'], record);
      }
    }
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

  /**
   * Makes each answer when its request arrives, from the records of that moment, and keeps it until it is sent. Only
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

  /** Replaces the faults of the sample (`src/sample/faults.ts`); returns what ends all of them. */
  setFaults(faults: Partial<Faults>): () => void {
    this.#upstream.setFaults(faults);
    return () => this.#upstream.setFaults({});
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

  /** Answers with that text, or that value as JSON, until the returned function is called. */
  answer(match: string | RegExp, body: unknown, status = 200): () => void {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return this.override(match, (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    });
  }

  /** Every request fails with that status until the returned function is called. */
  fail(status: number, headers: Readonly<Record<string, string>> = {}): () => void {
    return this.override(/^/, (_request, response) => {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      sendError(response, status, status === 429 ? 'TOO_MANY_REQUESTS' : 'FAILURE');
    });
  }

  /** Takes these tokens and no other from now on. */
  acceptOnly(...tokens: readonly string[]): void {
    this.#tokens = tokens;
  }

  /** Every connection is reset as soon as a request arrives on it, until the returned function is called. */
  resetConnections(): () => void {
    return this.override(/^/, ({ socket }) => void socket.resetAndDestroy());
  }

  /** Ends all that holds its answers or makes it misbehave. */
  heal(): void {
    this.#overrides = [];
    this.#tokens = null;
    this.#upstream.setFaults({});
    for (const answer of this.#held?.answers.slice() ?? []) answer.send();
    this.#held = null;
  }

  async close(): Promise<void> {
    await this.#upstream.close();
  }

  async #intercept({ request, response, path, query, route, answer }: SampleCall): Promise<boolean> {
    const { method = '', url = '', headers } = request;
    const resource = route.resource === 'other' ? 'unknown' : route.resource;
    const arrivedAtMs = performance.timeOrigin + performance.now();
    this.requests.push({
      resource,
      id: route.id || null,
      method,
      path: url,
      query,
      headers: { ...headers },
      arrivedAtMs,
    });
    this.#inFlight += 1;
    this.#mostInFlight = Math.max(this.#mostInFlight, this.#inFlight);
    response.once('close', () => {
      this.#inFlight -= 1;
    });
    this.#arrivals = this.#arrivals.filter((arrival) => {
      if (arrival.isReached()) arrival.resolve();
      return !arrival.isReached();
    });
    const override = this.#overrides.find(({ match }) =>
      typeof match === 'string' ? match === path : match.test(path),
    );
    if (this.#held?.match.test(path) === true) {
      answer();
      await sendOf(this.#held.answers, url, String(headers['x-request-id']));
    }
    if (response.destroyed) return true;
    if (this.#tokens !== null) {
      if (!this.#tokens.some((token) => headers.authorization === `Bearer ${token}`)) {
        sendError(response, 401, 'UNAUTHENTICATED');
        return true;
      }
      headers.authorization = `Bearer ${this.token}`;
    }
    override?.handler(request, response);
    return override !== undefined;
  }
}

/** Resolves once the test sends the answer. */
function sendOf(held: HeldAnswer[], path: string, requestId: string): Promise<void> {
  return new Promise((resolve) => {
    const answer: HeldAnswer = {
      path,
      requestId,
      send: () => {
        if (held.includes(answer)) held.splice(held.indexOf(answer), 1);
        resolve();
      },
    };
    held.push(answer);
  });
}

/** Starts a store on a free loopback port, which answers at once or within that median. Close it in the end. */
export async function createStoreServer({ latencyMs = 0 } = {}): Promise<StoreServer> {
  return await new StoreServer(latencyMs).listen();
}

/** The form that the store's errors have. */
export function sendError(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ code, message: `The store says ${code}.` }));
}

/** 200 with an ETag of the body, or 304 if the request's If-None-Match names it. */
export function sendJson(request: IncomingMessage, response: ServerResponse, value: unknown): void {
  const body = JSON.stringify(value);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const isSame = request.headers['if-none-match'] === etag;
  response.writeHead(isSame ? 304 : 200, isSame ? { etag } : { 'content-type': 'application/json', etag });
  response.end(isSame ? undefined : body);
}
