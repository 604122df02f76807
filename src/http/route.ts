/**
 * A route is declared once: its path, scope, parameters, response and fixed texts. The router, the OpenAPI document,
 * deprecation headers and `explain` are all made from these declarations.
 */
import { match } from 'path-to-regexp';
import type { ZodType } from 'zod';
import type { oas31 } from 'zod-openapi';
import type { OperationId } from '../domain/operations.ts';
import { ID_PATTERN } from '../domain/records.ts';
import type { Scope } from '../keys/key.ts';
import type { RecordKind } from '../upstream/resources.ts';
import type { ListQuery } from '../upstream/store.ts';
import { Problem, surfaceOf } from './problem.ts';

/** The list of evaluations that a request asks for. */
export interface ListRequest {
  readonly resource: 'list';
  readonly query: ListQuery;
}

/** The single record that a request asks for. */
export interface RecordRequest<K extends RecordKind = RecordKind> {
  readonly resource: K;
  readonly id: string;
  /** Workspaces that the record may belong to, in lower case; null for all workspaces of the reader. */
  readonly workspaceIds: readonly string[] | null;
}

export type StoreRequest = ListRequest | RecordRequest;

/** What `parseRequest` reads: a request being served, or one that an operator wants explained. */
export interface RequestView {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** All workspaces of the reader, in lower case. */
  readonly workspaceIds: () => readonly string[];
  readonly isWorkspaceVisible: (workspaceId: string) => boolean;
}

export interface Route<R extends StoreRequest | null = StoreRequest | null> {
  /** The OpenAPI operationId. */
  readonly name: OperationId;
  readonly surface: 'v1' | 'v2';
  /** Below the surface's prefix, with `:parameters`. */
  readonly path: string;
  /** The path as logs, metrics and the OpenAPI document show it: `/v2/calls/{callId}`. */
  readonly template: string;
  /** Null if any active key may ask. */
  readonly scope: Scope | null;
  /** `none`: a request costs its key no quota and only shows how much is used (K8a). */
  readonly quota: 'counted' | 'none';
  /** The one text of every 403, so that its reasons cannot be told apart (K7). */
  readonly forbidden: string;
  /** The one text of every 404, so that a foreign record looks like none (K7). */
  readonly notFound: string;
  /** What the store is asked; throws a Problem if the request is invalid. Null: the gateway answers by itself. */
  readonly parseRequest: ((view: RequestView, texts: FixedTexts) => R) | null;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly oas31.ParameterObject[];
  /** The failures that the operation documents, beside 405 (S1). */
  readonly failures: readonly FailureStatus[];
  readonly response: ZodType;
  readonly success: string;
}

export type FixedTexts = Pick<Route, 'forbidden' | 'notFound'>;

export type FailureStatus = 400 | 401 | 403 | 404 | 429 | 500;

/** Declares a route; the compiler keeps the type of its request. */
export function route<R extends StoreRequest | null>(declaration: Omit<Route<R>, 'template'>): Route<R> {
  const { surface, path } = declaration;
  return { ...declaration, template: `/${surface}${path.replaceAll(/:(\w+)/g, '{$1}')}` };
}

/** The route's one 404: the same for none, for a foreign record, and for a part that is not ready (K7). */
export function notFound({ notFound: text }: Pick<Route, 'notFound'>, privateMessage?: string): Problem {
  return new Problem('not_found', text, privateMessage === undefined ? {} : { privateMessage });
}

/** The route's 403: one text, whatever its reason (K7). */
export function forbidden(
  { forbidden: text }: Pick<Route, 'forbidden'>,
  code: 'key_inactive' | 'scope_missing' | 'workspace_forbidden',
  reason: string,
): Problem {
  return new Problem(code, text, { privateMessage: `forbidden: ${reason}` });
}

/** A path parameter that is an id of the store. Throws the route's 404 for what no record can have (Q7). */
export function parseId({ params }: RequestView, name: string, texts: FixedTexts): string {
  const id = params[name] ?? '';
  if (ID_PATTERN.test(id)) return id;
  throw notFound(texts, `The ${name} of the path is no id: 1 to 64 letters, digits, hyphens and underscores.`);
}

export interface MatchedRoute {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

type Matcher = (pathname: string) => MatchedRoute | null;

/** Finds the route of a path before, or without, serving it. */
export class RouteTable {
  readonly routes: readonly Route[];
  readonly #matchers: Readonly<Record<'v1' | 'v2' | 'other', readonly Matcher[]>>;

  constructor(routes: readonly Route[]) {
    const matchersOf = (surface: 'v1' | 'v2'): readonly Matcher[] =>
      routes.filter((candidate) => candidate.surface === surface).map(matcherOf);
    this.routes = routes;
    this.#matchers = { v1: matchersOf('v1'), v2: matchersOf('v2'), other: [] };
  }

  /** Null if no route has the path. */
  find(pathname: string): MatchedRoute | null {
    for (const matches of this.#matchers[surfaceOf(pathname)]) {
      const found = matches(pathname);
      if (found !== null) return found;
    }
    return null;
  }
}

/** Matches as the router does: case matters, and so does a trailing slash. */
function matcherOf(declaration: Route): Matcher {
  const matches = match<Record<string, string>>(`/${declaration.surface}${declaration.path}`, {
    sensitive: true,
    trailing: false,
    decode: decodePart,
  });
  return (pathname) => {
    const found = matches(pathname);
    return found === false ? null : { route: declaration, params: found.params };
  };
}

/** A part that cannot be decoded is no id of anything; it is left as it is. */
function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
