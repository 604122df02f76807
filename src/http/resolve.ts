/** From a public path to the question behind it, for operators who want to know what the cache makes of a request. */
import {
  dealInsightsQuestion,
  evaluationQuestion,
  listQuestion,
  type Question,
  rubricQuestion,
  scorecardQuestion,
  transcriptQuestion,
} from '../cache/question.ts';
import { UUID_PATTERN } from '../domain/records.ts';
import type { Asked, RequestView, SingleKind } from './asked.ts';
import { type PathMatch, pathMatcher, routeFor } from './paths.ts';
import { Problem } from './problem.ts';
import type { Route } from './state.ts';
import type { EndpointRoute } from './surface.ts';
import { V1_ROUTES } from './v1/endpoints.ts';
import { V2_ROUTES } from './v2/endpoints.ts';

/**
 * - `question`: what the cache is asked. `workspaceIds` are those that a record may be of; null where that depends on
 *   who asks and nobody was named.
 * - `refused`: the request gets no further than the gateway itself; `message` says why
 * - `viewer-needed`: what is asked depends on who asks
 */
export type Resolved =
  | {
      readonly kind: 'question';
      readonly question: Question<unknown>;
      readonly route: string;
      readonly workspaceIds: readonly string[] | null;
    }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'viewer-needed' };

/** `path` with its query; `viewer`: the workspaces of whoever asks, in lower case, or null where nobody is named. */
export type Resolve = (path: string, viewer: readonly string[] | null) => Resolved;

class ViewerNeeded extends Error {}

export function createResolver(): Resolve {
  const matchers = [pathMatcher('v1', V1_ROUTES), pathMatcher('v2', V2_ROUTES)];
  const templates = [...V1_ROUTES.map((route) => routeFor('v1', route)), ...V2_ROUTES.map((r) => routeFor('v2', r))];
  const known = templates.map(({ template }) => template).join(', ');
  return (path, viewer) => {
    const [target = ''] = path.split('#');
    const [pathname = '', ...query] = target.split('?');
    const [match] = matchers.flatMap((matches) => matches(pathname) ?? []);
    if (match === undefined) {
      return { kind: 'refused', message: `The path is no endpoint of the API. Its endpoints are ${known}.` };
    }
    return resolved(match, query.join('?'), viewer);
  };
}

function resolved(match: PathMatch<EndpointRoute>, query: string, viewer: readonly string[] | null): Resolved {
  const { endpoint, route, parameters } = match;
  if (endpoint.asks === null) {
    return {
      kind: 'refused',
      message: `${route.template} is answered by the gateway itself: nothing of it is cached.`,
    };
  }
  try {
    const asked = endpoint.asks(viewOf({ route, parameters, query, viewer }));
    const workspaceIds = workspacesOf(asked, viewer);
    const fault = workspaceIds === null ? null : faultOf(workspaceIds, viewer);
    if (fault !== null) return { kind: 'refused', message: fault };
    return { kind: 'question', question: questionOf(asked), route: route.template, workspaceIds };
  } catch (error) {
    if (error instanceof ViewerNeeded) return { kind: 'viewer-needed' };
    // The private message: to whoever uses the API a reason may have to stay hidden, to an operator not.
    if (error instanceof Problem)
      return { kind: 'refused', message: `Such a request is answered ${error.status}. ${error.message}` };
    throw error;
  }
}

interface Request {
  readonly route: Route;
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: string;
  readonly viewer: readonly string[] | null;
}

function viewOf({ route, parameters, query, viewer }: Request): RequestView {
  return {
    route,
    parameter: (name) => parameters[name] ?? '',
    // With a question mark in front: the class would take one of the query's own for it.
    query: () => new URLSearchParams(`?${query}`),
    workspaceIds: () => {
      if (viewer === null) throw new ViewerNeeded();
      return viewer;
    },
    maySee: (workspaceId) => viewer === null || viewer.includes(workspaceId),
  };
}

function workspacesOf(asked: Asked, viewer: readonly string[] | null): readonly string[] | null {
  return asked.kind === 'list' ? asked.query.workspaceIds : (asked.workspaceIds ?? viewer);
}

/** What the authorization of the request would end with (K5); it is not asked for its key here. */
function faultOf(workspaceIds: readonly string[], viewer: readonly string[] | null): string | null {
  if (!workspaceIds.every((id) => UUID_PATTERN.test(id))) {
    return 'Such a request is answered 403: the workspace of the path is no UUID, so no key may see it.';
  }
  if (viewer === null || workspaceIds.every((id) => viewer.includes(id))) return null;
  return 'Such a request is answered 403: the workspace of the path is none of those of whoever asks.';
}

const SINGLES = {
  evaluation: evaluationQuestion,
  transcript: transcriptQuestion,
  scorecard: scorecardQuestion,
  dealInsights: dealInsightsQuestion,
  rubric: rubricQuestion,
} satisfies Readonly<Record<SingleKind, (id: string) => Question<unknown>>>;

function questionOf(asked: Asked): Question<unknown> {
  return asked.kind === 'list' ? listQuestion(asked.query) : SINGLES[asked.kind](asked.id);
}
