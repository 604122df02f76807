/** GET /v1/workspaces/{workspaceId}/reports/{reportId} and its parts. */
import { Derivation } from '../../cache/entry.ts';
import type { EvaluationReader } from '../../cache/reader.ts';
import { toDealInsightsBody } from '../../domain/deal-insights.ts';
import { toReport } from '../../domain/report.ts';
import { toScoredCardView } from '../../domain/scored-card.ts';
import { toReportTranscript } from '../../domain/transcript.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import { asker } from '../asked.ts';
import type { Answer } from '../answer.ts';
import { whileThere } from '../gone.ts';
import { readContextOf, visibleRecord } from '../read.ts';
import { Representation } from '../representation.ts';
import { answerRead } from '../send.ts';
import { createSingleRead, isOneOf } from '../single-read.ts';
import type { Context } from '../state.ts';
import type { Transcripts } from '../transcripts.ts';
import { askDealInsights, askReport, askScorecard, askTranscript } from './asks.ts';

type Handler = (ctx: Context) => MaybePromise<Answer>;

export function createGetReport(reader: EvaluationReader): Handler {
  return createSingleRead({
    asks: askReport,
    read: (id, context) => reader.evaluation(id, context),
    isVisible: isOneOf,
    toPublic: (record) => ({ report: toReport(record) }),
  });
}

export function createGetScorecard(reader: EvaluationReader): Handler {
  return createSingleRead({
    asks: askScorecard,
    read: (id, context) => reader.scorecard(id, context),
    isVisible: isOneOf,
    toPublic: toScoredCardView,
  });
}

export function createGetDealInsights(reader: EvaluationReader): Handler {
  return createSingleRead({
    asks: askDealInsights,
    read: (id, context) => reader.dealInsights(id, context),
    isVisible: isOneOf,
    toPublic: toDealInsightsBody,
  });
}

/** The body as it is, and whether it can be parsed (T1). */
export function createGetTranscript(reader: EvaluationReader, transcripts: Transcripts): Handler {
  const forms = new Derivation<Promise<Representation>>(() => 0);
  const asked = asker(askTranscript);
  return (ctx) => {
    const { id, workspaceIds } = asked(ctx);
    const context = readContextOf(ctx, workspaceIds ?? undefined);
    return whileThere(ctx, reader.transcript(id, context), async (read) => {
      const record = visibleRecord(ctx, read.entry, (candidate) => isOneOf(candidate, context.workspaceIds));
      const form = await forms.of(read.entry, async () => {
        const made = new Representation(toReportTranscript(await transcripts.pagerOf(read.entry, record)));
        read.entry.addDerivedBytes(made.weightBytes);
        return made;
      });
      return await answerRead(ctx, read, form);
    });
  };
}
