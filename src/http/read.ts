/** A route that is answered from the cache: a page of a list, one record, or a part of it. The handler of both surfaces. */
import { Derivation, type Entry } from '../cache/entry.ts';
import { workspaceSetOf } from '../cache/address.ts';
import type { CacheRead, Reader, ReadOutcome } from '../cache/reader.ts';
import { cacheRequest } from '../cache/request.ts';
import type { EvaluationPage, EvaluationRecord } from '../domain/records.ts';
import type { CachedResource, RecordParams } from '../upstream/resources.ts';
import type { ListQuery } from '../upstream/resources.ts';
import type { RedisWait } from '../redis/request-wait.ts';
import { notFound, Problem, refuse } from './problem.ts';
import { pageLinks, Representation, respond, walkLinks } from './respond.ts';
import { parseQuery, route } from './route.ts';
import { apiKeyOf, type RequestState, type RequestInput, type Route, type RouteDeclaration } from './state.ts';
import { firstOffset, type Place, walk, WINDOW_SIZE, writeCursor } from './walk.ts';

const NOT_FOUND = notFound();

/** A read of the cache, of one record or one page of a list. */
export interface ReadRequest<P> {
  readonly params: P;
  /** Workspaces that the answer may belong to, in lower case; null for all workspaces of the reader. */
  readonly workspaceIds: readonly string[] | null;
}

export type RecordRead = ReadRequest<RecordParams>;

/** The request for one record, unless its id is a problem. */
export function recordRead(id: string | Problem, workspaceIds: readonly string[] | null): RecordRead | Problem {
  return id instanceof Problem ? id : { params: { id }, workspaceIds };
}

export interface FoundRecord<T> {
  readonly entry: Entry<T>;
  readonly record: T;
}

interface ReadDeclaration<P, T, R extends ReadRequest<P>> extends Omit<RouteDeclaration, 'parseRequest' | 'answer'> {
  readonly resource: CachedResource<P, T>;
  /** A Problem if the request is invalid. */
  readonly parse: (input: RequestInput) => R | Problem;
  /** Whether the record has a public form at all; by default it has. */
  readonly isPublic?: (record: T) => boolean;
  readonly represent: (
    found: FoundRecord<T>,
    request: R,
    context: ReadContext<P, T>,
  ) => Representation | Promise<Representation>;
}

/**
 * The context in which an answer is made from the record that was asked for. `P` and `T`: of the resource, if the answer is
 * made of more than one of its records.
 */
export interface ReadContext<P = never, T = unknown> {
  readonly keyId: string;
  /** Reads one more record that the answer is made of: its age is the answer's, if it is the oldest. */
  readonly readMore: (params: P) => Promise<T>;
  /** Its signal is aborted when the answer is no longer waited for. */
  readonly state: Pick<RequestState, 'signal'>;
}

/** Declares a route, and makes its answer: parse, read, represent, respond. */
export function readRoute<P, T, R extends ReadRequest<P>>(given: ReadDeclaration<P, T, R>): Route {
  const { resource, parse, isPublic = () => true, represent, ...declaration } = given;
  const declared: Route = route({
    ...declaration,
    parseRequest: (input) => {
      const parsed = parse(input);
      if (parsed instanceof Problem) return parsed;
      const { params, workspaceIds } = parsed;
      return { request: cacheRequest(resource, params), workspaceIds };
    },
    answer: async (ctx, { cache }) => {
      const { state } = ctx;
      const { keyId, workspaceIds: ownWorkspaceIds } = apiKeyOf(ctx);
      const request = parse({ params: ctx.params, query: parseQuery(ctx.querystring), ownWorkspaceIds });
      if (request instanceof Problem) return refuse(state, request);
      const reader = new HttpReader(state, keyId, declared.template, request.workspaceIds ?? ownWorkspaceIds);
      const reads: CacheRead<T>[] = [];
      const readOne = async (params: P): Promise<CacheRead<T>> => {
        const read = await cache.read(cacheRequest(resource, params), reader);
        reads.push(read);
        // The memory tier counts the answers that it holds.
        if (read.tier !== 'memory' && read.entry.answer.kind !== 'absent') state.slot?.use(read.entry.answer);
        return read;
      };
      const { entry } = await readOne(request.params);
      // The cache has authorized what it found: a foreign record is absent too (K7: it looks like none). A list never is.
      if (entry.answer.kind === 'absent' || !isPublic(entry.answer.record)) return refuse(state, NOT_FOUND);
      if (state.hasLeft) return;
      const readMore = async (params: P): Promise<T> => recordOf((await readOne(params)).entry);
      const made = represent({ entry, record: entry.answer.record }, request, { keyId, state, readMore });
      const representation = made instanceof Representation ? made : await made;
      await respond(ctx, reads.reduce(lessFresh), representation);
    },
  });
  return declared;
}

/** Throws for an absent answer, which a list never is. */
function recordOf<T>({ answer }: Entry<T>): T {
  if (answer.kind === 'absent') throw new Error('A record that an answer is made of is absent.');
  return answer.record;
}

/** From the best outcome to the worst. */
const OUTCOMES: readonly ReadOutcome[] = [
  'hit',
  'stale-while-revalidate',
  'stale-if-error',
  'changed',
  'collapsed',
  'miss',
];

/** How an answer made of two reads was read: the worse outcome, and the greater age. */
function lessFresh<T>(a: CacheRead<T>, b: CacheRead<T>): CacheRead<T> {
  const worse = OUTCOMES.indexOf(b.outcome) > OUTCOMES.indexOf(a.outcome) ? b : a;
  const ageMs = a.ageMs === null || b.ageMs === null ? null : Math.max(a.ageMs, b.ageMs);
  return { ...worse, ageMs, ttlMs: Math.min(a.ttlMs, b.ttlMs), isAwaited: a.isAwaited || b.isAwaited };
}

