/** GET /v2/calls/{callId}, its parts, and GET /v2/scorecards/{scorecardId}/rubric. */
import type { EvaluationReader } from '../../cache/reader.ts';
import { toCall } from '../../domain/call.ts';
import { toRubricBody } from '../../domain/rubric.ts';
import { toScoredCardView } from '../../domain/scored-card.ts';
import { toCallTranscript } from '../../domain/transcript.ts';
import { type MaybePromise, whenThere } from '../../maybe-promise.ts';
import { asker } from '../asked.ts';
import type { Answer } from '../answer.ts';
import { throwIfGone, whileThere } from '../gone.ts';
import { PageForms } from '../page-forms.ts';
import { readContextOf, visibleRecord } from '../read.ts';
import { Representation } from '../representation.ts';
import { answerRead } from '../send.ts';
import { createSingleRead, isOneOf } from '../single-read.ts';
import type { Context } from '../state.ts';
import { cutPage, type Transcripts } from '../transcripts.ts';
import { askCall, askCallScorecard, askCallTranscript, askRubric } from './asks.ts';

type Handler = (ctx: Context) => MaybePromise<Answer>;

/** Only completed evaluations are calls (Q5). */
export function createGetCall(reader: EvaluationReader): Handler {
  return createSingleRead({
    asks: askCall,
    read: (id, context) => reader.evaluation(id, context),
    isVisible: (record, workspaceIds) => isOneOf(record, workspaceIds) && record.state === 'COMPLETED',
    toPublic: (record) => ({ call: toCall(record) }),
  });
}

export function createGetCallScorecard(reader: EvaluationReader): Handler {
  return createSingleRead({
    asks: askCallScorecard,
    read: (id, context) => reader.scorecard(id, context),
    isVisible: isOneOf,
    toPublic: toScoredCardView,
  });
}

export function createGetRubric(reader: EvaluationReader): Handler {
  return createSingleRead({
    asks: askRubric,
    read: (id, context) => reader.rubric(id, context),
    isVisible: isOneOf,
    toPublic: toRubricBody,
  });
}

/** One page of the parsed transcript, or of its exact slices. */
export function createGetCallTranscript(reader: EvaluationReader, transcripts: Transcripts): Handler {
  const asked = asker(askCallTranscript);
  const forms = new PageForms();
  return (ctx) => {
    const { id, page: query, form: name } = asked(ctx);
    const context = readContextOf(ctx);
    return whileThere(ctx, reader.transcript(id, context), (read) => {
      const record = visibleRecord(ctx, read.entry, (candidate) => isOneOf(candidate, context.workspaceIds));
      const form = forms.of(read.entry, name, async () => {
        const pager = await transcripts.pagerOf(read.entry, record);
        throwIfGone(ctx);
        const { isFormatSupported } = pager;
        return new Representation(toCallTranscript({ ...(await cutPage(pager, query)), ...query, isFormatSupported }));
      });
      return whenThere(form, (made) => answerRead(ctx, read, made));
    });
  };
}
