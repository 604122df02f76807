/** The operations of the public API. */
import type { ZodType } from 'zod';
import { callBodySchema } from '../../domain/call.ts';
import { dealInsightsBodySchema } from '../../domain/deal-insights.ts';
import { ownKeyBodySchema } from '../../domain/own-key.ts';
import { callsPageSchema, reportsPageSchema } from '../../domain/pages.ts';
import { reportBodySchema } from '../../domain/report.ts';
import { rubricBodySchema } from '../../domain/rubric.ts';
import { scoredCardViewSchema } from '../../domain/scored-card.ts';
import { callTranscriptSchema, reportTranscriptSchema } from '../../domain/transcript.ts';
import type { bodyExamples } from './examples.ts';
import type { FailureStatus } from './responses.ts';

export interface Operation {
  readonly id: keyof typeof bodyExamples;
  readonly path: string;
  /** Null where any active key may ask. */
  readonly scope: string | null;
  readonly summary: string;
  readonly description: string;
  readonly pathParameters: readonly string[];
  readonly queryParameters: readonly string[];
  readonly statuses: readonly FailureStatus[];
  readonly body: ZodType;
  readonly success: string;
}

const REPORTS = '/v1/workspaces/{workspaceId}/reports';
const REPORT = `${REPORTS}/{reportId}`;
const CALL = '/v2/calls/{callId}';

const reportList = {
  scope: 'reports.read',
  pathParameters: ['WorkspaceId'],
  statuses: [400, 401, 403, 429, 500],
} as const;
const reportRead = {
  scope: 'reports.read',
  pathParameters: ['WorkspaceId', 'ReportId'],
  queryParameters: [],
  statuses: [401, 403, 404, 429, 500],
} as const;
const callRead = {
  scope: 'calls.read',
  pathParameters: ['CallId'],
  queryParameters: [],
  statuses: [400, 401, 403, 404, 429, 500],
} as const;

const ownKey = {
  scope: null,
  pathParameters: [],
  queryParameters: [],
  statuses: [400, 401, 403, 500],
  summary: 'Get the key in use',
  body: ownKeyBodySchema,
  success: 'The key, and how its quota stands.',
} as const;
const OWN_KEY =
  'The API key that the request is made with: its scopes, workspaces and expiry, and both windows of its quota. It costs nothing: the request counts in neither window, and is answered also where the quota is used up.';

const NO_PARAMETERS = 'It takes no query parameters; any is refused with 400.';

/** In the order in which they are described. */
export const operations: readonly Operation[] = [
  {
    ...reportList,
    id: 'listReports',
    path: REPORTS,
    summary: 'List reports',
    description:
      'The completed reports of the workspace, newest first. Unknown query parameters are ignored. `page` and `limit` never fail: what cannot be meant is put right, as each of them says.',
    queryParameters: ['ReportsPage', 'ReportsLimit', 'ReportsSearch', 'ReportsScorecardId'],
    body: reportsPageSchema,
    success: 'One page of reports, and how many there are on all pages.',
  },
  {
    ...reportRead,
    id: 'getReport',
    path: REPORT,
    summary: 'Get a report',
    description: 'One report of the workspace, whatever its status. A report of another workspace is 404.',
    body: reportBodySchema,
    success: 'The report.',
  },
  {
    ...reportRead,
    id: 'getReportScorecard',
    path: `${REPORT}/scorecard`,
    summary: 'Get the scorecard of a report',
    description: 'How each criterion was scored, and the coaching plan. 404 until the evaluation has been scored.',
    body: scoredCardViewSchema,
    success: 'The scored scorecard and the coaching plan.',
  },
  {
    ...reportRead,
    id: 'getReportDealInsights',
    path: `${REPORT}/deal-insights`,
    summary: 'Get the deal insights of a report',
    description: 'What the evaluation says about the deal. 404 until it is there.',
    body: dealInsightsBodySchema,
    success: 'The deal insights.',
  },
  {
    ...reportRead,
    id: 'getReportTranscript',
    path: `${REPORT}/transcript`,
    summary: 'Get the transcript of a report',
    description: 'The whole transcript as the store holds it. 404 until it is there.',
    body: reportTranscriptSchema,
    success: 'The transcript.',
  },
  {
    ...ownKey,
    id: 'getWorkspaceKey',
    path: '/v1/key',
    description: OWN_KEY,
  },
  {
    id: 'listCalls',
    path: '/v2/calls',
    scope: 'calls.read',
    summary: 'List calls',
    description:
      'The completed calls of all workspaces of the key, or of one of them, newest first. A query parameter that is unknown or breaks its rule is refused with 400.',
    pathParameters: [],
    queryParameters: ['CallsWorkspaceId', 'Page', 'CallsPageSize', 'CallsSearch', 'CallsScorecardId'],
    statuses: [400, 401, 403, 429, 500],
    body: callsPageSchema,
    success: 'One page of calls.',
  },
  {
    ...callRead,
    id: 'getCall',
    path: CALL,
    summary: 'Get a call',
    description: `One completed call. One that is not completed is 404. ${NO_PARAMETERS}`,
    body: callBodySchema,
    success: 'The call.',
  },
  {
    ...callRead,
    id: 'getCallTranscript',
    path: `${CALL}/transcript`,
    summary: 'Get the transcript of a call',
    description:
      'One page of the transcript. Pages are filled in order with at most `pageSize` segments and at most `maxChars` characters. Reading on while `has_more` is true gives every turn whole, in order, once. 404 until the transcript is there. A query parameter that is unknown or breaks its rule is refused with 400.',
    queryParameters: ['Page', 'TranscriptPageSize', 'MaxChars', 'Raw'],
    body: callTranscriptSchema,
    success: 'One page of the transcript.',
  },
  {
    ...callRead,
    id: 'getCallScorecard',
    path: `${CALL}/scorecard`,
    summary: 'Get the scorecard of a call',
    description: `How each criterion was scored, and the coaching plan. 404 until the call has been scored. ${NO_PARAMETERS}`,
    body: scoredCardViewSchema,
    success: 'The scored scorecard and the coaching plan.',
  },
  {
    ...callRead,
    id: 'getScorecardRubric',
    path: '/v2/scorecards/{scorecardId}/rubric',
    scope: 'coaching.read',
    pathParameters: ['ScorecardId'],
    summary: 'Get the rubric of a scorecard',
    description: `What a scorecard asks and how it is scored. ${NO_PARAMETERS}`,
    body: rubricBodySchema,
    success: 'The rubric.',
  },
  {
    ...ownKey,
    id: 'getCallsKey',
    path: '/v2/key',
    description: `${OWN_KEY} ${NO_PARAMETERS}`,
  },
];
