/** Which endpoint an address is of. */
import { Router } from '@koa/router';
import { LRUCache } from 'lru-cache';
import type { FieldLines } from './head.ts';
import type { Context, Match, Route } from './state.ts';
import type { EndpointRoute } from './surface.ts';

/** Finds the endpoint of a path, and the parameters in it; null where there is none. */
export type PathMatcher<E> = (pathname: string) => PathMatch<E> | null;

/** What the answers of an operation say of its deprecation. */
export type NoticesOf = (surface: Route['surface'], name: EndpointRoute['name']) => FieldLines;

export interface PathMatch<E> {
  readonly endpoint: E;
  readonly route: Route;
  readonly parameters: Readonly<Record<string, string>>;
}

export function pathMatcher<E extends EndpointRoute>(
  surface: Route['surface'],
  endpoints: readonly E[],
  noticesOf: NoticesOf = () => '',
): PathMatcher<E> {
  const router = new Router({ prefix: `/${surface}`, strict: true, sensitive: true });
  const routes = new Map(
    endpoints.map((endpoint): readonly [string, { endpoint: E; route: Route }] => [
      endpoint.name,
      { endpoint, route: routeFor(surface, endpoint, noticesOf(surface, endpoint.name)) },
    ]),
  );
  // Only asked which path is whose; nothing is ever served by it.
  for (const { name, path } of endpoints) router.get(name, path, () => undefined);
  return (pathname) => {
    const [layer] = router.match(pathname, 'GET').pathAndMethod;
    const found = routes.get(layer?.name ?? '');
    if (layer === undefined || found === undefined) return null;
    return { ...found, parameters: layer.params(pathname, layer.captures(pathname)) };
  };
}

export function routeFor(surface: Route['surface'], endpoint: EndpointRoute, notices: FieldLines = ''): Route {
  const { name, forbidden, notFound, isCounted = true } = endpoint;
  const template = `/${surface}${endpoint.path.replaceAll(/:(\w+)/g, '{$1}')}`;
  return { surface, name, template, forbidden, notFound, isCounted, notices };
}

/** Addresses that are remembered; the least recently used goes first. */
const MOST_ADDRESSES = 2048;
/** Of one that is; all that can be meant are far shorter. */
const MOST_CHARACTERS = 512;

/** Remembers what addresses were found to be: most requests are for one that was asked for before. */
export class Addresses<E> {
  readonly #matchers: readonly PathMatcher<E>[];
  readonly #known = new LRUCache<string, Match & { readonly endpoint: E }>({ max: MOST_ADDRESSES });

  constructor(matchers: readonly PathMatcher<E>[]) {
    this.#matchers = matchers;
  }

  find(ctx: Context): (Match & { readonly endpoint: E }) | null {
    const address = ctx.req.url ?? '';
    const known = this.#known.get(address);
    if (known !== undefined) return known;
    const pathname = ctx.path;
    for (const matcher of this.#matchers) {
      const match = matcher(pathname);
      if (match === null) continue;
      // With a question mark of ours in front: the class would take one of the query's own for it.
      const found = { ...match, query: `?${ctx.querystring}` };
      if (address.length <= MOST_CHARACTERS) this.#known.set(address, found);
      return found;
    }
    return null;
  }
}
