/** The workspace surface: the reports of one workspace (Q2: invalid numbers in queries are corrected, not refused). */
import type { z } from 'zod';
import { dealInsightsBodySchema, scoredCardViewSchema, toDealInsightsBody, toScoredCardView } from '../domain/parts.ts';
import {
  hasReport,
  REPORT_EMAIL_PATH,
  reportBodySchema,
  reportsPageSchema,
  toReport,
  toReportsPage,
} from '../domain/report.ts';
import { reportTranscriptSchema } from '../domain/transcript.ts';
import type { EvaluationRecord } from '../domain/records.ts';
import { RESOURCES } from '../upstream/resources.ts';
import { malformed } from '../upstream/store-error.ts';
import { currentKeyRoute } from './current-key.ts';
import {
  lenientInteger,
  lenientQuery,
  lenientText,
  lenientUuid,
  parseId,
  pathId,
  workspaceParameter,
} from './parameters.ts';
import type { Problem } from './problem.ts';
import { listRead, readRoute, type RecordRead, recordRead, rendered, renderedPage } from './read.ts';
import { route } from './route.ts';
import { wholeTranscript } from './transcripts.ts';
import type { RequestInput, Route } from './state.ts';

const page = lenientInteger('page', 'The page, from 1. A page past the end is an empty list.', { min: 1, fallback: 1 });
const limit = lenientInteger('limit', 'How many reports a page holds.', { min: 1, max: 50, fallback: 50 });
const search = lenientText(
  'search',
  'Only reports whose name, evaluatee, attendee e-mail address or CRM deal name holds this text (such as `renewal`), whatever its case.',
  100,
);
const scorecardId = lenientUuid('scorecardId', 'Only reports that were scored with this scorecard.');

const reports = {
  surface: 'v1',
  scope: 'reports.read',
  quota: 'counted',
  forbidden:
    'This API key may not read reports here: it must be active, hold the scope reports.read, belong to the workspace, and come from an address that it allows.',
} as const;

/** S1: a single read of v1 has no 400. */
const report = {
  ...reports,
  parse: parseReport,
  parameters: [workspaceParameter, pathId('reportId', 'The report.')],
  failures: [401, 403, 404, 429, 500],
} as const;

const REPORTS = '/workspaces/:workspaceId/reports';
const REPORT = `${REPORTS}/:reportId`;
const NO_REPORT = 'There is no such report in this workspace';

const listReports = readRoute({
  ...reports,
  name: 'listReports',
  path: REPORTS,
  resource: RESOURCES.list,
  notFound: 'There are no such reports.',
  parse: ({ params, query }) =>
    lenientQuery(query, (get) =>
      listRead([workspaceOf(params)], get(page), {
        pageSize: get(limit),
        search: get(search),
        scorecardId: get(scorecardId),
      }),
    ),
  represent: renderedPage(toReportsPage, hasReport, (query) => ({
    limit: query.limit,
    search: query.search,
    scorecardId: query.scorecardId,
  })),
  summary: 'List reports',
  description:
    'The completed reports of the workspace, newest first. Unknown query parameters are ignored. `page` and `limit` never fail: an invalid value is corrected, as each of them says.',
  parameters: [workspaceParameter, page.openapi, limit.openapi, search.openapi, scorecardId.openapi],
  failures: [400, 401, 403, 429, 500],
  response: reportsPageSchema,
  success: 'One page of reports, and how many there are on all pages.',
});

const getReport = readRoute({
  ...report,
  name: 'getReport',
  path: REPORT,
  resource: RESOURCES.evaluation,
  represent: rendered(toReportBody),
  notFound: `${NO_REPORT}.`,
  summary: 'Get a report',
  description: 'One report of the workspace, whatever its status. A report of another workspace is 404.',
  response: reportBodySchema,
  success: 'The report.',
});

const getReportScorecard = readRoute({
  ...report,
  name: 'getReportScorecard',
  path: `${REPORT}/scorecard`,
  resource: RESOURCES.scorecard,
  represent: rendered(toScoredCardView),
  notFound: `${NO_REPORT}, or its scorecard is not ready yet.`,
  summary: 'Get the scorecard of a report',
  description: 'How each criterion was scored, and the coaching plan. 404 until the evaluation has been scored.',
  response: scoredCardViewSchema,
  success: 'The scored scorecard and the coaching plan.',
});

const getReportDealInsights = readRoute({
  ...report,
  name: 'getReportDealInsights',
  path: `${REPORT}/deal-insights`,
  resource: RESOURCES.dealInsights,
  represent: rendered(toDealInsightsBody),
  notFound: `${NO_REPORT}, or its deal insights are not ready yet.`,
  summary: 'Get the deal insights of a report',
  description: 'The findings of the evaluation about the deal. 404 until they are there.',
  response: dealInsightsBodySchema,
  success: 'The deal insights.',
});

const getReportTranscript = readRoute({
  ...report,
  name: 'getReportTranscript',
  path: `${REPORT}/transcript`,
  resource: RESOURCES.transcript,
  represent: wholeTranscript,
  notFound: `${NO_REPORT}, or its transcript is not ready yet.`,
  summary: 'Get the transcript of a report',
  description: 'The whole transcript as the store holds it. 404 until it is there.',
  response: reportTranscriptSchema,
  success: 'The transcript.',
});

const getWorkspaceKey = route({ ...currentKeyRoute, name: 'getWorkspaceKey', surface: 'v1' });

export const V1_ROUTES: readonly Route[] = [
  listReports,
  getReport,
  getReportScorecard,
  getReportDealInsights,
  getReportTranscript,
  getWorkspaceKey,
];

/** Throws a StoreError for a record that has no report. */
function toReportBody(record: EvaluationRecord): z.output<typeof reportBodySchema> {
  if (hasReport(record)) return { report: toReport(record) };
  throw malformed(`the store's evaluation ${record['_id']} is malformed at ${REPORT_EMAIL_PATH}`);
}

/** K5: a report of another workspace than the path's is 404. Query parameters are ignored (Q2). */
function parseReport(input: RequestInput): RecordRead | Problem {
  return recordRead(parseId(input, 'reportId'), [workspaceOf(input.params)]);
}

/** UUIDs are compared in any case (RFC 9562, section 4). */
function workspaceOf(params: RequestInput['params']): string {
  return (params['workspaceId'] ?? '').toLowerCase();
}
