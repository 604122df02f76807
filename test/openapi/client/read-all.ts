/**
 * A consumer's program: calls every operation with a client (`./client.ts`) that a public generator made from the
 * document of a running gateway. It stands for what any consumer can write: no casts, no assertions, nothing untyped.
 * It is copied beside a generated client before it is checked and run, so it takes part in no other check.
 */
import * as api from './client.ts';

export interface ReadAllOptions {
  /** Where the gateway is, without `/v1` or `/v2`. */
  readonly baseUrl: string;
  /** A key with `reports.read`, and one with `calls.read` and `coaching.read`. */
  readonly v1Key: string;
  readonly v2Key: string;
  readonly ids: {
    readonly workspaceId: string;
    readonly reportId: string;
    readonly callId: string;
    readonly scorecardId: string;
  };
}

/** A little of each answer. */
export interface Readings {
  readonly listReports: { names: string[]; page: number; total: number };
  readonly getReport: { email: string; deals: string[]; sharedSince: string | null; minutes: number | null };
  readonly getReportScorecard: { scores: string[]; tryThis: string };
  readonly getReportDealInsights: { evaluation: string; link: string; topics: string[] };
  readonly getReportTranscript: { length: number; isSupported: boolean };
  readonly getWorkspaceKey: { id: string };
  readonly listCalls: { names: string[]; pages: number; total: number };
  readonly getCall: { evaluatee: string | null; objects: string[]; best: number };
  readonly getCallTranscript: { turns: number[]; hasMore: boolean; isTruncated: boolean };
  readonly getCallScorecard: { sections: string[]; strengths: string[] };
  readonly getScorecardRubric: { name: string; keys: string[] };
  readonly getCallsKey: { perMinute: number };
}

/** Throws an Error that names the operation and the message if any answer is not a 200. */
export async function readAll(options: ReadAllOptions): Promise<Readings> {
  return { ...(await readReports(options)), ...(await readCalls(options)) };
}

type Reports = Pick<
  Readings,
  | 'listReports'
  | 'getReport'
  | 'getReportScorecard'
  | 'getReportDealInsights'
  | 'getReportTranscript'
  | 'getWorkspaceKey'
>;

async function readReports({ baseUrl, v1Key, ids }: ReadAllOptions): Promise<Reports> {
  const request = { baseUrl, headers: { Authorization: `Bearer ${v1Key}` } };
  const { workspaceId, reportId } = ids;
  const list = await api.listReports(workspaceId, { page: 1, limit: 5 }, request);
  if (list.status !== 200) throw failed('listReports', list);
  const report = await api.getReport(workspaceId, reportId, {}, request);
  if (report.status !== 200) throw failed('getReport', report);
  const card = await api.getReportScorecard(workspaceId, reportId, {}, request);
  if (card.status !== 200) throw failed('getReportScorecard', card);
  const insights = await api.getReportDealInsights(workspaceId, reportId, {}, request);
  if (insights.status !== 200) throw failed('getReportDealInsights', insights);
  const transcript = await api.getReportTranscript(workspaceId, reportId, {}, request);
  if (transcript.status !== 200) throw failed('getReportTranscript', transcript);
  const key = await api.getWorkspaceKey({}, request);
  if (key.status !== 200) throw failed('getWorkspaceKey', key);

  const { evaluatee_user, crm_deals, share, duration_in_minutes } = report.data.report;
  const criteria = card.data.scorecard.sections.flatMap((section) => section.criteria);
  return {
    listReports: {
      names: list.data.reports.map(({ name }) => name),
      page: list.data.page,
      total: list.data.total_count,
    },
    getReport: {
      email: evaluatee_user.email,
      deals: crm_deals.map(({ name }) => name),
      sharedSince: share?.deactivated_at ?? null,
      minutes: duration_in_minutes,
    },
    getReportScorecard: {
      scores: criteria.map(({ score }) => score),
      tryThis: card.data.coaching_plan.focus_area.try_this,
    },
    getReportDealInsights: {
      evaluation: insights.data.evaluation_id,
      link: insights.data.link,
      topics: Object.keys(insights.data.deal_insights),
    },
    getReportTranscript: {
      length: transcript.data.transcript.length,
      isSupported: transcript.data.isFormatSupported,
    },
    getWorkspaceKey: { id: key.data.key.id },
  };
}

async function readCalls({ baseUrl, v2Key, ids }: ReadAllOptions): Promise<Omit<Readings, keyof Reports>> {
  const request = { baseUrl, headers: { Authorization: `Bearer ${v2Key}` } };
  const list = await api.listCalls({ workspaceId: ids.workspaceId, pageSize: 5 }, request);
  if (list.status !== 200) throw failed('listCalls', list);
  const call = await api.getCall(ids.callId, {}, request);
  if (call.status !== 200) throw failed('getCall', call);
  const transcript = await api.getCallTranscript(ids.callId, { pageSize: 2, raw: false }, request);
  if (transcript.status !== 200) throw failed('getCallTranscript', transcript);
  const card = await api.getCallScorecard(ids.callId, {}, request);
  if (card.status !== 200) throw failed('getCallScorecard', card);
  const rubric = await api.getScorecardRubric(ids.scorecardId, {}, request);
  if (rubric.status !== 200) throw failed('getScorecardRubric', rubric);
  const key = await api.getCallsKey({}, request);
  if (key.status !== 200) throw failed('getCallsKey', key);

  const { evaluatee_user_id, crm_objects, score_breakdown } = call.data.call;
  return {
    listCalls: {
      names: list.data.calls.map(({ name }) => name),
      pages: list.data.pagination.total_pages,
      total: list.data.pagination.total_count,
    },
    getCall: {
      evaluatee: evaluatee_user_id,
      objects: crm_objects.map(({ type, name, url }) => `${type} ${name} ${url ?? '-'}`),
      best: Math.max(0, ...Object.values(score_breakdown)),
    },
    getCallTranscript: {
      turns: transcript.data.transcript.segments.map(({ index }) => index),
      hasMore: transcript.data.pagination.has_more,
      isTruncated: transcript.data.truncated,
    },
    getCallScorecard: {
      sections: card.data.scorecard.sections.map(({ name }) => name),
      strengths: card.data.coaching_plan.strengths.map(({ name }) => name),
    },
    getScorecardRubric: {
      name: rubric.data.scorecard.name,
      keys: Object.keys(rubric.data.scorecard.content),
    },
    getCallsKey: { perMinute: key.data.key.rate_limit.minute.limit },
  };
}

/** Every failure but a 304 tells its reason, in the form of its surface. */
type Failure =
  | { readonly status: 304 }
  | { readonly status: number; readonly data: { readonly error: string | { readonly message: string } } };

function failed(operation: string, answer: Failure): Error {
  if (!('data' in answer)) return new Error(`${operation}: ${answer.status}`);
  const { error } = answer.data;
  return new Error(`${operation}: ${answer.status}: ${typeof error === 'string' ? error : error.message}`);
}
