/** The public listener's application: what a request passes through, in order. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import Koa from 'koa';
import type { EvaluationReader } from '../cache/reader.ts';
import type { Clock } from '../clock.ts';
import type { Deprecation } from '../domain/operations.ts';
import type { Authenticator } from '../keys/authenticate.ts';
import type { Quota, QuotaLimits, WindowName } from '../quota/quota.ts';
import { type Answer, writeAnswer } from './answer.ts';
import { addNotices, noticesBy } from './deprecations.ts';
import { ClientGoneError } from './gone.ts';
import type { HeadResponse } from './head.ts';
import { type AuthenticateOptions, recogniseKey, requireKey } from './layers/authenticate.ts';
import { enforceQuota, refused } from './layers/enforce-quota.ts';
import { noEndpoint } from './layers/no-endpoint.ts';
import { errorAnswer } from './layers/render-errors.ts';
import { beginRequest, reportOf, type RequestReport, surfaceOf } from './layers/request-context.ts';
import { Places, type ShedLoadOptions } from './layers/shed-load.ts';
import { Addresses, pathMatcher } from './paths.ts';
import type { Context, RequestState } from './state.ts';
import { type Endpoint, serveEndpoint, type Steps } from './surface.ts';
import { Transcripts } from './transcripts.ts';
import { v1Endpoints } from './v1/endpoints.ts';
import { v2Endpoints } from './v2/endpoints.ts';

export interface PublicAppOptions {
  readonly clock: Clock;
  readonly reader: EvaluationReader;
  readonly authenticator: Authenticator;
  readonly quota: Quota;
  readonly defaultLimits: () => QuotaLimits;
  /** The caller's address, with trusted proxies taken into account. */
  readonly addressOf: (ctx: Context) => string;
  /** Answers `/openapi.json` and `/docs`; null for everything else. */
  readonly docs: (ctx: Context) => Promise<Answer | null>;
  readonly isDraining: () => boolean;
  /** What the answers of operations tell of; nothing by default. */
  readonly deprecations?: readonly Deprecation[];
  readonly maxInFlight: ShedLoadOptions['maxInFlight'];
  readonly hooks: PublicAppHooks;
}

/** What the application reports of itself; it imports neither log nor metrics. */
export interface PublicAppHooks {
  /** With the response that it was about, by which it can be known. */
  readonly onRequest: (report: RequestReport, response: ServerResponse) => void;
  readonly onAuthenticationRefused: AuthenticateOptions['onRefused'];
  readonly onQuotaRefused: (window: WindowName) => void;
  readonly onShed?: ShedLoadOptions['onShed'];
  /** An answer could not be sent. Everything a request can fail with is answered; this is left of responses that break. */
  readonly onBroken: (error: unknown) => void;
}

/** Answers a request. Never rejects. */
export type RequestHandler = (request: IncomingMessage, response: HeadResponse) => Promise<void>;

/**
 * Koa makes the contexts; the gateway is its one piece of middleware, called without the row around it. Koa's own way with
 * a request (a composed row, a second answer at its end, listeners on the connection for each request) costs a third of
 * what a hot read costs in all, and is of no use here: every answer is written in one place, and hears of its own end.
 */
export function createPublicApp(options: PublicAppOptions): RequestHandler {
  const koa = new Koa<RequestState>();
  const gateway = new PublicGateway(options);
  return (request, response) => gateway.serve(koa.createContext<RequestState>(request, response), response);
}

class PublicGateway {
  readonly #options: PublicAppOptions;
  readonly #places: Places;
  readonly #addresses: Addresses<Endpoint>;
  readonly #recogniseKey: ReturnType<typeof recogniseKey>;
  readonly #steps: Steps;

  constructor(options: PublicAppOptions) {
    const { hooks, reader } = options;
    const authentication: AuthenticateOptions = {
      authenticator: options.authenticator,
      addressOf: options.addressOf,
      onRefused: hooks.onAuthenticationRefused,
    };
    const transcripts = new Transcripts();
    const notices = noticesBy(options.deprecations ?? []);
    this.#options = options;
    this.#places = new Places({ maxInFlight: options.maxInFlight, onShed: hooks.onShed });
    this.#addresses = new Addresses([
      pathMatcher('v1', v1Endpoints(reader, transcripts), notices),
      pathMatcher('v2', v2Endpoints(reader, transcripts), notices),
    ]);
    this.#recogniseKey = recogniseKey(authentication);
    this.#steps = {
      requireKey: requireKey(authentication),
      enforceQuota: enforceQuota({ ...options, onRefused: hooks.onQuotaRefused }),
    };
  }

  /** Never rejects. */
  async serve(ctx: Context, response: HeadResponse): Promise<void> {
    const { clock, hooks, isDraining } = this.#options;
    // 1. The request's id, its clock, and the fields that every answer has.
    const startedMicros = clock.nowMicros();
    beginRequest(ctx);
    // 2. A place among those that are under way.
    const place = this.#places.take();
    response.on('close', () => {
      place?.leave();
      hooks.onRequest(reportOf(ctx, (clock.nowMicros() - startedMicros) / 1000), response);
    });
    try {
      const answer = await this.#answer(ctx, place !== null);
      // 6. Asked as late as can be: also of what began before the process was told to stop, nothing is to follow.
      writeAnswer(ctx, response, answer, isDraining());
    } catch (error) {
      this.#fail(ctx, response, error);
    } finally {
      place?.leave();
    }
  }

  /** Throws, or rejects with, whatever the request fails with. */
  #answer(ctx: Context, hasPlace: boolean): Promise<Answer> {
    const match = this.#addresses.find(ctx);
    if (match !== null) addNotices(ctx, match);
    const endpoint = match !== null && isRead(ctx) ? match.endpoint : null;
    if (endpoint !== null) ctx.state.match = match;
    if (!hasPlace) this.#places.refuse();
    // 3. An endpoint, behind its steps.
    if (endpoint !== null) return serveEndpoint(ctx, endpoint, this.#steps);
    // 4. What is no endpoint of a surface counts for its key all the same.
    if (surfaceOf(ctx.path) !== 'other') return this.#answerNoEndpoint(ctx, match !== null);
    // 5. What needs no key, and the 404 for what is nowhere.
    return this.#answerDocs(ctx);
  }

  #fail(ctx: Context, response: HeadResponse, error: unknown): void {
    ctx.state.failure = error;
    // There is nobody to tell.
    if (error instanceof ClientGoneError) return;
    try {
      writeAnswer(ctx, response, errorAnswer(ctx, error), this.#options.isDraining());
    } catch (cause) {
      this.#options.hooks.onBroken(cause);
      response.destroy();
    }
  }

  async #answerDocs(ctx: Context): Promise<Answer> {
    const answer = await this.#options.docs(ctx);
    if (answer === null) throw noEndpoint(ctx, false);
    return answer;
  }

  async #answerNoEndpoint(ctx: Context, hasPath: boolean): Promise<Answer> {
    await this.#recogniseKey(ctx);
    if (!(await this.#steps.enforceQuota(ctx))) return refused(ctx);
    throw noEndpoint(ctx, hasPath);
  }
}

function isRead({ req }: Context): boolean {
  return req.method === 'GET' || req.method === 'HEAD';
}
