/** GET /api/cache/explain: which entry answers a path, and what the next read of it would do. No record is ever shown. */
import { type Copy, explain, type Explanation } from '../cache/explain.ts';
import type { CacheRequest } from '../cache/request.ts';
import { UUID_PATTERN } from '../domain/records.ts';
import type { CopyView, ExplanationView } from './answers.ts';
import { iso, isoOrNull, ROUTES, UNKNOWN_KEY, VIEWER_NEEDED } from './api.ts';
import { ttlView } from './cache-control.ts';
import { type AdminOptions, endpoint, type Endpoint } from './endpoint.ts';
import { AdminError } from './errors.ts';
import { badParameter, badQuery, queryOf, quoted } from './input.ts';

interface Target {
  readonly kind: 'request';
  readonly request: CacheRequest<unknown>;
  readonly route: string;
  readonly workspaceIds: readonly string[] | null;
}

export type Resolution =
  | Target
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'viewer-needed' };

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
    return { path, route, workspaces: workspaceIds, times, ...viewOf(explanation) };
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
      `${UNKNOWN_KEY} GET /api/keys lists those that it has; for another key give its workspaces instead.`,
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
  throw badQuery(`${VIEWER_NEEDED} Give keyId (the id of a key) or workspace (a UUID; repeat it for more) as well.`);
}

function viewOf(explanation: Explanation): Omit<ExplanationView, 'path' | 'route' | 'workspaces' | 'times'> {
  const { atMs, key, memory, shared, flight, lastMiss, maintenance, next } = explanation;
  const leased = shared.state === 'asked' ? shared : { leaseLeftMs: null, hasJustFailed: false };
  return {
    at: iso(atMs),
    key,
    class: explanation.class,
    next,
    memory: memory && viewOfCopy(memory),
    redis: viewOfShared(shared),
    knownForeign: explanation.isKnownForeign,
    flight: {
      since: isoOrNull(flight.sinceMs),
      leaseLeftMs: leased.leaseLeftMs,
      justFailed: flight.hasJustFailed || leased.hasJustFailed,
    },
    lastMiss: lastMiss && { reason: lastMiss.reason, at: iso(lastMiss.atMs) },
    evicted: explanation.wasEvicted,
    maintenance: maintenance && { until: iso(maintenance.untilMs), by: maintenance.by },
  };
}

function viewOfShared(shared: Explanation['shared']): ExplanationView['redis'] {
  if (shared.state !== 'asked') return { state: shared.state, entry: null };
  const { copy, isBroken } = shared;
  if (copy === null) return { state: isBroken ? 'unreadable' : 'asked', entry: null };
  return { state: 'asked', entry: { ...viewOfCopy(copy), keptForMs: copy.keptForMs } };
}

function viewOfCopy(copy: Copy): CopyView {
  const { state, isOutdated, ageMs, ttlMs, jitterMs, tags, bytes } = copy;
  const isPurged = state === 'purged';
  return {
    // The public word for a copy that is not served any more.
    state: state === 'unusable' ? 'expired' : state,
    answer: copy.isFound ? 'found' : 'absent',
    visible: copy.isVisible,
    ageMs,
    ttlMs,
    filledAt: iso(copy.requestedAtMs),
    fetchedAt: iso(copy.receivedAtMs),
    // The first read after that starts a refresh. After a soft purge the next read does.
    freshUntil: isPurged || isOutdated ? null : iso(copy.freshUntilMs),
    staleUntil: isPurged ? null : iso(copy.staleUntilMs),
    errorUntil: isPurged ? null : iso(copy.errorUntilMs),
    jitterMs,
    softPurged: isOutdated,
    tags,
    bytes,
  };
}
