/** The public listener's application: what a request passes through, in order. */
import Koa from 'koa';
import type { EvaluationReader } from '../cache/reader.ts';
import type { Clock } from '../clock.ts';
import type { Authenticator } from '../keys/authenticate.ts';
import type { Quota, QuotaLimits, WindowName } from '../quota/quota.ts';
import { type Answer, writeAnswer } from './answer.ts';
import { ClientGoneError } from './gone.ts';
import { type AuthenticateOptions, recogniseKey, requireKey } from './layers/authenticate.ts';
import { enforceQuota, refused } from './layers/enforce-quota.ts';
import { noEndpoint } from './layers/no-endpoint.ts';
import { errorAnswer } from './layers/render-errors.ts';
import { beginRequest, type RequestReport, surfaceOf } from './layers/request-context.ts';
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
  readonly maxInFlight: ShedLoadOptions['maxInFlight'];
  readonly hooks: PublicAppHooks;
}

/** What the application reports of itself; it imports neither log nor metrics. */
export interface PublicAppHooks {
  readonly onRequest: (report: RequestReport) => void;
  readonly onAuthenticationRefused: AuthenticateOptions['onRefused'];
  readonly onQuotaRefused: (window: WindowName) => void;
  readonly onShed?: ShedLoadOptions['onShed'];
}

export function createPublicApp(options: PublicAppOptions): Koa<RequestState> {
  const gateway = new PublicGateway(options);
  const app = new Koa<RequestState>();
  app.use((ctx) => gateway.serve(ctx));
  return app;
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
    this.#options = options;
    this.#places = new Places({ maxInFlight: options.maxInFlight, onShed: hooks.onShed });
    this.#addresses = new Addresses([
      pathMatcher('v1', v1Endpoints(reader, transcripts)),
      pathMatcher('v2', v2Endpoints(reader, transcripts)),
    ]);
    this.#recogniseKey = recogniseKey(authentication);
    this.#steps = {
      requireKey: requireKey(authentication),
      enforceQuota: enforceQuota({ ...options, onRefused: hooks.onQuotaRefused }),
    };
  }

  async serve(ctx: Context): Promise<void> {
    const { clock, hooks, isDraining } = this.#options;
    // 1. The request's id, its clock, and the fields that every answer has.
    beginRequest(ctx, clock, hooks.onRequest);
    // 2. A place among those that are under way.
    const leave = this.#places.take();
    if (leave !== null) ctx.res.once('close', leave);
    try {
      const answer = await this.#answer(ctx, leave !== null);
      // 6. Asked as late as can be: also of what began before the process was told to stop, nothing is to follow.
      writeAnswer(ctx, answer, isDraining());
    } catch (error) {
      if (!(error instanceof ClientGoneError)) throw error;
      // There is nobody to tell.
      ctx.state.failure = error;
      ctx.respond = false;
    } finally {
      leave?.();
    }
  }

  /** Rejects with a ClientGoneError and nothing else. */
  async #answer(ctx: Context, hasPlace: boolean): Promise<Answer> {
    try {
      const match = this.#addresses.find(ctx);
      const endpoint = match !== null && isRead(ctx) ? match.endpoint : null;
      if (endpoint !== null) ctx.state.match = match;
      if (!hasPlace) this.#places.refuse();
      // 3. An endpoint, behind its steps.
      if (endpoint !== null) return await serveEndpoint(ctx, endpoint, this.#steps);
      // 4. What is no endpoint of a surface counts for its key all the same.
      if (surfaceOf(ctx.path) !== 'other') return await this.#answerNoEndpoint(ctx, match !== null);
      // 5. What needs no key, and the 404 for what is nowhere.
      const answer = await this.#options.docs(ctx);
      if (answer === null) throw noEndpoint(ctx, false);
      return answer;
    } catch (error) {
      if (error instanceof ClientGoneError) throw error;
      ctx.state.failure = error;
      return errorAnswer(ctx, error);
    }
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
