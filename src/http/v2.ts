/** The calls surface: calls of all workspaces of a key, with scopes (Q3, Q4: queries are strict, and every fault is named). */
import { callBodySchema, callsPageSchema, toCall, toCallsPage } from '../domain/call.ts';
import { rubricBodySchema, scoredCardViewSchema, toRubricBody, toScoredCardView } from '../domain/parts.ts';
import { callTranscriptSchema } from '../domain/transcript.ts';
import type { EvaluationPage } from '../domain/records.ts';
import { type ListQuery, RESOURCES } from '../upstream/resources.ts';
import { currentKeyRoute, showCurrentKey } from './current-key.ts';
import {
  asksForForeign,
  cursor,
  flag,
  parseId,
  pathId,
  refuseParameters,
  strictId,
  strictInteger,
  strictQuery,
  strictText,
  strictUuid,
  WORKSPACE_FORBIDDEN,
} from './parameters.ts';
import { ErrorText, Problem } from './problem.ts';
import {
  type ListRead,
  listRead,
  readRoute,
  type RecordRead,
  recordRead,
  rendered,
  renderedPage,
  walkedPage,
  type WalkRead,
  walkRequest,
} from './read.ts';
import { parseQuery, route, ReaderNeeded } from './route.ts';
import { transcriptPage } from './transcripts.ts';
import { readCursor } from './walk.ts';
import type { RequestInput, Route } from './state.ts';

const page = strictInteger('page', 'The page, from 1. A page past the end is empty.', { min: 1, fallback: 1 });

const workspaceId = strictUuid(
  'workspaceId',
  "Only calls of this workspace; without it, of all workspaces of the key. A workspace that is not one of the key's is 403, whatever else is wrong with the query.",
);
const callsPerPage = strictInteger('pageSize', 'How many calls a page holds.', { min: 1, max: 100, fallback: 50 });
const search = strictText(
  'search',
  'Only calls whose name, evaluatee, attendee e-mail address or CRM deal name holds this text (such as `renewal`), whatever its case.',
  200,
);
const scorecardId = strictId('scorecardId', 'Only calls that were scored with this scorecard.');
const after = cursor(
  'after',
  'The calls that follow the last one of the page before, whatever was added above it or removed meanwhile. Empty begins at the newest call; `Link: rel="next"` has the value for each further page. Not together with `page`.',
);
const CALLS_PARAMETERS = [workspaceId, page, callsPerPage, search, scorecardId, after];

const segmentsPerPage = strictInteger('pageSize', 'How many segments a page holds at most.', {
  min: 1,
  max: 200,
  fallback: 100,
});
const maxChars = strictInteger(
  'maxChars',
  'How many characters (Unicode code points) `transcript.text` holds at most. A turn that is longer is cut and continues on the next page.',
  { min: 1, max: 50_000, fallback: 50_000 },
);
const raw = flag('raw', 'Exact slices of the stored transcript instead of the parsed turns.');
const TRANSCRIPT_PARAMETERS = [page, segmentsPerPage, maxChars, raw];

const NO_PARAMETERS = 'It takes no query parameters; any is refused with 400.';
const callId = pathId('callId', 'The call.');

const calls = {
  surface: 'v2',
  scope: 'calls.read',
  quota: 'counted',
  forbidden:
    'This API key may not read calls here: it must be active, hold the scope calls.read, be allowed the workspace, and come from an address that it allows.',
} as const;
const call = {
  ...calls,
  parse: recordParser('callId'),
  parameters: [callId],
  failures: [400, 401, 403, 404, 429, 500],
} as const;

/** The parameters of a list's links, beside `page` or `after`. */
const linkParameters = ({ workspaceIds, ...query }: ListQuery) => ({
  pageSize: query.limit,
  search: query.search,
  scorecardId: query.scorecardId,
  // A list of one workspace may be that of a key with several, narrowed, or of a key with just this one.
  workspaceId: workspaceIds.length === 1 ? (workspaceIds[0] ?? null) : null,
});
const callsPage = renderedPage(toCallsPage, () => true, linkParameters);
const callsBehind = walkedPage(toCallsPage, linkParameters);

const AFTER_OR_PAGE = new Problem(
  'parameter_invalid',
  new ErrorText('The query parameters after and page may not be given together.'),
);
const CURSOR_INVALID = new Problem(
  'cursor_invalid',
  new ErrorText(
    'The query parameter after must be empty, to begin, or the value that the Link header of the page before has in its next.',
  ),
);

