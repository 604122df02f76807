/** The endpoints of the calls surface. */
import type { EvaluationReader } from '../../cache/reader.ts';
import { hasScope } from '../../keys/access.ts';
import type { Scope } from '../../keys/key.ts';
import type { Answer } from '../answer.ts';
import { answerOwnKey, OWN_KEY } from '../own-key.ts';
import { forbidden } from '../read.ts';
import { type Context, keyOf, matchOf, routeOf } from '../state.ts';
import type { Endpoint, EndpointRoute } from '../surface.ts';
import type { Transcripts } from '../transcripts.ts';
import { askCall, askCalls, askCallScorecard, askCallTranscript, askRubric } from './asks.ts';
import { createListCalls } from './list-calls.ts';
import { refuseParameters } from './query.ts';
import { createGetCall, createGetCallScorecard, createGetCallTranscript, createGetRubric } from './single-reads.ts';

const CALLS = guardedBy(
  'calls.read',
  'read calls here: it must be active, hold the scope calls.read, and be allowed the workspace.',
);
const RUBRICS = guardedBy('coaching.read', 'read rubrics: it must be active and hold the scope coaching.read.');

const ROUTES = {
  list: { ...CALLS, name: 'listCalls', path: '/calls', notFound: 'There are no such calls.', asks: askCalls },
  call: { ...CALLS, name: 'getCall', path: '/calls/:callId', notFound: 'There is no such call.', asks: askCall },
  transcript: {
    ...CALLS,
    name: 'getCallTranscript',
    path: '/calls/:callId/transcript',
    notFound: 'There is no such call, or its transcript is not ready yet.',
    asks: askCallTranscript,
  },
  scorecard: {
    ...CALLS,
    name: 'getCallScorecard',
    path: '/calls/:callId/scorecard',
    notFound: 'There is no such call, or its scorecard is not ready yet.',
    asks: askCallScorecard,
  },
  rubric: {
    ...RUBRICS,
    name: 'getScorecardRubric',
    path: '/scorecards/:scorecardId/rubric',
    notFound: 'There is no such scorecard.',
    asks: askRubric,
  },
  key: { ...OWN_KEY, name: 'getCallsKey' },
} satisfies Readonly<Record<string, EndpointRoute>>;

export const V2_ROUTES: readonly EndpointRoute[] = Object.values(ROUTES);

export function v2Endpoints(reader: EvaluationReader, transcripts: Transcripts): readonly Endpoint[] {
  return [
    { ...ROUTES.list, handle: createListCalls(reader) },
    { ...ROUTES.call, handle: createGetCall(reader) },
    { ...ROUTES.transcript, handle: createGetCallTranscript(reader, transcripts) },
    { ...ROUTES.scorecard, handle: createGetCallScorecard(reader) },
    { ...ROUTES.rubric, handle: createGetRubric(reader) },
    { ...ROUTES.key, handle: getOwnKey },
  ];
}

/** It takes no parameters. */
function getOwnKey(ctx: Context): Answer {
  refuseParameters(new URLSearchParams(matchOf(ctx).query));
  return answerOwnKey(ctx);
}

function guardedBy(scope: Scope, mustHold: string): Pick<Endpoint, 'forbidden' | 'authorize'> {
  return {
    forbidden: `This API key may not ${mustHold}`,
    authorize: (ctx: Context) => {
      if (!hasScope(keyOf(ctx), scope)) throw forbidden(routeOf(ctx), `scope ${scope}`);
    },
  };
}
