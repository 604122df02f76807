import { describe, expect, test } from 'vitest';
import { callSchema, toCall, toCallBody } from '../../../src/domain/call.ts';
import { anEvaluation } from '../../support/records.ts';

const record = anEvaluation({
  _id: 'ev_1',
  title: 'Discovery',
  ownerUserId: 'owner',
  overallScore: 72.5,
  categoryScores: [{ key: 'discovery', label: 'Discovery', value: 80 }],
  scorecardRef: { id: 'sc_1', name: 'Scorecard' },
  createdAtMs: 1_772_600_767_089,
  durationSeconds: 90,
  source: 'zoom',
  evaluatee: {
    userId: 'rep',
    displayName: 'Riley Ortega',
    givenName: 'Riley',
    email: 'r@example.com',
    avatar: 'a.png',
  },
  people: [{ name: 'Riley Ortega', email: 'r@example.com', spoke: true, attended: true }],
  crmLinks: [
    { objectType: 'account', externalId: 'a1', label: 'Northwind', href: null },
    { objectType: 'deal', externalId: 'd1', label: 'Renewal', href: 'https://crm.example/d1' },
    { objectType: 'contact', externalId: 'c1', label: 'Jon', href: null },
    { objectType: 'lead', externalId: 'l1', label: 'Kim', href: null },
  ],
});

describe('toCall', () => {
  test('gives every field in the order of the specification, and nothing else', () => {
    expect(JSON.stringify(toCall(record))).toBe(
      JSON.stringify({
        id: 'ev_1',
        name: 'Discovery',
        owner_id: 'owner',
        score: 72.5,
        score_breakdown: { discovery: 80 },
        scorecard: 'Scorecard',
        scorecard_id: 'sc_1',
        created_at: '2026-03-04T05:06:07.089Z',
        duration_in_minutes: 1.5,
        source: 'zoom',
        evaluatee_user_id: 'rep',
        evaluatee_user_name: 'Riley Ortega',
        evaluatee_email: 'r@example.com',
        participants: ['Riley Ortega'],
        attendees: ['r@example.com'],
        crm_objects: [
          { id: 'a1', name: 'Northwind', url: null, type: 'account' },
          { id: 'd1', name: 'Renewal', url: 'https://crm.example/d1', type: 'deal' },
          { id: 'c1', name: 'Jon', url: null, type: 'contact' },
          { id: 'l1', name: 'Kim', url: null, type: 'lead' },
        ],
      }),
    );
  });

  test('Q8: every field is there where the store has nothing; those that may be null are', () => {
    const call = toCall(
      anEvaluation({
        scorecardRef: { id: null, name: '' },
        durationSeconds: null,
        source: null,
        evaluatee: { displayName: '', givenName: '', email: 'r@example.com' },
        people: [],
        crmLinks: [],
      }),
    );
    expect(Object.keys(call)).toEqual(Object.keys(toCall(record)));
    expect(call).toMatchObject({
      scorecard_id: null,
      duration_in_minutes: null,
      source: null,
      evaluatee_user_id: null,
      participants: [],
      attendees: [],
      crm_objects: [],
    });
    expect(callSchema.parse(call)).toEqual(call);
  });

  test('the body of a single call holds the call alone', () => {
    expect(toCallBody(record)).toStrictEqual({ call: toCall(record) });
  });
});
