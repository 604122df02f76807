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

/** Keys whose question at an address is remembered, where it depends on the key: the one that came first goes first. */
const MOST_KEYS = 8;

/**
 * What an address asks for: the same of all who may ask it, or of each by its workspaces. It is small: there is one an
 * address, of thousands.
 */
interface Known<A extends Asked> {
  shared: A | null;
  readonly byWorkspaces: Map<readonly string[], A>;
}

/**
 * What a request that is being served asks for. Worked out once for an address, and for the workspaces of a key where it
 * depends on them, as long as both are remembered; whether the key may ask it is decided on each request, before and
 * after this.
 */
export function asker<A extends Asked>(asks: Asks<A>): (ctx: Context) => A {
  const byMatch = new WeakMap<Match, Known<A>>();
  return (ctx) => {
    const match = matchOf(ctx);
    const { workspaceIds } = keyOf(ctx);
    const known: Known<A> = byMatch.get(match) ?? { shared: null, byWorkspaces: new Map() };
    const remembered = known.shared ?? known.byWorkspaces.get(workspaceIds);
    if (remembered !== undefined) return remembered;
    const view = new ServedView(match, workspaceIds);
    const asked = asks(view);
    if (view.isPersonal) remember(known.byWorkspaces, workspaceIds, asked);
    else known.shared = asked;
    byMatch.set(match, known);
    return asked;
  };
}

function remember<A>(byWorkspaces: Map<readonly string[], A>, workspaceIds: readonly string[], asked: A): void {
  const [first] = byWorkspaces.keys();
  if (first !== undefined && byWorkspaces.size === MOST_KEYS) byWorkspaces.delete(first);
  byWorkspaces.set(workspaceIds, asked);
}

class ServedView implements RequestView {
  readonly route: Route;
  readonly #match: Match;
  readonly #workspaceIds: readonly string[];
  #isPersonal = false;

  constructor(match: Match, workspaceIds: readonly string[]) {
    this.route = match.route;
    this.#match = match;
    this.#workspaceIds = workspaceIds;
  }

  /** Whether anything of who asks was looked at. */
  get isPersonal(): boolean {
    return this.#isPersonal;
  }

  parameter(name: string): string {
    return this.#match.parameters[name] ?? '';
  }

  query(): URLSearchParams {
    return new URLSearchParams(this.#match.query);
  }

  workspaceIds(): readonly string[] {
    this.#isPersonal = true;
    return this.#workspaceIds;
  }

  maySee(workspaceId: string): boolean {
    this.#isPersonal = true;
    return this.#workspaceIds.includes(workspaceId);
  }
}
