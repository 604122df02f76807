/** From a public path to what the cache is asked, for operators who want to know what it makes of a request. */
import { match } from 'path-to-regexp';
import type { Resolution } from '../cache/explain.ts';
import { UUID_PATTERN } from '../domain/vocabulary.ts';
import { Problem } from './problem.ts';
import { parseQuery, ReaderNeeded } from './route.ts';
import { routesOf } from './routes.ts';
import type { Route } from './state.ts';

/** `path` with its query; `ownWorkspaceIds`: all of the reader's workspaces, in lower case, or null if no reader was named. */
export function createResolver(
  hasFeed: boolean,
): (path: string, ownWorkspaceIds: readonly string[] | null) => Resolution {
  const routes = routesOf(hasFeed);
  const find = routeTable(routes);
  return (path, ownWorkspaceIds) => {
    const [target = ''] = path.split('#');
    const [pathname = '', ...query] = target.split('?');
    const found = find(pathname);
    if (found !== null) return resolve(found, query.join('?'), ownWorkspaceIds);
    const known = routes.map(({ template }) => template).join(', ');
    return { kind: 'refused', message: `The path is no endpoint of the API. Its endpoints are ${known}.` };
  };
}

interface MatchedRoute {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Finds the route of a path without serving it; null if no route has the path. The router has no documented way to ask it, so
 * this is done by the matcher that it is made of, with the router's options: case matters, and so does a trailing slash.
 */
function routeTable(routes: readonly Route[]): (pathname: string) => MatchedRoute | null {
  const matchers = routes.map((route) => {
    const options = { sensitive: true, trailing: false, decode: decodePart };
    return { route, matches: match<Record<string, string>>(`/${route.surface}${route.path}`, options) };
  });
  return (pathname) => {
    for (const { route, matches } of matchers) {
      const found = matches(pathname);
      if (found !== false) return { route, params: found.params };
    }
    return null;
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

function resolve(
  { route, params }: MatchedRoute,
  query: string,
  ownWorkspaceIds: readonly string[] | null,
): Resolution {
  const { template } = route;
  if (route.parseRequest === null) {
    return { kind: 'refused', message: `${template} is answered by the gateway itself: nothing of it is cached.` };
  }
  try {
    const parsed = route.parseRequest({ params, query: parseQuery(query), ownWorkspaceIds });
    if (parsed instanceof Problem) {
      // The private reason: one that consumers must not see may be shown to an operator.
      return { kind: 'refused', message: `Such a request is answered ${parsed.status}. ${parsed.reason}` };
    }
    const { request, ...asked } = parsed;
    const workspaceIds = asked.workspaceIds ?? ownWorkspaceIds;
    const refusal = workspaceIds === null ? null : refusalOf(workspaceIds, ownWorkspaceIds);
    if (refusal !== null) return { kind: 'refused', message: refusal };
    return { kind: 'request', request, route: template, workspaceIds };
  } catch (error) {
    if (error instanceof ReaderNeeded) return { kind: 'reader-needed' };
    throw error;
  }
}

/** How authorization would refuse the request (K5: a workspace of the path must be the key's); no key is checked here. */
function refusalOf(workspaceIds: readonly string[], ownWorkspaceIds: readonly string[] | null): string | null {
  if (!workspaceIds.every((id) => UUID_PATTERN.test(id))) {
    return 'Such a request is answered 403: the workspace of the path is no UUID, so no key may see it.';
  }
  if (ownWorkspaceIds === null || workspaceIds.every((id) => ownWorkspaceIds.includes(id))) return null;
  return 'Such a request is answered 403: the workspace of the path is none that the reader may see.';
}
