/** Routes that are answered from the cache: a page of a list, or one record. The handlers of both surfaces. */
import { Derivation, type Entry } from '../cache/entry.ts';
import type { CacheRead, Reader } from '../cache/reader.ts';
import { cacheRequest } from '../cache/request.ts';
import type { PageOfList } from '../domain/evaluation.ts';
import type { EvaluationPage } from '../domain/records.ts';
import { type CachedResource, type RecordParams, RESOURCES } from '../upstream/resources.ts';
import type { ListQuery } from '../upstream/store.ts';
import { pageLinks, Representation, respond } from './respond.ts';
import { type FixedTexts, notFound, type RequestView, route, type Route } from './route.ts';
import { apiKeyOf, type Context, type RouteContext } from './state.ts';

/** No list is longer, so all pages beyond it are one request to the store. */
const MAX_OFFSET = 2 ** 31 - 1;

type Declaration = Omit<Route, 'template' | 'parseRequest' | 'answer'>;

interface ListDeclaration extends Declaration {
  /** Throws a Problem if the request is invalid. */
  readonly parse: (view: RequestView, texts: FixedTexts) => ListRequest;
  readonly toPublic: (list: EvaluationPage, page: PageOfList) => object;
  /** The parameters of the links to other pages, beside `page`. */
  readonly linkParameters: (query: ListQuery) => Readonly<Record<string, string | number | null>>;
}

export interface ListRequest {
  readonly page: PageOfList;
  readonly query: ListQuery;
}

/** The list that is asked for, and its request to the store. */
export function listRequest(
  workspaceIds: readonly string[],
  page: PageOfList,
  filter: Pick<ListQuery, 'search' | 'scorecardId'>,
): ListRequest {
  const offset = Math.min((page.page - 1) * page.pageSize, MAX_OFFSET);
  return { page, query: { workspaceIds: workspaceIds.toSorted(), ...filter, offset, limit: page.pageSize } };
}

/** A route that shows one page of a list. Its public form is rendered once per entry. */
export function listRoute({ parse, toPublic, linkParameters, ...declaration }: ListDeclaration): Route {
  const representations = new Derivation<Representation>(({ weightBytes }) => weightBytes);
  const declared: Route = route({
    ...declaration,
    parseRequest: (view) => {
      const { query } = parse(view, declaration);
      return { request: cacheRequest(RESOURCES.list, query), workspaceIds: query.workspaceIds };
    },
    answer: async (ctx, cache) => {
      const { query, page } = parse(viewOf(ctx), declaration);
      const read = await cache.read(cacheRequest(RESOURCES.list, query), readerOf(ctx, declared));
      const render = (): Representation => {
        const list = foundRecord(declared, read);
        const links = { page: page.page, totalPages: Math.ceil(list.total / page.pageSize) };
        return new Representation(toPublic(list, page), pageLinks(links, linkParameters(query)));
      };
      // Pages that share a request share an entry, so their public forms cannot stay with it.
      await respond(ctx, read, query.offset < MAX_OFFSET ? representations.of(read.entry, render) : render());
    },
  });
  return declared;
}

export interface RecordRequest {
  readonly id: string;
  /** Workspaces that the record may belong to, in lower case; null for all workspaces of the reader. */
  readonly workspaceIds: readonly string[] | null;
}

export interface FoundRecord<T> {
  readonly entry: Entry<T>;
  readonly record: T;
}

interface RecordDeclaration<T, R extends RecordRequest> extends Declaration {
  readonly resource: CachedResource<RecordParams, T>;
  /** Throws a Problem if the request is invalid. */
  readonly parse: (view: RequestView, texts: FixedTexts) => R;
  /** Whether the record has a public form at all; by default it has. */
  readonly isPublic?: (record: T) => boolean;
  readonly represent: (
    found: FoundRecord<T>,
    request: R,
    signal: AbortSignal,
  ) => Representation | Promise<Representation>;
}

/** A route that shows one record, or a part of it. */
export function recordRoute<T, R extends RecordRequest>(given: RecordDeclaration<T, R>): Route {
  const { resource, parse, isPublic = () => true, represent, ...declaration } = given;
  const declared: Route = route({
    ...declaration,
    parseRequest: (view) => {
      const { id, workspaceIds } = parse(view, declaration);
      return { request: cacheRequest(resource, { id }), workspaceIds };
    },
    answer: async (ctx, cache) => {
      const { signal } = ctx.state;
      const request = parse(viewOf(ctx), declaration);
      const reader = readerOf(ctx, declared, request.workspaceIds ?? undefined);
      const read = await cache.read(cacheRequest(resource, { id: request.id }), reader);
      const record = foundRecord(declared, read);
      if (!isPublic(record)) throw notFound(declared);
      signal.throwIfAborted();
      const made = represent({ entry: read.entry, record }, request, signal);
      await respond(ctx, read, made instanceof Representation ? made : await made);
    },
  });
  return declared;
}

/** The public form of a record, rendered once per entry. */
export function rendered<T>(toPublic: (record: T) => object): (found: FoundRecord<T>) => Representation {
  const representations = new Derivation<Representation>(({ weightBytes }) => weightBytes);
  return ({ entry, record }) => representations.of(entry, () => new Representation(toPublic(record)));
}

/** The record, which the cache has authorized. Throws the route's 404 if there is none for this reader (K7). */
function foundRecord<T>(declared: Route, { entry }: CacheRead<T>): T {
  if (entry.answer.kind === 'absent') throw notFound(declared);
  return entry.answer.record;
}

function viewOf(ctx: RouteContext): RequestView {
  const { workspaceIds } = apiKeyOf(ctx);
  return {
    params: ctx.params,
    query: queryOf(ctx),
    workspaceIds: () => workspaceIds,
    isWorkspaceVisible: (workspaceId) => workspaceIds.includes(workspaceId),
  };
}

/** The query of a request. */
export function queryOf(ctx: Context): URLSearchParams {
  // With a question mark in front: URLSearchParams would drop one that belongs to the query.
  return new URLSearchParams(`?${ctx.querystring}`);
}

/** The reader, for the cache. `workspaceIds` narrows the workspaces of the key. */
function readerOf(ctx: Context, { template }: Route, workspaceIds = apiKeyOf(ctx).workspaceIds): Reader {
  const { requestId, redisWait, traceparent, signal } = ctx.state;
  const isWaiting = (): boolean => !signal.aborted;
  const { keyId } = apiKeyOf(ctx);
  const reader = { requestId, keyId, redisWait, route: template, workspaceIds, isWaiting };
  return traceparent === undefined ? reader : { ...reader, traceparent };
}
