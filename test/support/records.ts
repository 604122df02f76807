/** Valid records of the upstream store, each with whatever a test wants to be different about it. */
import type {
  DealInsightsRecord,
  EvaluationRecord,
  ScorecardRecord,
  ScoredCardRecord,
  TranscriptRecord,
} from '../../src/domain/records.ts';

export const WORKSPACE_A = '11111111-1111-4111-8111-111111111111';
export const WORKSPACE_B = '22222222-2222-4222-8222-222222222222';
export const EVALUATION_ID = 'ev_1';
export const SCORECARD_ID = 'sc_1';
/** 2026-03-04T05:06:07.089Z */
export const CREATED_AT_MS = 1_772_600_767_089;

/** A completed evaluation with every optional member present. */
export function anEvaluation(overrides: Partial<EvaluationRecord> = {}): EvaluationRecord {
  return {
    _id: EVALUATION_ID,
    workspaceId: WORKSPACE_A,
    title: 'Discovery call with Northwind',
    ownerUserId: 'user_owner',
    state: 'COMPLETED',
    overallScore: 72.5,
    categoryScores: [
      { key: 'discovery', label: 'Discovery', value: 80 },
      { key: 'closing', label: 'Closing', value: null },
    ],
    scorecardRef: { id: SCORECARD_ID, name: 'Discovery scorecard' },
    createdAtMs: CREATED_AT_MS,
    durationSeconds: 1834,
    source: 'zoom',
    evaluatee: {
      userId: 'user_rep',
      displayName: 'Riley Ortega',
      givenName: 'Riley',
      email: 'riley.ortega@example.com',
      avatar: 'https://example.com/riley.png',
    },
    shareLink: { id: 'share_1', deactivatedAtMs: null },
    people: [
      { name: 'Riley Ortega', email: 'riley.ortega@example.com', spoke: true, attended: true },
      { name: null, email: 'buyer@northwind.example', spoke: false, attended: true },
    ],
    crmLinks: [
      { objectType: 'deal', externalId: 'deal_1', label: 'Northwind renewal', href: 'https://crm.example.com/deal_1' },
      { objectType: 'account', externalId: 'acc_1', label: 'Northwind', href: null },
    ],
    ...overrides,
  };
}

export function aTranscript(overrides: Partial<TranscriptRecord> = {}): TranscriptRecord {
  return {
    evaluationId: EVALUATION_ID,
    workspaceId: WORKSPACE_A,
    format: 'speaker_text',
    body: '[00:00:01] Riley: Hello, thanks for joining.\n[00:00:04] Sam: Happy to be here.',
    ...overrides,
  };
}

export function aScoredCard(overrides: Partial<ScoredCardRecord> = {}): ScoredCardRecord {
  return {
    evaluationId: EVALUATION_ID,
    workspaceId: WORKSPACE_A,
    scorecard: {
      name: 'Discovery scorecard',
      sections: [
        {
          name: 'Opening',
          criteria: [
            { id: 'c1', name: 'Sets an agenda', score: 4, comment: 'Clear from the start.' },
            { id: 'c2', name: 'Confirms the time', score: 'n/a', comment: null },
          ],
        },
      ],
    },
    coachingPlan: {
      focusArea: {
        biggestImprovementOpportunity: 'Ask before pitching',
        recommendation: 'Leave two questions unanswered before showing a slide.',
        tryThis: 'Ask what happens if nothing changes.',
        questionSuggestions: ['What would a good quarter look like?'],
      },
      strengths: [{ name: 'Rapport', comment: 'Warm and brief.' }],
      areasForImprovement: [{ name: 'Next steps', comment: 'None was agreed.' }],
    },
    ...overrides,
  };
}

export function dealInsights(overrides: Partial<DealInsightsRecord> = {}): DealInsightsRecord {
  return {
    evaluationId: EVALUATION_ID,
    workspaceId: WORKSPACE_A,
    permalink: 'https://app.example.com/evaluations/ev_1',
    insights: { risk: 'medium', blockers: [{ topic: 'budget', weight: 0.4 }] },
    ...overrides,
  };
}

export function aScorecard(overrides: Partial<ScorecardRecord> = {}): ScorecardRecord {
  return {
    _id: SCORECARD_ID,
    workspaceId: WORKSPACE_A,
    name: 'Discovery scorecard',
    rubric: { sections: [{ title: 'Opening', weight: 0.25 }] },
    ...overrides,
  };
}
