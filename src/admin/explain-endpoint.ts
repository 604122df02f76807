/** GET /api/cache/explain: which entry answers a path, and what the next read of it would do. No record is ever shown. */
import type { Explanation } from '../cache/explain.ts';
import type { CacheRequest } from '../cache/request.ts';
import { UUID_PATTERN } from '../domain/records.ts';
import type { KeyDirectory } from '../keys/key.ts';
import type { Audit } from './audit.ts';
import { type TtlEndpointsOptions, viewOfTtl } from './cache-ttl-endpoints.ts';
import type { EndpointContext } from './context.ts';
import type { Endpoint } from './endpoint.ts';
import { AdminError } from './errors.ts';
import { viewOfExplanation } from './explain-view.ts';
import { badParameter, badQuery, queryOf, shown } from './query.ts';

/** What a path of the public API asks of the cache, by the rules of its endpoints; see `http/resolve.ts`. */
export type Resolve = (path: string, viewer: readonly string[] | null) => Resolution;

export type Resolution =
  | Target
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'viewer-needed' };

interface Target {
  readonly kind: 'request';
  readonly request: CacheRequest<unknown>;
  readonly route: string;
  readonly workspaceIds: readonly string[] | null;
}

export interface ExplainEndpointOptions extends Pick<TtlEndpointsOptions, 'times' | 'configuredBy'> {
  readonly resolve: Resolve;
  readonly explain: (request: CacheRequest<unknown>, workspaceIds: readonly string[] | null) => Promise<Explanation>;
  readonly registry: Pick<KeyDirectory, 'get'>;
  readonly audit: Pick<Audit, 'entries'>;
}

/** What these two refusals begin with: clients that have no query parameters say in their own words what to do. */
export const VIEWER_NEEDED = 'What this path shows depends on who asks.';
export const UNKNOWN_KEY = 'The registry has no key with that keyId.';

const MOST_WORKSPACES = 50;
const ALLOWED = {
  path: 'a path of the public API with its query, URL-encoded, such as %2Fv2%2Fcalls%3Fpage%3D2',
  keyId: 'the id of a key: what it sees is explained',
  workspace: `a UUID, up to ${MOST_WORKSPACES} times: what a key of these workspaces sees is explained`,
};

export function explainEndpoint(options: ExplainEndpointOptions): Endpoint {
  return {
    method: 'GET',
    path: '/api/cache/explain',
    what: 'which entry answers the public path in the query parameter path, and what its next read would do',
    handle: (ctx) => handle(ctx, options),
  };
}

async function handle(ctx: EndpointContext, options: ExplainEndpointOptions): Promise<void> {
  const query = queryOf(ctx, { allowed: ALLOWED, repeatable: ['workspace'] });
  const path = pathOf(query.get('path')?.[0]);
  const viewer = await viewerOf({ keyId: query.get('keyId')?.[0], workspaces: query.get('workspace') ?? [] }, options);
  const { request, route, workspaceIds } = targetOf(path, options.resolve(path, viewer));
  const explanation = await options.explain(request, workspaceIds);
  const times = viewOfTtl(explanation.class, await options.audit.entries(), options);
  ctx.body = { path, route, workspaces: workspaceIds, ...viewOfExplanation(explanation, times) };
}

function pathOf(given: string | undefined): string {
  if (given === undefined) throw badQuery(`The query parameter path is missing; allowed: ${ALLOWED.path}.`);
  if (!given.startsWith('/')) throw badParameter('path', given, ALLOWED.path);
  return given;
}

interface Viewer {
  readonly keyId: string | undefined;
  readonly workspaces: readonly string[];
}

/** The workspaces of whoever asks; null where nobody was named. */
async function viewerOf(
  { keyId, workspaces }: Viewer,
  { registry }: ExplainEndpointOptions,
): Promise<readonly string[] | null> {
  if (keyId === undefined && workspaces.length === 0) return null;
  if (keyId !== undefined && workspaces.length > 0) throw badQuery('Give keyId or workspace, not both.');
  if (keyId !== undefined) {
    const key = await registry.get(keyId);
    if (key !== null) return key.workspaceIds;
    throw new AdminError(
      404,
      `${UNKNOWN_KEY} GET /api/keys lists those that it has; for another key give its workspaces instead.`,
      { privateMessage: 'no such key' },
    );
  }
  const foreign = workspaces.find((id) => !UUID_PATTERN.test(id));
  if (foreign !== undefined) throw badParameter('workspace', foreign, ALLOWED.workspace);
  if (workspaces.length > MOST_WORKSPACES) {
    throw badQuery(`The query parameter workspace: given ${workspaces.length} times; allowed: ${ALLOWED.workspace}.`);
  }
  return [...new Set(workspaces.map((id) => id.toLowerCase()))];
}

/** Throws AdminError 400 for what the cache is never asked. */
function targetOf(path: string, resolution: Resolution): Target {
  if (resolution.kind === 'request') return resolution;
  if (resolution.kind === 'refused') {
    throw badQuery(`The path ${shown(path)} puts no question to the cache. ${resolution.message}`);
  }
  throw badQuery(`${VIEWER_NEEDED} Give keyId (the id of a key) or workspace (a UUID; repeat it for more) as well.`);
}
