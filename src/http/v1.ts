/** The workspace surface: the reports of one workspace. Invalid numbers in queries are corrected, not refused (Q2). */
import { Router } from '@koa/router';
import { Derivation } from '../cache/entry.ts';
import type { Cache } from '../cache/reader.ts';
import { cacheRequest } from '../cache/request.ts';
import { reportsPageSchema, toReportsPage } from '../domain/pages.ts';
import { dealInsightsBodySchema, scoredCardViewSchema, toDealInsightsBody, toScoredCardView } from '../domain/parts.ts';
import { reportBodySchema, toReport } from '../domain/report.ts';
import { reportTranscriptSchema } from '../domain/transcript.ts';
import { type RecordKind, RESOURCES } from '../upstream/resources.ts';
import { currentKeyRoute, respondWithKey } from './current-key.ts';
import { requireScope } from './middleware/authenticate.ts';
import { pathId, workspaceParameter } from './openapi/parameters.ts';
import { pageLinks } from './page-links.ts';
import { getLenient, getParameter, lenientInteger, lenientText, lenientUuid } from './query.ts';
import {
  foundRecord,
  isBeyondAllPages,
  limitAddress,
  listOf,
  listQuery,
  type Page,
  requestOf,
  readerOf,
  type ShownRecord,
  showRecord,
} from './read.ts';
import { Representation } from './representation.ts';
import { respond } from './respond.ts';
import {
  type FixedTexts,
  forbidden,
  type ListRequest,
  parseId,
  type RecordRequest,
  type RequestView,
  route,
  type Route,
} from './route.ts';
import { apiKeyOf, type RequestState, type RouteMiddleware } from './state.ts';
import type { Transcripts } from './transcripts.ts';

const page = lenientInteger('page', {
  min: 1,
  fallback: 1,
  description:
    'The page, from 1. Lenient: missing, repeated, no integer (`-?[0-9]{1,9}`) or below 1 counts as 1. A page past the end is an empty list.',
});
const limit = lenientInteger('limit', {
  min: 1,
  max: 50,
  fallback: 50,
  description:
    'How many reports a page holds. Lenient: missing, repeated or no integer (`-?[0-9]{1,9}`) counts as 50; a number out of range is clamped to 1 to 50.',
});
const search = lenientText('search', {
  maxLength: 100,
  description:
    'Only reports whose name, evaluatee, attendee e-mail address or CRM deal name holds this text (such as `renewal`), whatever its case. Up to 100 characters (Unicode code points); longer or repeated: 400. Empty counts as absent.',
});
const scorecardId = lenientUuid(
  'scorecardId',
  'Only reports that were scored with this scorecard. No UUID, or repeated: 400. Empty counts as absent.',
);

const reports = {
  surface: 'v1',
  scope: 'reports.read',
  quota: 'counted',
  forbidden:
    'This API key may not read reports here: it must be active, hold the scope reports.read, and belong to the workspace.',
} as const;

/** A single read of v1 has no 400 (S1). */
const report = {
  ...reports,
  parameters: [workspaceParameter, pathId('reportId', 'The report.')],
  failures: [401, 403, 404, 429, 500],
} as const;

const REPORTS = '/workspaces/:workspaceId/reports';
const REPORT = `${REPORTS}/:reportId`;
const NO_REPORT = 'There is no such report in this workspace';

const listReports = route({
  ...reports,
  name: 'listReports',
  path: REPORTS,
  notFound: 'There are no such reports.',
  parseRequest: ({ params, query }): ListRequest & { readonly page: Page } => {
    const asked = { page: getLenient(query, page), pageSize: getLenient(query, limit) };
    const filter = { search: getParameter(query, search), scorecardId: getParameter(query, scorecardId) };
    return { resource: 'list', page: asked, query: listQuery([workspaceOf(params)], asked, filter) };
  },
  summary: 'List reports',
  description:
    'The completed reports of the workspace, newest first. Unknown query parameters are ignored. `page` and `limit` never fail: an invalid value is corrected, as each of them says.',
  parameters: [workspaceParameter, page.openapi, limit.openapi, search.openapi, scorecardId.openapi],
  failures: [400, 401, 403, 429, 500],
  response: reportsPageSchema,
  success: 'One page of reports, and how many there are on all pages.',
});

const getReport = route({
  ...report,
  name: 'getReport',
  path: REPORT,
  notFound: `${NO_REPORT}.`,
  parseRequest: (view, texts) => recordOf(view, 'evaluation', texts),
  summary: 'Get a report',
  description: 'One report of the workspace, whatever its status. A report of another workspace is 404.',
  response: reportBodySchema,
  success: 'The report.',
});

