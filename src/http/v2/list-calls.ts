/** GET /v2/calls */
import { Derivation } from '../../cache/entry.ts';
import type { EvaluationReader } from '../../cache/reader.ts';
import { toCallsPage } from '../../domain/pages.ts';
import type { ApiKey } from '../../keys/key.ts';
import { forbidden, listQuery, listRecord, ownsItsQuestion, queryOf, readContextOf } from '../read.ts';
import { Representation } from '../representation.ts';
import { sendRead } from '../send.ts';
import { type Context, keyOf } from '../state.ts';
import { parseCallsQuery, parseWorkspaceId } from './query.ts';

export function createListCalls(reader: EvaluationReader): (ctx: Context) => Promise<void> {
  const forms = new Derivation<Representation>((form) => form.weightBytes);
  return async (ctx) => {
    const parameters = queryOf(ctx);
    const workspaceIds = workspacesFor(ctx, keyOf(ctx), parseWorkspaceId(parameters));
    const query = parseCallsQuery(parameters);
    const read = await reader.list(listQuery(workspaceIds, query, query), readContextOf(ctx));
    const render = (): Representation => new Representation(toCallsPage(listRecord(read), query));
    await sendRead(ctx, read, ownsItsQuestion(query) ? forms.of(read.entry, render) : render());
  };
}

/** All of the key's workspaces, or the one that the list is narrowed to, which must be one of them (K6). */
function workspacesFor(ctx: Context, key: ApiKey, narrowedTo: string | null): readonly string[] {
  if (narrowedTo === null) return key.workspaceIds;
  if (!key.workspaceIds.includes(narrowedTo)) throw forbidden(ctx, "workspaceId is not among the key's");
  return [narrowedTo];
}
