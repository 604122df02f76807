/** GET /api/cache/explain: which entry answers a path, and what the next read of it would do. No record is ever shown. */
import { explain, type Resolution } from '../cache/explain.ts';
import { UUID_PATTERN } from '../domain/records.ts';
import { ROUTES } from './api.ts';
import { ttlView } from './cache-control.ts';
import { type AdminOptions, endpoint, type Endpoint } from './endpoint.ts';
import { AdminError } from './errors.ts';
import { badParameter, badQuery, queryOf, quoted } from './input.ts';

type Target = Extract<Resolution, { readonly kind: 'request' }>;

const MOST_WORKSPACES = 50;
const { path: PATH, workspace: WORKSPACE } = ROUTES.explain.query;

export function explainEndpoint(options: AdminOptions): Endpoint {
  return endpoint(ROUTES.explain, async (ctx) => {
    const query = queryOf(ctx, ROUTES.explain);
    const [path = ''] = query('path');
    if (!path.startsWith('/')) throw badParameter('path', path, PATH.description);
    const viewer = await viewerOf(query('keyId')[0], query('workspace'), options.registry);
    const { request, route, workspaceIds } = targetOf(path, options.resolve(path, viewer));
    const explanation = await explain(request, workspaceIds, options);
    const times = ttlView(explanation.class, await options.audit.entries(), options);
    return { path, route, workspaces: workspaceIds, ...explanation, times };
  });
}

/** The workspaces of the reader; null if none was named. */
async function viewerOf(
  keyId: string | undefined,
  workspaces: readonly string[],
  registry: AdminOptions['registry'],
): Promise<readonly string[] | null> {
  if (keyId === undefined && workspaces.length === 0) return null;
  if (keyId !== undefined && workspaces.length > 0) throw badQuery('Give keyId or workspace, not both.');
  if (keyId !== undefined) {
    const key = await registry.get(keyId);
    if (key !== null) return key.workspaceIds;
    throw new AdminError(
      404,
      'The registry has no key with that keyId. GET /api/keys lists those that it has; for another key give its workspaces instead.',
      { privateMessage: 'no such key' },
    );
  }
  const foreign = workspaces.find((id) => !UUID_PATTERN.test(id));
  if (foreign !== undefined) throw badParameter('workspace', foreign, WORKSPACE.description);
  if (workspaces.length > MOST_WORKSPACES) {
    throw badQuery(
      `The query parameter workspace: given ${workspaces.length} times; allowed: ${WORKSPACE.description}.`,
    );
  }
  return [...new Set(workspaces.map((id) => id.toLowerCase()))];
}

/** Throws AdminError 400 for what the cache is never asked. */
function targetOf(path: string, resolution: Resolution): Target {
  if (resolution.kind === 'request') return resolution;
  if (resolution.kind === 'refused') {
    throw badQuery(`The path ${quoted(path)} puts no question to the cache. ${resolution.message}`);
  }
  throw badQuery(
    'The answer of this path depends on who asks. Give keyId (the id of a key) or workspace (a UUID; repeat it for more) as well.',
  );
}
