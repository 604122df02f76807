/** GET /v2/calls */
import { Derivation } from '../../cache/entry.ts';
import type { EvaluationReader } from '../../cache/reader.ts';
import { toCallsPage } from '../../domain/pages.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import { asker } from '../asked.ts';
import type { Answer } from '../answer.ts';
import { whileThere } from '../gone.ts';
import { listRecord, ownsItsQuestion, readContextOf } from '../read.ts';
import { Representation } from '../representation.ts';
import { answerRead } from '../send.ts';
import type { Context } from '../state.ts';
import { askCalls } from './asks.ts';

export function createListCalls(reader: EvaluationReader): (ctx: Context) => MaybePromise<Answer> {
  const forms = new Derivation<Representation>((form) => form.weightBytes);
  const asked = asker(askCalls);
  return (ctx) => {
    const { query, page } = asked(ctx);
    return whileThere(ctx, reader.list(query, readContextOf(ctx)), (read) => {
      const render = (): Representation => new Representation(toCallsPage(listRecord(read), page));
      return answerRead(ctx, read, ownsItsQuestion(page) ? forms.of(read.entry, render) : render());
    });
  };
}