const getReportScorecard = route({
  ...report,
  name: 'getReportScorecard',
  path: `${REPORT}/scorecard`,
  notFound: `${NO_REPORT}, or its scorecard is not ready yet.`,
  parseRequest: (view, texts) => recordOf(view, 'scorecard', texts),
  summary: 'Get the scorecard of a report',
  description: 'How each criterion was scored, and the coaching plan. 404 until the evaluation has been scored.',
  response: scoredCardViewSchema,
  success: 'The scored scorecard and the coaching plan.',
});

const getReportDealInsights = route({
  ...report,
  name: 'getReportDealInsights',
  path: `${REPORT}/deal-insights`,
  notFound: `${NO_REPORT}, or its deal insights are not ready yet.`,
  parseRequest: (view, texts) => recordOf(view, 'dealInsights', texts),
  summary: 'Get the deal insights of a report',
  description: 'The findings of the evaluation about the deal. 404 until they are there.',
  response: dealInsightsBodySchema,
  success: 'The deal insights.',
});

const getReportTranscript = route({
  ...report,
  name: 'getReportTranscript',
  path: `${REPORT}/transcript`,
  notFound: `${NO_REPORT}, or its transcript is not ready yet.`,
  parseRequest: (view, texts) => recordOf(view, 'transcript', texts),
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

export function v1Router(cache: Cache, transcripts: Transcripts): Router<RequestState> {
  const router = new Router<RequestState>({ prefix: '/v1', strict: true, sensitive: true });
  const pages = new Derivation<Representation>(({ weightBytes }) => weightBytes);
  const show = <T>(declaration: Route<RecordRequest>, shown: ShownRecord<T>): void => {
    router.get(declaration.name, declaration.path, ...guards(declaration), showRecord(cache, declaration, shown));
  };

  router.get(listReports.name, listReports.path, ...guards(listReports), async (ctx) => {
    const { query, page: asked } = requestOf(listReports, ctx);
    const read = await cache.read(cacheRequest(RESOURCES.list, query), readerOf(ctx, listReports));
    const render = (): Representation => {
      const list = listOf(read);
      const { search: text, scorecardId: scorecard } = query;
      const links = pageLinks(
        { page: asked.page, totalPages: Math.ceil(list.total / asked.pageSize) },
        {
          limit: asked.pageSize,
          search: text,
          scorecardId: scorecard,
        },
      );
      return new Representation(toReportsPage(list, asked.page), links);
    };
    await respond(ctx, read, isBeyondAllPages(asked) ? render() : pages.of(read.entry, render));
  });

  show(getReport, { resource: RESOURCES.evaluation, toPublic: (record) => ({ report: toReport(record) }) });

  show(getReportScorecard, { resource: RESOURCES.scorecard, toPublic: toScoredCardView });

  show(getReportDealInsights, { resource: RESOURCES.dealInsights, toPublic: toDealInsightsBody });

  router.get(getReportTranscript.name, getReportTranscript.path, ...guards(getReportTranscript), async (ctx) => {
    const { id } = requestOf(getReportTranscript, ctx);
    const reader = readerOf(ctx, getReportTranscript, [workspaceOf(ctx.params)]);
    const read = await cache.read(cacheRequest(RESOURCES.transcript, { id }), reader);
    const record = foundRecord(getReportTranscript, read);
    ctx.state.signal.throwIfAborted();
    await respond(ctx, read, await transcripts.whole(read.entry, record));
  });

  router.get(getWorkspaceKey.name, getWorkspaceKey.path, limitAddress(getWorkspaceKey), respondWithKey);
  return router;
}

/** The key needs the scope, and the workspace of the path must be the key's; what is no UUID is nobody's (K5). */
function guards(declaration: Route): readonly RouteMiddleware[] {
  const requireWorkspace: RouteMiddleware = (ctx, next) => {
    if (apiKeyOf(ctx).workspaceIds.includes(workspaceOf(ctx.params))) return next();
    throw forbidden(declaration, 'workspace_forbidden', "the workspace of the path is not among the key's");
  };
  return [requireScope(declaration), requireWorkspace, limitAddress(declaration)];
}

/** A report of another workspace than the path's is none (K5). Query parameters are ignored (Q2). */
function recordOf<K extends RecordKind>(view: RequestView, resource: K, texts: FixedTexts): RecordRequest<K> {
  const id = parseId(view, 'reportId', texts);
  return { resource, id, workspaceIds: [workspaceOf(view.params)] };
}

/** UUIDs are compared in any case (RFC 9562, section 4). */
function workspaceOf(params: RequestView['params']): string {
  return (params['workspaceId'] ?? '').toLowerCase();
}
