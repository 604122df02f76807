/** The examples in the document. Each is made from a record by the same functions as a real answer. */
import { toCall, toCallsPage } from '../../domain/call.ts';
import { toDealInsightsBody, toRubricBody, toScoredCardView } from '../../domain/parts.ts';
import type { EvaluationRecord, ScoredCardRecord } from '../../domain/records.ts';
import { toReport, toReportsPage } from '../../domain/report.ts';
import type { ReportTranscript } from '../../domain/transcript.ts';
import { toCurrentKeyBody } from '../current-key.ts';
import { toCallTranscript } from '../transcripts.ts';

/** These exist in the bundled sample store, so that the examples can be tried with its demo keys. */
export const EXAMPLE_WORKSPACE_ID = '2393e09e-a0b1-4849-8887-0fb942eae255';
export const EXAMPLE_EVALUATION_ID = 'ev_X2iGLaPDuMYx6hFIpZ';
export const EXAMPLE_SCORECARD_ID = '62b5d819-10a7-411b-b2dd-385d0ddd92fc';

const SCORECARD_NAME = 'Discovery call';
const TURNS = ['Dana Whitfield: Thanks for making the time today.', 'Jon Abara: Happy to. We have half an hour.'];

const evaluation: EvaluationRecord = {
  _id: EXAMPLE_EVALUATION_ID,
  workspaceId: EXAMPLE_WORKSPACE_ID,
  title: 'Discovery with Northwind Logistics',
  ownerUserId: 'usr_dana',
  state: 'COMPLETED',
  overallScore: 78.5,
  categoryScores: [
    { key: 'discovery', label: 'Discovery', value: 82 },
    { key: 'next_steps', label: 'Next steps', value: 75 },
  ],
  scorecardRef: { id: EXAMPLE_SCORECARD_ID, name: SCORECARD_NAME },
  createdAtMs: Date.UTC(2026, 2, 4, 15, 30),
  durationSeconds: 1834,
  source: 'zoom',
  evaluatee: {
    userId: 'usr_dana',
    displayName: 'Dana Whitfield',
    givenName: 'Dana',
    email: 'dana.whitfield@example.com',
    avatar: null,
  },
  shareLink: { id: 'shr_41c9', deactivatedAtMs: null },
  people: [
    { name: 'Dana Whitfield', email: 'dana.whitfield@example.com', spoke: true, attended: true },
    { name: 'Jon Abara', email: 'jon.abara@northwind.example', spoke: true, attended: true },
  ],
  crmLinks: [
    { objectType: 'deal', externalId: 'D-1042', label: 'Northwind renewal', href: 'https://crm.example/deals/D-1042' },
    { objectType: 'account', externalId: 'A-77', label: 'Northwind Logistics', href: null },
  ],
};

const scoredCard: ScoredCardRecord = {
  evaluationId: EXAMPLE_EVALUATION_ID,
  workspaceId: EXAMPLE_WORKSPACE_ID,
  scorecard: {
    name: SCORECARD_NAME,
    sections: [
      {
        name: 'Opening',
        criteria: [{ id: 'agenda', name: 'Sets an agenda', score: 4, comment: 'Agreed on three points at the start.' }],
      },
    ],
  },
  coachingPlan: {
    focusArea: {
      biggestImprovementOpportunity: 'Next steps stayed open.',
      recommendation: 'Close each call with a date and an owner.',
      tryThis: 'Offer two dates before the last five minutes.',
      questionSuggestions: ['Who else should see this before you decide?'],
    },
    strengths: [{ name: 'Listening', comment: 'Left room for the customer to finish.' }],
    areasForImprovement: [{ name: 'Next steps', comment: 'No date was agreed.' }],
  },
};

const page = { items: [evaluation], omitted: 0, total: 1 };

const ownKey = toCurrentKeyBody(
  {
    keyId: 'key_8sK2dQmV4xTz',
    name: 'nightly export',
    scopes: ['reports.read', 'calls.read'],
    workspaceIds: [EXAMPLE_WORKSPACE_ID],
    expiresAtMs: Date.UTC(2027, 0, 1),
  },
  {
    minute: { limit: 120, remaining: 117, emptyAtMicros: 1_772_600_827e6, nextFreeAtMicros: 1_772_600_781e6 },
    hour: { limit: 3000, remaining: 2875, emptyAtMicros: 1_772_604_367e6, nextFreeAtMicros: 1_772_601_669e6 },
  },
);

/** One example body per route, by the route's operationId. */
export const bodyExamples = {
  listReports: toReportsPage(page, 1),
  getReport: { report: toReport(evaluation) },
  getReportScorecard: toScoredCardView(scoredCard),
  getReportDealInsights: toDealInsightsBody({
    evaluationId: EXAMPLE_EVALUATION_ID,
    workspaceId: EXAMPLE_WORKSPACE_ID,
    permalink: `https://coaching.example/evaluations/${EXAMPLE_EVALUATION_ID}`,
    insights: { risk: 'medium', blockers: ['Security review is open'] },
  }),
  getReportTranscript: { transcript: TURNS.join('\n'), isFormatSupported: true } satisfies ReportTranscript,
  listCalls: toCallsPage(page, 1, 50),
  getCall: { call: toCall(evaluation) },
  getCallTranscript: toCallTranscript(
    {
      text: TURNS.join('\n'),
      segments: TURNS.map((text, index) => ({ index, text })),
      totalCount: TURNS.length,
      totalPages: 1,
      hasMore: false,
      truncated: false,
    },
    { page: 1, pageSize: 100 },
    true,
  ),
  getCallScorecard: toScoredCardView(scoredCard),
  getScorecardRubric: toRubricBody({
    _id: EXAMPLE_SCORECARD_ID,
    workspaceId: EXAMPLE_WORKSPACE_ID,
    name: SCORECARD_NAME,
    rubric: { sections: [{ title: 'Opening', weight: 0.25, levels: ['missing', 'partly', 'fully'] }] },
  }),
  listChanges: {
    changes: [
      { id: EXAMPLE_EVALUATION_ID, kind: 'call', change: 'updated', at: '2026-03-04T16:02:11.480Z' },
      { id: EXAMPLE_EVALUATION_ID, kind: 'scorecard', change: 'updated', at: '2026-03-04T16:02:11.480Z' },
    ],
    cursor: 'WyI4ZjBkIiwiUTJ4IiwiMiJd',
    has_more: false,
    unannounced: false,
  },
  getWorkspaceKey: ownKey,
  getCallsKey: ownKey,
} as const;
