/**
 * Which question to the cache a request puts. One function a route answers that, for the endpoint that serves it and for
 * whoever explains it: there is no second reading of a path or a query.
 */
import type { ListQuery, ResourceKind } from '../upstream/store.ts';
import { type Context, keyOf, type Match, matchOf, type Route } from './state.ts';

/** What of a request its question depends on. */
export interface RequestView {
  readonly route: Pick<Route, 'forbidden' | 'notFound'>;
  /** A path parameter of the route. */
  parameter(name: string): string;
  query(): URLSearchParams;
  /** All workspaces of whoever asks, in lower case. */
  workspaceIds(): readonly string[];
  maySee(workspaceId: string): boolean;
}

export type SingleKind = Exclude<ResourceKind, 'list'>;

export interface ListAsked {
  readonly kind: 'list';
  readonly query: ListQuery;
}

export interface SingleAsked<K extends SingleKind = SingleKind> {
  readonly kind: K;
  readonly id: string;
  /** Whose record it may be, in lower case; null for all workspaces of whoever asks. */
  readonly workspaceIds: readonly string[] | null;
}

export type Asked = ListAsked | SingleAsked;

/** Throws a Problem for what can't be asked. */
export type Asks<A extends Asked = Asked> = (view: RequestView) => A;

/**
 * What a request that is being served asks for. Worked out once for an address and the workspaces of a key, as long as
 * both are remembered; whether the key may ask it is decided on each request, before and after this.
 */
export function asker<A extends Asked>(asks: Asks<A>): (ctx: Context) => A {
  const known = new WeakMap<Match, WeakMap<readonly string[], A>>();
  return (ctx) => {
    const match = matchOf(ctx);
    const { workspaceIds } = keyOf(ctx);
    const ofMatch = known.get(match) ?? new WeakMap<readonly string[], A>();
    const asked = ofMatch.get(workspaceIds) ?? asks(viewOf(match, workspaceIds));
    ofMatch.set(workspaceIds, asked);
    known.set(match, ofMatch);
    return asked;
  };
}

function viewOf({ route, parameters, query }: Match, workspaceIds: readonly string[]): RequestView {
  return {
    route,
    parameter: (name) => parameters[name] ?? '',
    query: () => new URLSearchParams(query),
    workspaceIds: () => workspaceIds,
    maySee: (workspaceId) => workspaceIds.includes(workspaceId),
  };
}