/** The public form of a record, rendered once per entry. */
export function rendered<T>(toPublic: (record: T) => object): (found: FoundRecord<T>) => Representation {
  const representations = new Derivation<Representation>(({ weightBytes }) => weightBytes);
  return ({ entry, record }) => representations.of(entry, () => new Representation(toPublic(record)));
}

/** No list is longer, so all pages beyond it are one request to the store. */
const MAX_OFFSET = 2 ** 31 - 1;

export interface WalkRead extends ReadRequest<ListQuery> {
  /** Null: the beginning of the list. */
  readonly place: Place | null;
  readonly pageSize: number;
}

export interface ListRead extends ReadRequest<ListQuery> {
  /** From 1. */
  readonly page: number;
}

/**
 * The request for a page, which is counted from 1, in the one form that all equal questions share.
 *
 * The store searches case-insensitively, so the case of ASCII letters can't change the answer and is dropped. Nothing
 * else is touched: beyond ASCII the rules of case differ between implementations, a space may be what is searched for,
 * and composed and decomposed characters are different strings to a substring search.
 */
export function listRead(
  workspaceIds: readonly string[],
  page: number,
  { pageSize, search, scorecardId }: Pick<ListQuery, 'search' | 'scorecardId'> & { readonly pageSize: number },
): ListRead {
  const offset = Math.min((page - 1) * pageSize, MAX_OFFSET);
  const params = {
    workspaceIds: workspaceSetOf({ workspaceIds }).ids,
    search: search?.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase()) ?? null,
    scorecardId,
    offset,
    limit: pageSize,
  };
  return { page, workspaceIds, params };
}

/** The request for a page that is found by a place in the list: the window that it is looked for in first. */
export function walkRequest(
  workspaceIds: readonly string[],
  place: Place | null,
  query: Pick<ListQuery, 'search' | 'scorecardId'> & { readonly pageSize: number },
): WalkRead {
  const { params } = listRead(workspaceIds, 1, { ...query, pageSize: WINDOW_SIZE });
  return { workspaceIds, params: { ...params, offset: firstOffset(place) }, place, pageSize: query.pageSize };
}

/**
 * The public form of a page that is found by its place (`after`), with links to the beginning and to what follows. `parameters`
 * as for `renderedPage`.
 */
export function walkedPage(
  toPublic: (list: Pick<EvaluationPage, 'items' | 'total'>, page: number, pageSize: number) => object,
  parameters: (query: ListQuery) => Readonly<Record<string, string | number | null>>,
) {
  return async (
    { record }: FoundRecord<EvaluationPage>,
    { params, place, pageSize }: WalkRead,
    { readMore }: ReadContext<ListQuery, EvaluationPage>,
  ): Promise<Representation> => {
    const readWindow = async (offset: number): Promise<EvaluationPage> =>
      offset === params.offset ? record : readMore({ ...params, offset });
    const { items, offset, total, omitted, next } = await walk(place, pageSize, readWindow);
    const page = Math.floor(offset / pageSize) + 1;
    const query = parameters({ ...params, limit: pageSize });
    const links = walkLinks(next === null ? null : writeCursor(next), query);
    const headers = omitted === 0 ? links : { ...links, 'X-Records-Omitted': String(omitted) };
    return new Representation(toPublic({ items, total }, page, pageSize), headers);
  };
}

/**
 * The public form of a page of a list, rendered once per entry, with its links. They have `parameters` beside `page`. A
 * page that lacks records says how many (S4: also a cached copy, and a 304).
 */
export function renderedPage(
  toPublic: (list: EvaluationPage, page: number, pageSize: number) => object,
  isPublic: (record: EvaluationRecord) => boolean,
  parameters: (query: ListQuery) => Readonly<Record<string, string | number | null>>,
): (found: FoundRecord<EvaluationPage>, request: ListRead) => Representation {
  const representations = new Derivation<Representation>(({ weightBytes }) => weightBytes);
  return ({ entry, record }, { page, params }) => {
    const { limit, offset } = params;
    const render = (): Representation => {
      const links = { Link: pageLinks({ page, totalPages: Math.ceil(record.total / limit) }, parameters(params)) };
      const omitted = record.omitted + record.items.filter((item) => !isPublic(item)).length;
      const headers = omitted === 0 ? links : { ...links, 'X-Records-Omitted': String(omitted) };
      return new Representation(toPublic(record, page, limit), headers);
    };
    // Pages that share a request share an entry, so their public forms cannot stay with it.
    return offset < MAX_OFFSET ? representations.of(entry, render) : render();
  };
}

/** Who sent a request, as the cache knows a reader. */
class HttpReader implements Reader {
  readonly requestId: string;
  readonly traceparent: string | undefined;
  readonly keyId: string;
  readonly redisWait: RedisWait;
  readonly route: string;
  readonly workspaceIds: readonly string[];
  readonly #state: RequestState;

  /** `workspaceIds`: those of the key, or some of them. */
  constructor(state: RequestState, keyId: string, template: string, workspaceIds: readonly string[]) {
    this.requestId = state.requestId;
    this.traceparent = state.traceparent;
    this.keyId = keyId;
    this.redisWait = state.redisWait;
    this.route = template;
    this.workspaceIds = workspaceIds;
    this.#state = state;
  }

  get signal(): AbortSignal {
    return this.#state.signal;
  }

  enterWaitingRoom(): boolean {
    const { slot } = this.#state;
    return slot === null || slot.wait();
  }
}
