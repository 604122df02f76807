/** Calls every operation with the SDK that hey-api generates. It is copied beside that SDK to be checked and run. */
import { createClient, createConfig } from './hey-api/client/index.ts';
import * as api from './hey-api/sdk.gen.ts';
import { bodyOf, type Readings, type Target } from './target.ts';

export async function callWithHeyApi({ baseUrl, key, workspaceId, ...ids }: Target): Promise<Readings> {
  const client = createClient(createConfig({ baseUrl, auth: () => key }));
  const report = { client, path: { workspaceId, reportId: ids.reportId } };
  const call = { client, path: { callId: ids.callId } };
  const rubric = { client, path: { scorecardId: ids.scorecardId } };
  const reports = await api.listReports({ client, path: { workspaceId }, query: { page: 1, limit: 2 } });
  const calls = await api.listCalls({ client, query: { workspaceId, pageSize: 2 } });
  const turns = await api.getCallTranscript({ ...call, query: { pageSize: 5, raw: false } });
  return {
    listReports: bodyOf('listReports', reports).total_count,
    getReport: bodyOf('getReport', await api.getReport(report)).report.name,
    getReportScorecard: bodyOf('getReportScorecard', await api.getReportScorecard(report)).scorecard.name,
    getReportDealInsights: bodyOf('getReportDealInsights', await api.getReportDealInsights(report)).evaluation_id,
    getReportTranscript: bodyOf('getReportTranscript', await api.getReportTranscript(report)).transcript.length,
    getWorkspaceKey: bodyOf('getWorkspaceKey', await api.getWorkspaceKey({ client })).key.id,
    listCalls: bodyOf('listCalls', calls).pagination.total_count,
    getCall: bodyOf('getCall', await api.getCall(call)).call.owner_id,
    getCallTranscript: bodyOf('getCallTranscript', turns).pagination.total_count,
    getCallScorecard: bodyOf('getCallScorecard', await api.getCallScorecard(call)).coaching_plan.focus_area.try_this,
    getScorecardRubric: bodyOf('getScorecardRubric', await api.getScorecardRubric(rubric)).scorecard.name,
    getCallsKey: bodyOf('getCallsKey', await api.getCallsKey({ client })).key.rate_limit.minute.limit,
  };
}
