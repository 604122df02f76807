/**
 * A route is declared once: its path, scope, parameters, response and fixed texts. The router, the OpenAPI document,
 * deprecation headers and `explain` are all made from these declarations.
 */
import type { RouterContext } from '@koa/router';
import { type Deprecation, deprecationOf } from '../domain/operations.ts';
import { type ApiKey, hasScope } from '../keys/key.ts';
import { ALLOWED_METHODS, ErrorText, forbidden, type Headers, notFound, Problem, refuse } from './problem.ts';
import {
  type AnswerSources,
  apiKeyOf,
  type Middleware,
  type Route,
  type RouteContext,
  type RouteDeclaration,
} from './state.ts';

/** Path and query, in bytes as they were sent. */
const MAX_ADDRESS_BYTES = 8192;
const ADDRESS_TOO_LONG = new Problem(
  'address_too_long',
  new ErrorText(`The address is longer than ${MAX_ADDRESS_BYTES} bytes.`),
);
const PATH_UNKNOWN = new Problem(
  'path_unknown',
  new ErrorText('There is no such address in this API. GET /docs describes it.'),
);
const SCOPE_MISSING = forbidden('scope_missing', 'the key lacks the scope');
const WORKSPACE_FORBIDDEN = forbidden('workspace_forbidden', "the workspace of the path is not among the key's");

/** A query string, which is given without its question mark. */
export function parseQuery(querystring: string): URLSearchParams {
  // With a question mark in front: URLSearchParams would drop one that belongs to the query.
  return new URLSearchParams(`?${querystring}`);
}

/** The request depends on who reads, and nobody is named. */
export class ReaderNeeded extends Error {}

/** Declares a route. */
export function route(declaration: RouteDeclaration): Route {
  const { surface, path } = declaration;
  return {
    ...declaration,
    template: `/${surface}${path.replaceAll(/:(\w+)/g, '{$1}')}`,
    texts: { 403: new ErrorText(declaration.forbidden), 404: new ErrorText(declaration.notFound) },
  };
}

interface Deprecations {
  readonly deprecations: readonly Deprecation[];
}

/** The first of a route's chain: the checks behind it need its fixed texts and its quota. */
export function begin(declared: Route, { deprecations }: Deprecations): Middleware {
  const headers = deprecationHeaders(declared, deprecations);
  return ({ state }, next) => {
    state.route = declared;
    if (headers !== null) state.headers.push(headers);
    return next();
  };
}

interface AnswerParts {
  readonly sources: AnswerSources;
  /** Puts the key that is in force now into `ctx.state.apiKey`; the problem if it may not be used any more. */
  readonly renewKey: (ctx: RouteContext) => Promise<Problem | null>;
}

/**
 * The last of a route's chain: answers, for the key that is in force when the answer is ready (K10: after every wait that key
 * decides). If it may not read this any more, the answer is dropped, whatever it is; if it has lost workspaces, the request is
 * answered anew for those that are left. A change during the new answer is noticed as well.
 */
export function answerAuthorized(declared: Route, { sources, renewKey }: AnswerParts) {
  return async (ctx: RouteContext): Promise<void> => {
    const { state } = ctx;
    let problem = refusalOf(declared, ctx);
    while (problem === null) {
      const before = apiKeyOf(ctx);
      state.problem = null;
      const failure = await failureOf(declared.answer(ctx, sources));
      problem = state.hasLeft ? null : ((await renewKey(ctx)) ?? refusalOf(declared, ctx));
      if (problem === null && hasWorkspacesOf(apiKeyOf(ctx), before)) {
        if (failure !== null) throw failure.error;
        return;
      }
    }
    refuse(state, problem);
  };
}

async function failureOf(answer: Promise<void> | void): Promise<{ readonly error: unknown } | null> {
  try {
    await answer;
    return null;
  } catch (error) {
    return { error };
  }
}

/** Whether it has all of the other's. */
function hasWorkspacesOf(key: Pick<ApiKey, 'workspaceIds'>, other: Pick<ApiKey, 'workspaceIds'>): boolean {
  const { workspaceIds } = key;
  return workspaceIds === other.workspaceIds || other.workspaceIds.every((id) => workspaceIds.includes(id));
}

/**
 * The key must hold the route's scope, if it has one, and the workspace of the path, if there is one (K4: else 403; K5: a
 * workspace that is no UUID is nobody's). Then addresses longer than any valid one are refused before their query is parsed.
 */
function refusalOf({ scope, failures }: Route, ctx: RouteContext): Problem | null {
  const key = apiKeyOf(ctx);
  if (scope !== null && !hasScope(key, scope)) return SCOPE_MISSING;
  const { workspaceId } = ctx.params;
  if (workspaceId !== undefined && !key.workspaceIds.includes(workspaceId.toLowerCase())) return WORKSPACE_FORBIDDEN;
  // Node gives each byte of a request target as one character.
  if ((ctx.req.url?.length ?? 0) <= MAX_ADDRESS_BYTES) return null;
  return failures.includes(400) ? ADDRESS_TOO_LONG : notFound();
}

/** For requests that no route has handled, unless a check behind it refuses them (A2: 405 if a route has the path, else 404). */
export function refuseUnknown(
  routes: readonly Route[],
  { deprecations }: Deprecations,
): Middleware<Partial<Pick<RouterContext, 'matched'>>> {
  const headersOf = new Map<string, Headers | null>(
    routes.map((one) => [one.name, deprecationHeaders(one, deprecations)]),
  );
  return async ({ state, matched: [layer] = [], method }, next) => {
    const headers = headersOf.get(layer?.name ?? '') ?? null;
    if (headers !== null) state.headers.push(headers);
    await next();
    state.problem ??= layer === undefined ? PATH_UNKNOWN : methodNotAllowed(method);
  };
}

function methodNotAllowed(method: string): Problem {
  const text = new ErrorText(`The method ${method} is not allowed here; use GET or HEAD.`);
  return new Problem('method_not_allowed', text, { headers: { Allow: ALLOWED_METHODS } });
}

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594), and a link to read more; null if the route is not deprecated. */
function deprecationHeaders({ surface, name }: Route, deprecations: readonly Deprecation[]): Headers | null {
  const deprecation = deprecationOf(deprecations, surface, name);
  if (deprecation === null) return null;
  const { fromMs, untilMs, link } = deprecation;
  return {
    Deprecation: `@${Math.floor(fromMs / 1000)}`,
    ...(untilMs === null ? {} : { Sunset: new Date(untilMs).toUTCString() }),
    ...(link === null ? {} : { Link: `<${link}>; rel="deprecation"` }),
  };
}
