/** GET /v2/calls/{callId}, its parts, and GET /v2/scorecards/{scorecardId}/rubric. */
import type { EvaluationReader } from '../../cache/reader.ts';
import { toCall } from '../../domain/call.ts';
import { toRubricBody } from '../../domain/rubric.ts';
import { toScoredCardView } from '../../domain/scored-card.ts';
import { toCallTranscript } from '../../domain/transcript.ts';
import { idParameter, queryOf, readContextOf, visibleRecord } from '../read.ts';
import { Representation } from '../representation.ts';
import { sendRead } from '../send.ts';
import { createSingleRead } from '../single-read.ts';
import { type Context, keyOf } from '../state.ts';
import { cutPage, type Transcripts } from '../transcripts.ts';
import { parseCallTranscriptQuery, refuseParameters } from './query.ts';

type Handler = (ctx: Context) => Promise<void>;

/** A record of a workspace that is not the key's is none (K6). */
function isOfKey(ctx: Context, record: { readonly workspaceId: string }): boolean {
  return keyOf(ctx).workspaceIds.includes(record.workspaceId);
}

const withoutParameters = (ctx: Context): void => refuseParameters(queryOf(ctx));

/** Only completed evaluations are calls (Q5). */
export function createGetCall(reader: EvaluationReader): Handler {
  return createSingleRead({
    parameter: 'callId',
    read: (id, context) => reader.evaluation(id, context),
    isVisible: (ctx, record) => isOfKey(ctx, record) && record.state === 'COMPLETED',
    toPublic: (record) => ({ call: toCall(record) }),
    checkQuery: withoutParameters,
  });
}

export function createGetCallScorecard(reader: EvaluationReader): Handler {
  return createSingleRead({
    parameter: 'callId',
    read: (id, context) => reader.scorecard(id, context),
    isVisible: isOfKey,
    toPublic: toScoredCardView,
    checkQuery: withoutParameters,
  });
}

export function createGetRubric(reader: EvaluationReader): Handler {
  return createSingleRead({
    parameter: 'scorecardId',
    read: (id, context) => reader.rubric(id, context),
    isVisible: isOfKey,
    toPublic: toRubricBody,
    checkQuery: withoutParameters,
  });
}

/** One page of the parsed transcript, or of its exact slices. */
export function createGetCallTranscript(reader: EvaluationReader, transcripts: Transcripts): Handler {
  return async (ctx) => {
    const query = parseCallTranscriptQuery(queryOf(ctx));
    const read = await reader.transcript(idParameter(ctx, 'callId'), readContextOf(ctx));
    const record = visibleRecord(ctx, read.entry, (candidate) => isOfKey(ctx, candidate));
    const pager = await transcripts.pagerOf(read.entry, record);
    const page = await cutPage(pager, query);
    const { isFormatSupported } = pager;
    await sendRead(ctx, read, new Representation(toCallTranscript({ ...page, ...query, isFormatSupported })));
  };
}
