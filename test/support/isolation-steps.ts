/** Arbitrary doings of keys of three tenants, and of the world around them, for what must never cross between tenants. */
import * as fc from 'fast-check';
import { type Scope, SCOPES } from '../../src/domain/vocabulary.ts';
import { ENDPOINTS, LIST_CALLS } from '../http/common/endpoints.ts';

export const WORKSPACES = ['a', 'b', 'c'].map((letter) => `${letter.repeat(8)}-0000-4000-8000-000000000000`);
export const IDS = Array.from({ length: 6 }, (_, i) => `ev_${i}`);
export const SCORECARD_IDS = Array.from({ length: 3 }, (_, i) => `sc_${i}`);

export interface Rights {
  readonly workspaceIds: readonly string[];
  readonly scopes: readonly Scope[];
}

const [A = '', B = '', C = ''] = WORKSPACES;
export const RIGHTS: readonly Rights[] = [
  { workspaceIds: [A], scopes: SCOPES },
  { workspaceIds: [B], scopes: SCOPES },
  { workspaceIds: [A, B], scopes: SCOPES },
  { workspaceIds: [C], scopes: ['calls.read'] },
  { workspaceIds: [A, C], scopes: ['reports.read'] },
  { workspaceIds: [B], scopes: ['coaching.read'] },
  { workspaceIds: [A, B, C], scopes: ['coaching.read', 'calls.read'] },
];

const ALL: Rights = { workspaceIds: WORKSPACES, scopes: SCOPES };

/** Stands in every text of a workspace's records. */
export function markerOf(workspaceId: string): string {
  return `marker-${workspaceId.charAt(0)}`;
}

export interface Read {
  readonly kind: 'read';
  readonly tenant: number;
  /** Which of the gateways is asked, round and round. */
  readonly gateway: number;
  readonly path: string;
  readonly scope: Scope;
  /** The workspaces that the answer may show if the key may see them. */
  readonly shownIds: readonly string[];
  /** The workspace of a v1 path; null on v2. */
  readonly pathWorkspaceId: string | null;
  readonly etag: string;
}

export type Change =
  | { readonly kind: 'move'; readonly id: string; readonly workspaceId: string }
  | { readonly kind: 'wait'; readonly ms: number }
  /** The store fails until so many more requests have been made. */
  | { readonly kind: 'fail'; readonly requests: number }
  | { readonly kind: 'purge'; readonly gateway: number; readonly tag: string; readonly mode: 'soft' | 'hard' };

export type Step = Read | Change;

const workspace = fc.constantFrom(...WORKSPACES);
const gateway = fc.nat({ max: 1 });
const query: fc.Arbitrary<string> = fc.oneof(
  { weight: 10, arbitrary: fc.constant('') },
  workspace.map((id) => `?workspaceId=${id}`),
  workspace.map((id) => `?workspaceId=${id.toUpperCase()}`),
  workspace.map((id) => `?search=${markerOf(id)}`),
  fc.constantFrom('?page=2', '?pageSize=2', '?limit=2', '?scorecardId=sc_0', '?raw', '?maxChars=4&page=2', '?search='),
);

const read: fc.Arbitrary<Step> = fc
  .record({
    tenant: fc.nat({ max: RIGHTS.length - 1 }),
    gateway,
    endpoint: fc.nat({ max: ENDPOINTS.length - 1 }),
    /** Mostly what the tenant may ask for, as far as that can be told; else anything. */
    isOwn: fc.constantFrom(true, true, false),
    workspace: fc.nat({ max: 5 }),
    record: fc.nat({ max: 5 }),
    query,
    etag: fc.constantFrom('', '', '', '*'),
  })
  .map(({ tenant, endpoint: endpointIndex, isOwn, workspace: place, record, query: asked, etag, ...where }) => {
    const { workspaceIds, scopes } = isOwn ? (RIGHTS[tenant] ?? ALL) : ALL;
    const workspaceId = workspaceIds[place % workspaceIds.length] ?? '';
    const endpoints = ENDPOINTS.filter(({ scope }) => scopes.includes(scope));
    const endpoint = endpoints[endpointIndex % endpoints.length] ?? LIST_CALLS;
    const recordIndex = isOwn ? WORKSPACES.indexOf(workspaceId) + 3 * (record % 2) : record;
    const path = endpoint.path({
      workspaceId,
      id: IDS[recordIndex] ?? '',
      scorecardId: SCORECARD_IDS[recordIndex % 3] ?? '',
    });
    // v1 shows nothing of another workspace than the path's, not even to a key that may see both (K5).
    const isV1 = endpoint.surface === 'v1';
    const seen = { shownIds: isV1 ? [workspaceId] : WORKSPACES, pathWorkspaceId: isV1 ? workspaceId : null };
    return { kind: 'read', tenant, path: path + asked, scope: endpoint.scope, ...seen, etag, ...where };
  });

const tag = fc.oneof(
  fc.constantFrom('all', 'class:list', 'class:transcript'),
  workspace.map((id) => `workspace:${id}`),
  fc.constantFrom(...IDS).map((id) => `evaluation:${id}`),
  fc.constantFrom(...SCORECARD_IDS).map((id) => `scorecard:${id}`),
);

const change: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('move' as const),
    id: fc.constantFrom(...IDS, ...SCORECARD_IDS),
    workspaceId: workspace,
  }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1000, 40_000, 400_000, 7_200_000) }),
  fc.record({ kind: fc.constant('fail' as const), requests: fc.integer({ min: 1, max: 20 }) }),
  fc.record({
    kind: fc.constant('purge' as const),
    gateway,
    tag,
    mode: fc.constantFrom('soft' as const, 'hard' as const),
  }),
);

/** Mostly reads; `readsPerChange` of them to one change of the world around. */
export function stepOf(readsPerChange: number): fc.Arbitrary<Step> {
  return fc.oneof({ weight: readsPerChange, arbitrary: read }, { weight: 1, arbitrary: change });
}
