/** GET /v1/workspaces/{workspaceId}/reports */
import { Derivation } from '../../cache/entry.ts';
import type { EvaluationReader } from '../../cache/reader.ts';
import { toReportsPage } from '../../domain/pages.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import { asker } from '../asked.ts';
import type { Answer } from '../answer.ts';
import { whileThere } from '../gone.ts';
import { listRecord, ownsItsQuestion, readContextOf } from '../read.ts';
import { Representation } from '../representation.ts';
import { answerRead } from '../send.ts';
import type { Context } from '../state.ts';
import { askReports } from './asks.ts';

export function createListReports(reader: EvaluationReader): (ctx: Context) => MaybePromise<Answer> {
  const forms = new Derivation<Representation>((form) => form.weightBytes);
  const asked = asker(askReports);
  return (ctx) => {
    const { query, page } = asked(ctx);
    return whileThere(ctx, reader.list(query, readContextOf(ctx)), (read) => {
      const render = (): Representation => new Representation(toReportsPage(listRecord(read), page.page));
      return answerRead(ctx, read, ownsItsQuestion(page) ? forms.of(read.entry, render) : render());
    });
  };
}
