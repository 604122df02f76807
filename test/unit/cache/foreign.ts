/** Readers of three tenants, and a record that is of one of them. */
import type { CacheRead, ReadContext } from '../../../src/cache/reader.ts';
import type { EvaluationRecord } from '../../../src/domain/records.ts';
import { StoreError } from '../../../src/upstream/store.ts';
import type { Rig } from '../../support/cache-rig.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

export const WORKSPACE_C = '33333333-3333-4333-8333-333333333333';
export const A: ReadContext = { requestId: 'a', workspaceIds: [WORKSPACE_A] };
export const B: ReadContext = { requestId: 'b', workspaceIds: [WORKSPACE_B] };
export const C: ReadContext = { requestId: 'c', workspaceIds: [WORKSPACE_C] };
export const A_AND_C: ReadContext = { requestId: 'a and c', workspaceIds: [WORKSPACE_A, WORKSPACE_C] };

export function put({ store }: Rig, workspaceId: string, title = 'first', id = 'ev_1'): void {
  store.evaluations.set(id, anEvaluation({ _id: id, workspaceId, title }));
}

export async function read({ reader }: Rig, context: ReadContext, id = 'ev_1'): Promise<CacheRead<EvaluationRecord>> {
  return await reader.evaluation(id, context);
}

/** What the store client makes of a record of workspace B that it can't use. */
export function malformedOfB(): StoreError {
  return new StoreError('malformed', "the store's evaluation ev_1 is malformed at title", {
    status: 200,
    workspaceId: WORKSPACE_B,
  });
}
