/** GET /api/cache/explain: which entry answers a path, and what the next read of it would do. No record is ever shown. */
import type { WorkspaceSet } from '../cache/address.ts';
import { explain, type Resolution } from '../cache/explain.ts';
import { ROUTES } from '../operations/api.ts';
import { ttlView } from './cache-control.ts';
import { type AdminOptions, endpoint, type Endpoint } from './endpoint.ts';
import { AdminError } from '../operations/errors.ts';
import { quoted } from '../operations/input.ts';
import { badQuery, readQuery } from './input.ts';

type Target = Extract<Resolution, { readonly kind: 'request' }>;

export function explainEndpoint(options: AdminOptions): Endpoint {
  const { registry, operations, cache, clock } = options;
  const { memory, shared, reads, ttl, purges } = cache;
  const parts = {
    memory,
    shared,
    flightOf: (key: string, set: WorkspaceSet | null) => reads.flightOf(key, set),
    lastMissOf: (key: string) => operations.stats.lastMisses.of(key),
    ttl,
    purges,
    maintenance: operations.maintenance,
    clock,
  };
  return endpoint(ROUTES.explain, async (ctx) => {
    const { path, keyId, workspace = null } = readQuery(ctx, ROUTES.explain.query);
    if (keyId !== undefined && workspace !== null) throw badQuery('Give keyId or workspace, not both.');
    const ownWorkspaceIds = keyId === undefined ? workspace : await workspacesOf(keyId, registry);
    const { request, route, workspaceIds } = targetOf(path, cache.resolve(path, ownWorkspaceIds));
    const explanation = await explain(request, workspaceIds, parts);
    const times = ttlView(explanation.class, await operations.audit.entries(), options);
    return { path, route, workspaces: workspaceIds, ...explanation, times };
  });
}

async function workspacesOf(keyId: string, registry: AdminOptions['registry']): Promise<readonly string[]> {
  const key = await registry.get(keyId);
  if (key !== null) return key.workspaceIds;
  throw new AdminError(
    404,
    'The registry has no key with that keyId. GET /api/keys lists those that it has; for another key give its workspaces instead.',
    { privateMessage: 'no such key' },
  );
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
