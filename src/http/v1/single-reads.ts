/** GET /v1/workspaces/{workspaceId}/reports/{reportId} and its parts. */
import { Derivation } from '../../cache/entry.ts';
import type { EvaluationReader } from '../../cache/reader.ts';
import { toDealInsightsBody } from '../../domain/deal-insights.ts';
import { toReport } from '../../domain/report.ts';
import { toScoredCardView } from '../../domain/scored-card.ts';
import { toReportTranscript } from '../../domain/transcript.ts';
import { idParameter, pathParameter, readContextOf, visibleRecord } from '../read.ts';
import { Representation } from '../representation.ts';
import { sendRead } from '../send.ts';
import { createSingleRead } from '../single-read.ts';
import type { Context } from '../state.ts';
import type { Transcripts } from '../transcripts.ts';

type Handler = (ctx: Context) => Promise<void>;

function workspacesOfPath(ctx: Context): readonly string[] {
  return [pathParameter(ctx, 'workspaceId').toLowerCase()];
}

/** A report of another workspace than the path's is none (K5). */
function isOfPath(ctx: Context, record: { readonly workspaceId: string }): boolean {
  return workspacesOfPath(ctx).includes(record.workspaceId);
}

export function createGetReport(reader: EvaluationReader): Handler {
  return createSingleRead({
    parameter: 'reportId',
    read: (id, context) => reader.evaluation(id, context),
    workspaceIds: workspacesOfPath,
    isVisible: isOfPath,
    toPublic: (record) => ({ report: toReport(record) }),
  });
}

export function createGetScorecard(reader: EvaluationReader): Handler {
  return createSingleRead({
    parameter: 'reportId',
    read: (id, context) => reader.scorecard(id, context),
    workspaceIds: workspacesOfPath,
    isVisible: isOfPath,
    toPublic: toScoredCardView,
  });
}

export function createGetDealInsights(reader: EvaluationReader): Handler {
  return createSingleRead({
    parameter: 'reportId',
    read: (id, context) => reader.dealInsights(id, context),
    workspaceIds: workspacesOfPath,
    isVisible: isOfPath,
    toPublic: toDealInsightsBody,
  });
}

/** The body as it is, and whether it can be parsed (T1). */
export function createGetTranscript(reader: EvaluationReader, transcripts: Transcripts): Handler {
  const forms = new Derivation<Promise<Representation>>(() => 0);
  return async (ctx) => {
    const id = idParameter(ctx, 'reportId');
    const read = await reader.transcript(id, readContextOf(ctx, workspacesOfPath(ctx)));
    const record = visibleRecord(ctx, read.entry, (candidate) => isOfPath(ctx, candidate));
    const form = await forms.of(read.entry, async () => {
      const made = new Representation(toReportTranscript(await transcripts.pagerOf(read.entry, record)));
      read.entry.addDerivedBytes(made.weightBytes);
      return made;
    });
    await sendRead(ctx, read, form);
  };
}
