/** GET /v1/workspaces/{workspaceId}/reports */
import { Derivation } from '../../cache/entry.ts';
import type { EvaluationReader } from '../../cache/reader.ts';
import { toReportsPage } from '../../domain/pages.ts';
import { listQuery, listRecord, ownsItsQuestion, pathParameter, queryOf, readContextOf } from '../read.ts';
import { Representation } from '../representation.ts';
import { sendRead } from '../send.ts';
import type { Context } from '../state.ts';
import { parseReportsQuery } from './query.ts';

export function createListReports(reader: EvaluationReader): (ctx: Context) => Promise<void> {
  const forms = new Derivation<Representation>((form) => form.weightBytes);
  return async (ctx) => {
    const query = parseReportsQuery(queryOf(ctx));
    const page = { page: query.page, pageSize: query.limit };
    const workspaceId = pathParameter(ctx, 'workspaceId').toLowerCase();
    const read = await reader.list(listQuery([workspaceId], page, query), readContextOf(ctx));
    const render = (): Representation => new Representation(toReportsPage(listRecord(read), page.page));
    await sendRead(ctx, read, ownsItsQuestion(page) ? forms.of(read.entry, render) : render());
  };
}
