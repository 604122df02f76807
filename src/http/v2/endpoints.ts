/** The five endpoints of the calls surface. */
import type { EvaluationReader } from '../../cache/reader.ts';
import { hasScope } from '../../keys/access.ts';
import type { Scope } from '../../keys/key.ts';
import { forbidden } from '../read.ts';
import { type Context, keyOf } from '../state.ts';
import type { Endpoint } from '../surface.ts';
import type { Transcripts } from '../transcripts.ts';
import { createListCalls } from './list-calls.ts';
import { createGetCall, createGetCallScorecard, createGetCallTranscript, createGetRubric } from './single-reads.ts';

const CALLS = guardedBy(
  'calls.read',
  'read calls here: it must be active, hold the scope calls.read, and be allowed the workspace.',
);
const RUBRICS = guardedBy('coaching.read', 'read rubrics: it must be active and hold the scope coaching.read.');

export function v2Endpoints(reader: EvaluationReader, transcripts: Transcripts): readonly Endpoint[] {
  return [
    {
      ...CALLS,
      name: 'listCalls',
      path: '/calls',
      notFound: 'There are no such calls.',
      handle: createListCalls(reader),
    },
    {
      ...CALLS,
      name: 'getCall',
      path: '/calls/:callId',
      notFound: 'There is no such call.',
      handle: createGetCall(reader),
    },
    {
      ...CALLS,
      name: 'getCallTranscript',
      path: '/calls/:callId/transcript',
      notFound: 'There is no such call, or its transcript is not ready yet.',
      handle: createGetCallTranscript(reader, transcripts),
    },
    {
      ...CALLS,
      name: 'getCallScorecard',
      path: '/calls/:callId/scorecard',
      notFound: 'There is no such call, or its scorecard is not ready yet.',
      handle: createGetCallScorecard(reader),
    },
    {
      ...RUBRICS,
      name: 'getScorecardRubric',
      path: '/scorecards/:scorecardId/rubric',
      notFound: 'There is no such scorecard.',
      handle: createGetRubric(reader),
    },
  ];
}

function guardedBy(scope: Scope, mustHold: string): Pick<Endpoint, 'forbidden' | 'authorize'> {
  return {
    forbidden: `This API key may not ${mustHold}`,
    authorize: (ctx: Context) => {
      if (!hasScope(keyOf(ctx), scope)) throw forbidden(ctx, `scope ${scope}`);
    },
  };
}
