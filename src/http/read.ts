/** The pieces that every single read is made of: the id, the record behind it, and the refusal that tells nothing. */
import type { Entry } from '../cache/entry.ts';
import type { CacheRead, ReadContext } from '../cache/reader.ts';
import { ID_PATTERN } from '../domain/records.ts';
import type { ListQuery } from '../upstream/store.ts';
import type { RequestView } from './asked.ts';
import { isGone } from './gone.ts';
import { Problem } from './problem.ts';
import { type Context, keyOf, matchOf, type Route, routeOf } from './state.ts';

/** A path parameter of the matched route. */
export function pathParameter(ctx: Context, name: string): string {
  return matchOf(ctx).parameters[name] ?? '';
}

/** A path parameter that is an id of the store. Throws the route's 404 for what no record can have (Q7). */
export function idOf(view: RequestView, name: string): string {
  const value = view.parameter(name);
  if (ID_PATTERN.test(value)) return value;
  throw new Problem(404, view.route.notFound, {
    privateMessage: `The ${name} of the path is no id: 1 to 64 letters, digits, hyphens and underscores.`,
  });
}

/** `workspaceIds` are those that the request asks for, in lower case; by default all of the key's. */
export function readContextOf(ctx: Context, workspaceIds = keyOf(ctx).workspaceIds): ReadContext {
  const { requestId, traceparent } = ctx.state;
  const isWaiting = (): boolean => !isGone(ctx);
  const context = { requestId, route: routeOf(ctx).template, workspaceIds, isWaiting };
  return traceparent === undefined ? context : { ...context, traceparent };
}

/** The route's one 404: the same for none, for another workspace's, and for what is not ready (K7). */
export function notFound(ctx: Context): Problem {
  return new Problem(404, routeOf(ctx).notFound);
}

/** The route's one 403, whatever its reason (K7). */
export function forbidden(route: Pick<Route, 'forbidden'>, reason: string): Problem {
  return new Problem(403, route.forbidden, { privateMessage: `forbidden: ${reason}` });
}

/** An entry's record. Throws the route's 404 where there is none, or where `isVisible` says it is not the caller's. */
export function visibleRecord<T>(ctx: Context, entry: Entry<T>, isVisible: (record: T) => boolean): T {
  if (entry.answer.kind === 'absent' || !isVisible(entry.answer.record)) throw notFound(ctx);
  return entry.answer.record;
}

/** A list is never absent: where the store says so, it has broken its interface, and the reader says so first. */
export function listRecord<T>(read: CacheRead<T>): T {
  if (read.entry.answer.kind === 'absent') throw new Error('the store answered a list with "absent"');
  return read.entry.answer.record;
}

/** Past this no list goes on, so that all pages beyond it are one question to the store. */
const MAX_OFFSET = 2 ** 31 - 1;

export interface PageNumber {
  readonly page: number;
  readonly pageSize: number;
}

/** The question to the store for one page of a list. */
export function listQuery(
  workspaceIds: readonly string[],
  { page, pageSize }: PageNumber,
  filter: { readonly search: string | null; readonly scorecardId: string | null },
): ListQuery {
  const offset = Math.min((page - 1) * pageSize, MAX_OFFSET);
  const { search, scorecardId } = filter;
  return { workspaceIds: workspaceIds.toSorted(), search, scorecardId, offset, limit: pageSize };
}

/** Whether the page is the only one that its question answers, so that its public form can be kept with the entry. */
export function ownsItsQuestion({ page, pageSize }: PageNumber): boolean {
  return (page - 1) * pageSize < MAX_OFFSET;
}
