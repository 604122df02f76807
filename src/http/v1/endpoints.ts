/** The endpoints of the workspace surface. */
import type { EvaluationReader } from '../../cache/reader.ts';
import { mayReadReports } from '../../keys/access.ts';
import { answerOwnKey, OWN_KEY } from '../own-key.ts';
import { forbidden, pathParameter } from '../read.ts';
import { type Context, keyOf, routeOf } from '../state.ts';
import type { Endpoint, EndpointRoute } from '../surface.ts';
import type { Transcripts } from '../transcripts.ts';
import { askDealInsights, askReport, askReports, askScorecard, askTranscript } from './asks.ts';
import { createListReports } from './list-reports.ts';
import { createGetDealInsights, createGetReport, createGetScorecard, createGetTranscript } from './single-reads.ts';

const FORBIDDEN =
  'This API key may not read reports here: it must be active, hold the scope reports.read, and belong to the workspace.';
const REPORTS = '/workspaces/:workspaceId/reports';
const REPORT = `${REPORTS}/:reportId`;

const common = { forbidden: FORBIDDEN, authorize };

const ROUTES = {
  list: { ...common, name: 'listReports', path: REPORTS, notFound: 'There are no such reports.', asks: askReports },
  report: {
    ...common,
    name: 'getReport',
    path: REPORT,
    notFound: 'There is no such report in this workspace.',
    asks: askReport,
  },
  scorecard: {
    ...common,
    name: 'getReportScorecard',
    path: `${REPORT}/scorecard`,
    notFound: partNotFound('scorecard is'),
    asks: askScorecard,
  },
  dealInsights: {
    ...common,
    name: 'getReportDealInsights',
    path: `${REPORT}/deal-insights`,
    notFound: partNotFound('deal insights are'),
    asks: askDealInsights,
  },
  transcript: {
    ...common,
    name: 'getReportTranscript',
    path: `${REPORT}/transcript`,
    notFound: partNotFound('transcript is'),
    asks: askTranscript,
  },
  key: { ...OWN_KEY, name: 'getWorkspaceKey' },
} satisfies Readonly<Record<string, EndpointRoute>>;

export const V1_ROUTES: readonly EndpointRoute[] = Object.values(ROUTES);

export function v1Endpoints(reader: EvaluationReader, transcripts: Transcripts): readonly Endpoint[] {
  return [
    { ...ROUTES.list, handle: createListReports(reader) },
    { ...ROUTES.report, handle: createGetReport(reader) },
    { ...ROUTES.scorecard, handle: createGetScorecard(reader) },
    { ...ROUTES.dealInsights, handle: createGetDealInsights(reader) },
    { ...ROUTES.transcript, handle: createGetTranscript(reader, transcripts) },
    { ...ROUTES.key, handle: answerOwnKey },
  ];
}

function partNotFound(partIs: string): string {
  return `There is no such report in this workspace, or its ${partIs} not ready yet.`;
}

/** The workspace of the path must be the key's; one that is no UUID is nobody's (K5). */
function authorize(ctx: Context): void {
  if (!mayReadReports(keyOf(ctx), pathParameter(ctx, 'workspaceId'))) {
    throw forbidden(routeOf(ctx), 'scope or workspace');
  }
}
