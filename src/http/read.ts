/** The parts that the handlers of both surfaces share: the request to the cache, and one record as a response. */
import { Derivation } from '../cache/entry.ts';
import type { Cache, CacheRead, Reader } from '../cache/reader.ts';
import { cacheRequest } from '../cache/request.ts';
import type { CachedResource, RecordParams } from '../upstream/resources.ts';
import type { ListQuery } from '../upstream/store.ts';
import { Problem } from './problem.ts';
import { Representation } from './representation.ts';
import { respond } from './respond.ts';
import { notFound, type RecordRequest, type RequestView, type Route, type StoreRequest } from './route.ts';
import { apiKeyOf, type Context, type Middleware, type RouteContext } from './state.ts';

/** Path and query, in bytes as they were sent. */
const MAX_ADDRESS_BYTES = 8192;
const ADDRESS_TOO_LONG = `The address is longer than ${MAX_ADDRESS_BYTES} bytes.`;
/** No list is longer, so all pages beyond it are one request to the store. */
const MAX_OFFSET = 2 ** 31 - 1;

/** Refuses addresses longer than any valid one before their query is parsed; 404 if a route has no 400 (S1). */
export function limitAddress(route: Route): Middleware {
  return (ctx, next) => {
    // Node gives each byte of a request target as one character.
    if ((ctx.req.url?.length ?? 0) <= MAX_ADDRESS_BYTES) return next();
    throw route.failures.includes(400) ? new Problem('address_too_long', ADDRESS_TOO_LONG) : notFound(route);
  };
}

/** What the route asks the store for on this request. Throws a Problem if the request is invalid. */
export function requestOf<R extends StoreRequest>(route: Route<R>, ctx: RouteContext): R {
  const { parseRequest } = route;
  if (parseRequest === null) throw new Error('A route that the gateway answers by itself was read from the cache.');
  return parseRequest(viewOf(ctx), route);
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

export function queryOf(ctx: Context): URLSearchParams {
  // With a question mark in front: URLSearchParams would drop one that belongs to the query.
  return new URLSearchParams(`?${ctx.querystring}`);
}

/** The reader, for the cache. `workspaceIds` narrows the workspaces of the key. */
export function readerOf(ctx: Context, route: Route, workspaceIds = apiKeyOf(ctx).workspaceIds): Reader {
  const { requestId, redisWait, traceparent, signal } = ctx.state;
  const isWaiting = (): boolean => !signal.aborted;
  const { keyId } = apiKeyOf(ctx);
  const reader = { requestId, keyId, redisWait, route: route.template, workspaceIds, isWaiting };
  return traceparent === undefined ? reader : { ...reader, traceparent };
}

export interface Page {
  /** From 1. */
  readonly page: number;
  readonly pageSize: number;
}

/** The request to the store for one page of a list. */
export function listQuery(
  workspaceIds: readonly string[],
  { page, pageSize }: Page,
  { search, scorecardId }: { readonly search: string | null; readonly scorecardId: string | null },
): ListQuery {
  const offset = Math.min((page - 1) * pageSize, MAX_OFFSET);
  return { workspaceIds: workspaceIds.toSorted(), search, scorecardId, offset, limit: pageSize };
}

/** Whether the page shares its request to the store with other pages, so that its public form cannot stay with the entry. */
export function isBeyondAllPages({ page, pageSize }: Page): boolean {
  return (page - 1) * pageSize >= MAX_OFFSET;
}

/** A list is never absent: the cache reports a store that says so as a failure. */
export function listOf<T>({ entry }: CacheRead<T>): T {
  if (entry.answer.kind === 'absent') throw new Error('The store answered a list with "absent".');
  return entry.answer.record;
}

/** The record that was read, which the cache has authorized. Throws the route's 404 if there is none for this reader (K7). */
export function foundRecord<T>(route: Route, { entry }: CacheRead<T>): T {
  if (entry.answer.kind === 'absent') throw notFound(route);
  return entry.answer.record;
}

export interface ShownRecord<T> {
  readonly resource: CachedResource<RecordParams, T>;
  /** Whether the record has a public form at all. */
  readonly isPublic?: (record: T) => boolean;
  readonly toPublic: (record: T) => object;
}

/** The handler of a route that shows one record. Its public form is rendered once per entry. */
export function showRecord<T>(
  cache: Cache,
  route: Route<RecordRequest>,
  { resource, isPublic = () => true, toPublic }: ShownRecord<T>,
): (ctx: RouteContext) => Promise<void> {
  const representations = new Derivation<Representation>(({ weightBytes }) => weightBytes);
  return async (ctx) => {
    const { id, workspaceIds } = requestOf(route, ctx);
    const read = await cache.read(cacheRequest(resource, { id }), readerOf(ctx, route, workspaceIds ?? undefined));
    const record = foundRecord(route, read);
    if (!isPublic(record)) throw notFound(route);
    await respond(
      ctx,
      read,
      representations.of(read.entry, () => new Representation(toPublic(record))),
    );
  };
}
