import { expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { EVALUATION_STATES } from '../../../../src/domain/records.ts';
import { startTestGateway } from '../../../support/gateway.ts';
import { anEvaluation } from '../../../support/records.ts';
import { GET_CALL } from '../../common/endpoints.ts';
import { uncountedHeaders } from '../../common/headers.ts';
import { keyFor, newSubject, putSubject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

test('a rich record: every field in the order of the specification, and nothing else', async () => {
  const subject = newSubject();
  const { id, workspaceId } = subject;
  gateway.store.evaluations.set(id, { ...anEvaluation({ _id: id, workspaceId }), costCents: 1 });
  const key = await keyFor(gateway, subject, { scopes: ['calls.read'] });
  const reply = await gateway.get(GET_CALL.path(subject), { key });
  expect(reply.status).toBe(200);
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(reply.text).toBe(
    JSON.stringify({
      call: {
        id,
        name: 'Discovery call with Northwind',
        owner_id: 'user_owner',
        score: 72.5,
        score_breakdown: { discovery: 80 },
        scorecard: 'Discovery scorecard',
        scorecard_id: 'sc_1',
        created_at: '2026-03-04T05:06:07.089Z',
        duration_in_minutes: 30.57,
        source: 'zoom',
        evaluatee_user_id: 'user_rep',
        evaluatee_user_name: 'Riley Ortega',
        evaluatee_email: 'riley.ortega@example.com',
        participants: ['Riley Ortega'],
        attendees: ['riley.ortega@example.com', 'buyer@northwind.example'],
        crm_objects: [
          { id: 'deal_1', name: 'Northwind renewal', url: 'https://crm.example.com/deal_1', type: 'deal' },
          { id: 'acc_1', name: 'Northwind', url: null, type: 'account' },
        ],
      },
    }),
  );
});

test('Q8: a bare record has every field, null if it is not known', async () => {
  const subject = newSubject();
  const { id, workspaceId } = subject;
  const { shareLink: _shareLink, ...bare } = anEvaluation({
    _id: id,
    workspaceId,
    overallScore: 0,
    categoryScores: [],
    scorecardRef: { id: null, name: '' },
    durationSeconds: null,
    source: null,
    evaluatee: { displayName: 'Sam', givenName: 'Sam', email: 'sam@example.com' },
    people: [],
    crmLinks: [{ objectType: 'contact', externalId: 'c_1', label: '', href: null }],
  });
  gateway.store.evaluations.set(id, bare);
  const reply = await gateway.get(GET_CALL.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.text).toBe(
    JSON.stringify({
      call: {
        id,
        name: 'Discovery call with Northwind',
        owner_id: 'user_owner',
        score: 0,
        score_breakdown: {},
        scorecard: '',
        scorecard_id: null,
        created_at: '2026-03-04T05:06:07.089Z',
        duration_in_minutes: null,
        source: null,
        evaluatee_user_id: null,
        evaluatee_user_name: 'Sam',
        evaluatee_email: 'sam@example.com',
        participants: [],
        attendees: [],
        crm_objects: [{ id: 'c_1', name: '', url: null, type: 'contact' }],
      },
    }),
  );
});

test.each(EVALUATION_STATES.filter((state) => state !== 'COMPLETED'))(
  'Q5, K7: a call whose state is %s answers exactly as one that does not exist',
  async (state) => {
    const subject = putSubject(gateway.store, newSubject(), { state });
    const key = await keyFor(gateway, subject);
    const [open, none] = [
      await gateway.get(GET_CALL.path(subject), { key }),
      await gateway.get(GET_CALL.path(newSubject()), { key }),
    ];
    expect(open.status).toBe(404);
    expect(open.text).toBe(GET_CALL.notFound);
    expect([none.status, none.text]).toEqual([open.status, open.text]);
    expect(uncountedHeaders(none)).toEqual(uncountedHeaders(open));
  },
);
