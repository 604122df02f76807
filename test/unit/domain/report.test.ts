import { describe, expect, test } from 'vitest';
import { EVALUATION_STATES, type EvaluationRecord } from '../../../src/domain/records.ts';
import { reportSchema, toReport, toReportBody } from '../../../src/domain/report.ts';
import { anEvaluation } from '../../support/records.ts';

/** A record with every optional member there. */
const record: EvaluationRecord = {
  _id: 'ev_1',
  workspaceId: '11111111-1111-4111-8111-111111111111',
  title: 'Discovery',
  ownerUserId: 'owner',
  state: 'COMPLETED',
  overallScore: 72.5,
  categoryScores: [
    { key: 'discovery', label: 'Discovery', value: 80 },
    { key: 'closing', label: 'Closing', value: null },
    { key: 'rapport', label: 'Rapport', value: 0 },
  ],
  scorecardRef: { id: 'sc_1', name: 'Scorecard' },
  createdAtMs: 1_772_600_767_089,
  durationSeconds: 1834,
  source: 'zoom',
  evaluatee: {
    userId: 'rep',
    displayName: 'Riley Ortega',
    givenName: 'Riley',
    email: 'r@example.com',
    avatar: 'a.png',
  },
  shareLink: { id: 'share_1', deactivatedAtMs: 1_772_600_767_000 },
  people: [{ name: 'Riley Ortega', email: 'r@example.com', spoke: true, attended: true }],
  crmLinks: [
    { objectType: 'deal', externalId: 'd1', label: 'Renewal', href: 'https://crm.example/d1' },
    { objectType: 'account', externalId: 'a1', label: 'Northwind', href: null },
    { objectType: 'deal', externalId: 'd2', label: 'Upsell', href: null },
  ],
};

describe('toReport', () => {
  test('gives every field in the order of the specification, and nothing else', () => {
    expect(JSON.stringify(toReport(record))).toBe(
      JSON.stringify({
        id: 'ev_1',
        name: 'Discovery',
        owner_id: 'owner',
        score: 72.5,
        score_breakdown: { discovery: 80, rapport: 0 },
        scorecard: 'Scorecard',
        scorecard_id: 'sc_1',
        created_at: '2026-03-04T05:06:07.089Z',
        duration_in_minutes: 30.57,
        source: 'zoom',
        status: 'completed',
        evaluatee_user: {
          name: 'Riley Ortega',
          first_name: 'Riley',
          email: 'r@example.com',
          id: 'rep',
          avatar_url: 'a.png',
        },
        share: { id: 'share_1', deactivated_at: '2026-03-04T05:06:07.000Z' },
        participants: ['Riley Ortega'],
        attendees: ['r@example.com'],
        crm_deals: [
          { id: 'd1', name: 'Renewal', url: 'https://crm.example/d1' },
          { id: 'd2', name: 'Upsell', url: null },
        ],
      }),
    );
  });

  test('Q8: participants, attendees and crm_deals are there when empty; share, id and avatar_url are not there without a value', () => {
    const bare = anEvaluation({
      scorecardRef: { id: null, name: '' },
      durationSeconds: null,
      source: null,
      evaluatee: { displayName: 'R', givenName: '', email: 'r@example.com' },
      shareLink: null,
      people: [],
      crmLinks: [],
      categoryScores: [],
    });
    const report = toReport(bare);
    expect(report).toMatchObject({
      score_breakdown: {},
      scorecard_id: null,
      duration_in_minutes: null,
      source: null,
      participants: [],
      attendees: [],
      crm_deals: [],
    });
    expect('share' in report).toBe(false);
    expect(report.evaluatee_user).toStrictEqual({ name: 'R', first_name: '', email: 'r@example.com' });
    expect(reportSchema.parse(report)).toEqual(report);
  });

  test('share is left out where the store leaves it out', () => {
    const { shareLink: _, ...unshared } = record;
    expect('share' in toReport(unshared)).toBe(false);
  });

  test('a share that is active has deactivated_at null', () => {
    const report = toReport(anEvaluation({ shareLink: { id: 's', deactivatedAtMs: null } }));
    expect(report.share).toStrictEqual({ id: 's', deactivated_at: null });
  });

  test('an avatar that is null is null', () => {
    const report = toReport(
      anEvaluation({ evaluatee: { displayName: 'R', givenName: 'R', email: 'r@example.com', avatar: null } }),
    );
    expect(report.evaluatee_user).toStrictEqual({
      name: 'R',
      first_name: 'R',
      email: 'r@example.com',
      avatar_url: null,
    });
  });

  test('Q5: every state is shown, in lower case', () => {
    expect(EVALUATION_STATES.map((state) => toReport(anEvaluation({ state })).status)).toEqual([
      'queued',
      'transcribing',
      'scoring',
      'completed',
      'failed',
    ]);
  });

  test('the body of a single report holds the report alone', () => {
    expect(toReportBody(record)).toStrictEqual({ report: toReport(record) });
  });
});

describe('reportSchema', () => {
  const report = toReport(record);
  test.each([
    ['a member that is not listed', { ...report, costCents: 4 }],
    ['a status in upper case', { ...report, status: 'COMPLETED' }],
    ['an e-mail address that is none', { ...report, evaluatee_user: { ...report.evaluatee_user, email: 'nobody' } }],
    ['a time without milliseconds', { ...report, created_at: '2026-03-04T05:06:07Z' }],
    ['a category without a score', { ...report, score_breakdown: { closing: null } }],
  ])('refuses %s', (_, value) => {
    expect(reportSchema.safeParse(value).success).toBe(false);
  });
});
