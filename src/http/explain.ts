/** From a public path to what the cache is asked, for operators who want to know what it makes of a request. */
import type { Resolution } from '../cache/explain.ts';
import { UUID_PATTERN } from '../domain/records.ts';
import { Problem } from './problem.ts';
import { type MatchedRoute, parseQuery, routeTable, ViewerNeeded } from './route.ts';
import { V1_ROUTES } from './v1.ts';
import { V2_ROUTES } from './v2.ts';

/** `path` with its query; `viewer`: the reader's workspaces, in lower case, or null if none was named. */
export function createResolver(): (path: string, viewer: readonly string[] | null) => Resolution {
  const routes = [...V1_ROUTES, ...V2_ROUTES];
  const find = routeTable(routes);
  return (path, viewer) => {
    const [target = ''] = path.split('#');
    const [pathname = '', ...query] = target.split('?');
    const found = find(pathname);
    if (found !== null) return resolve(found, query.join('?'), viewer);
    const known = routes.map(({ template }) => template).join(', ');
    return { kind: 'refused', message: `The path is no endpoint of the API. Its endpoints are ${known}.` };
  };
}

function resolve({ route, params }: MatchedRoute, query: string, viewer: readonly string[] | null): Resolution {
  const { template } = route;
  if (route.parseRequest === null) {
    return { kind: 'refused', message: `${template} is answered by the gateway itself: nothing of it is cached.` };
  }
  try {
    const { request, ...asked } = route.parseRequest({ params, query: parseQuery(query), viewer });
    const workspaceIds = asked.workspaceIds ?? viewer;
    const refusal = workspaceIds === null ? null : refusalOf(workspaceIds, viewer);
    if (refusal !== null) return { kind: 'refused', message: refusal };
    return { kind: 'request', request, route: template, workspaceIds };
  } catch (error) {
    if (error instanceof ViewerNeeded) return { kind: 'viewer-needed' };
    // The private message: a reason that consumers must not see may be shown to an operator.
    if (error instanceof Problem) {
      return { kind: 'refused', message: `Such a request is answered ${error.status}. ${error.message}` };
    }
    throw error;
  }
}

/** How authorization would refuse the request (K5: a workspace of the path must be the key's); no key is checked here. */
function refusalOf(workspaceIds: readonly string[], viewer: readonly string[] | null): string | null {
  if (!workspaceIds.every((id) => UUID_PATTERN.test(id))) {
    return 'Such a request is answered 403: the workspace of the path is no UUID, so no key may see it.';
  }
  if (viewer === null || workspaceIds.every((id) => viewer.includes(id))) return null;
  return 'Such a request is answered 403: the workspace of the path is none of those of whoever asks.';
}
