/** The public listener's application: what a request passes through, in order. */
import Koa from 'koa';
import type { EvaluationReader } from '../cache/reader.ts';
import type { Clock } from '../clock.ts';
import type { Authenticator } from '../keys/authenticate.ts';
import type { Quota, QuotaLimits, WindowName } from '../quota/quota.ts';
import { plainErrorForm, v1ErrorForm, v2ErrorForm } from './error-forms.ts';
import { type AuthenticateOptions, recogniseKey, requireKey } from './middleware/authenticate.ts';
import { enforceQuota } from './middleware/enforce-quota.ts';
import { noEndpoint } from './middleware/no-endpoint.ts';
import { renderErrors } from './middleware/render-errors.ts';
import { requestContext, type RequestReport, surfaceOf } from './middleware/request-context.ts';
import type { Context, Middleware, RequestState } from './state.ts';
import { createSurface, type Endpoint } from './surface.ts';
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
  /** Serves `/openapi.json` and `/docs`, and passes everything else on. */
  readonly docs: Middleware;
  readonly isDraining: () => boolean;
  readonly hooks: PublicAppHooks;
}

/** What the application reports of itself; it imports neither log nor metrics. */
export interface PublicAppHooks {
  readonly onRequest: (report: RequestReport) => void;
  readonly onAuthenticationRefused: AuthenticateOptions['onRefused'];
  readonly onQuotaRefused: (window: WindowName) => void;
}

export function createPublicApp(options: PublicAppOptions): Koa<RequestState> {
  const { hooks } = options;
  const authentication: AuthenticateOptions = {
    authenticator: options.authenticator,
    addressOf: options.addressOf,
    onRefused: hooks.onAuthenticationRefused,
  };
  const layers = {
    requireKey: requireKey(authentication),
    recogniseKey: recogniseKey(authentication),
    enforceQuota: enforceQuota({
      quota: options.quota,
      defaultLimits: options.defaultLimits,
      onRefused: hooks.onQuotaRefused,
    }),
  };
  const transcripts = new Transcripts();
  const v1 = surface('v1', v1Endpoints(options.reader, transcripts));
  const v2 = surface('v2', v2Endpoints(options.reader, transcripts));

  function surface(prefix: 'v1' | 'v2', endpoints: readonly Endpoint[]): Middleware {
    return createSurface({ ...layers, prefix, endpoints, errorForm: prefix === 'v1' ? v1ErrorForm : v2ErrorForm });
  }

  const app = new Koa<RequestState>();
  // 1. The request's id, its clock, and the headers that every answer has.
  app.use(requestContext({ clock: options.clock, onFinished: hooks.onRequest, isDraining: options.isDraining }));
  // 2. A surface: error form → endpoint → key → quota → authorization → query → read → public form.
  app.use(async (ctx, next) => {
    const name = surfaceOf(ctx.path);
    if (name === 'v1') await v1(ctx, next);
    else if (name === 'v2') await v2(ctx, next);
    else await next();
  });
  // 3. What needs no key, and the 404 for what is nowhere.
  app.use(renderErrors(plainErrorForm));
  app.use(options.docs);
  app.use(noEndpoint(() => false));
  return app;
}
