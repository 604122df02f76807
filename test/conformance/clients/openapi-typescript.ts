/** Calls every operation with openapi-fetch and the types that openapi-typescript generates. It is copied beside them. */
import createClient from 'openapi-fetch';
import type { paths } from './openapi-typescript/schema.ts';
import { bodyOf, type Readings, type Target } from './target.ts';

export async function callWithOpenapiTypescript({ baseUrl, key, workspaceId, ...ids }: Target): Promise<Readings> {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
  const report = { params: { path: { workspaceId, reportId: ids.reportId } } };
  const call = { params: { path: { callId: ids.callId } } };
  const rubric = { params: { path: { scorecardId: ids.scorecardId } } };
  const reports = await client.GET('/v1/workspaces/{workspaceId}/reports', {
    params: { path: { workspaceId }, query: { page: 1, limit: 2 } },
  });
  const reportPath = '/v1/workspaces/{workspaceId}/reports/{reportId}';
  const one = await client.GET(reportPath, report);
  const card = await client.GET(`${reportPath}/scorecard`, report);
  const insights = await client.GET(`${reportPath}/deal-insights`, report);
  const text = await client.GET(`${reportPath}/transcript`, report);
  const v1Key = await client.GET('/v1/key');
  const calls = await client.GET('/v2/calls', { params: { query: { workspaceId, pageSize: 2 } } });
  const turns = await client.GET('/v2/calls/{callId}/transcript', {
    params: { ...call.params, query: { pageSize: 5, raw: false } },
  });
  const callCard = await client.GET('/v2/calls/{callId}/scorecard', call);
  const rules = await client.GET('/v2/scorecards/{scorecardId}/rubric', rubric);
  return {
    listReports: bodyOf('listReports', reports).total_count,
    getReport: bodyOf('getReport', one).report.name,
    getReportScorecard: bodyOf('getReportScorecard', card).scorecard.name,
    getReportDealInsights: bodyOf('getReportDealInsights', insights).evaluation_id,
    getReportTranscript: bodyOf('getReportTranscript', text).transcript.length,
    getWorkspaceKey: bodyOf('getWorkspaceKey', v1Key).key.id,
    listCalls: bodyOf('listCalls', calls).pagination.total_count,
    getCall: bodyOf('getCall', await client.GET('/v2/calls/{callId}', call)).call.owner_id,
    getCallTranscript: bodyOf('getCallTranscript', turns).pagination.total_count,
    getCallScorecard: bodyOf('getCallScorecard', callCard).coaching_plan.focus_area.try_this,
    getScorecardRubric: bodyOf('getScorecardRubric', rules).scorecard.name,
    getCallsKey: bodyOf('getCallsKey', await client.GET('/v2/key')).key.rate_limit.minute.limit,
  };
}