const listCalls = readRoute<ListQuery, EvaluationPage, ListRead | WalkRead>({
  ...calls,
  name: 'listCalls',
  path: '/calls',
  resource: RESOURCES.list,
  notFound: 'There are no such calls.',
  parse: (input) => {
    // K6: a foreign workspace is refused before any fault of the query.
    if (asksForForeign(input, workspaceId)) return WORKSPACE_FORBIDDEN;
    const asked = strictQuery(input.query, CALLS_PARAMETERS, (get) => ({
      narrowedTo: get(workspaceId),
      page: get(page),
      after: get(after),
      pageSize: get(callsPerPage),
      search: get(search),
      scorecardId: get(scorecardId),
    }));
    if (asked instanceof Problem) return asked;
    const workspaceIds = asked.narrowedTo === null ? input.ownWorkspaceIds : [asked.narrowedTo];
    if (workspaceIds === null) throw new ReaderNeeded();
    if (asked.after === null) return listRead(workspaceIds, asked.page, asked);
    if (input.query.has('page')) return AFTER_OR_PAGE;
    const place = asked.after === '' ? null : readCursor(asked.after);
    return place === null && asked.after !== '' ? CURSOR_INVALID : walkRequest(workspaceIds, place, asked);
  },
  represent: (found, request, context) =>
    'place' in request ? callsBehind(found, request, context) : callsPage(found, request),
  summary: 'List calls',
  description:
    'The completed calls of all workspaces of the key, or of one of them, newest first. To read all of them while calls come and go, begin with an empty `after` and follow `Link: rel="next"`. A query parameter that is unknown or breaks its rule is refused with 400.',
  parameters: CALLS_PARAMETERS.map(({ openapi }) => openapi),
  failures: [400, 401, 403, 429, 500],
  response: callsPageSchema,
  success: 'One page of calls.',
});

const getCall = readRoute({
  ...call,
  name: 'getCall',
  path: '/calls/:callId',
  resource: RESOURCES.evaluation,
  // Q5: only completed evaluations are calls.
  isPublic: ({ state }) => state === 'COMPLETED',
  represent: rendered((record) => ({ call: toCall(record) })),
  notFound: 'There is no such call.',
  summary: 'Get a call',
  description: `One completed call. One that is not completed is 404. ${NO_PARAMETERS}`,
  response: callBodySchema,
  success: 'The call.',
});

const getCallTranscript = readRoute({
  ...call,
  name: 'getCallTranscript',
  path: '/calls/:callId/transcript',
  resource: RESOURCES.transcript,
  parse: (input: RequestInput) => {
    const asked = strictQuery(input.query, TRANSCRIPT_PARAMETERS, (get) => ({
      page: get(page),
      pageSize: get(segmentsPerPage),
      maxChars: get(maxChars),
      raw: get(raw),
    }));
    if (asked instanceof Problem) return asked;
    const record = recordRead(parseId(input, 'callId'), null);
    return record instanceof Problem ? record : { ...asked, ...record };
  },
  represent: transcriptPage,
  notFound: 'There is no such call, or its transcript is not ready yet.',
  summary: 'Get the transcript of a call',
  description:
    'One page of the transcript. Pages are filled in order with at most `pageSize` segments and at most `maxChars` characters. Reading on while `has_more` is true gives every turn whole, in order, once. 404 until the transcript is there. A query parameter that is unknown or breaks its rule is refused with 400.',
  parameters: [callId, ...TRANSCRIPT_PARAMETERS.map(({ openapi }) => openapi)],
  response: callTranscriptSchema,
  success: 'One page of the transcript.',
});

const getCallScorecard = readRoute({
  ...call,
  name: 'getCallScorecard',
  path: '/calls/:callId/scorecard',
  resource: RESOURCES.scorecard,
  represent: rendered(toScoredCardView),
  notFound: 'There is no such call, or its scorecard is not ready yet.',
  summary: 'Get the scorecard of a call',
  description: `How each criterion was scored, and the coaching plan. 404 until the call has been scored. ${NO_PARAMETERS}`,
  response: scoredCardViewSchema,
  success: 'The scored scorecard and the coaching plan.',
});

const getScorecardRubric = readRoute({
  ...call,
  name: 'getScorecardRubric',
  path: '/scorecards/:scorecardId/rubric',
  scope: 'coaching.read',
  forbidden:
    'This API key may not read rubrics: it must be active, hold the scope coaching.read, and come from an address that it allows.',
  resource: RESOURCES.rubric,
  parse: recordParser('scorecardId'),
  represent: rendered(toRubricBody),
  notFound: 'There is no such scorecard.',
  summary: 'Get the rubric of a scorecard',
  description: `The questions of a scorecard and how they are scored. ${NO_PARAMETERS}`,
  parameters: [pathId('scorecardId', 'The scorecard.')],
  response: rubricBodySchema,
  success: 'The rubric.',
});

const getCallsKey = route({
  ...currentKeyRoute,
  name: 'getCallsKey',
  surface: 'v2',
  description: `${currentKeyRoute.description} ${NO_PARAMETERS}`,
  answer: (ctx) => {
    ctx.state.problem = refuseParameters(parseQuery(ctx.querystring));
    if (ctx.state.problem === null) showCurrentKey(ctx);
  },
});

export const V2_ROUTES: readonly Route[] = [
  listCalls,
  getCall,
  getCallTranscript,
  getCallScorecard,
  getScorecardRubric,
  getCallsKey,
];

/** A single read that takes no query parameters. */
function recordParser(parameter: 'callId' | 'scorecardId') {
  return (input: RequestInput): RecordRead | Problem =>
    refuseParameters(input.query) ?? recordRead(parseId(input, parameter), null);
}
