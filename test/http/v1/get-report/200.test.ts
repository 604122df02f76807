import { expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { startTestGateway } from '../../../support/gateway.ts';
import { anEvaluation } from '../../../support/records.ts';
import { GET_REPORT } from '../../common/endpoints.ts';
import { keyFor, newSubject, putSubject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

test('a rich record: every field in the order of the specification, and nothing else', async () => {
  const subject = newSubject();
  const { id, workspaceId } = subject;
  gateway.store.evaluations.set(id, {
    ...anEvaluation({ _id: id, workspaceId }),
    reviewerNotes: 'internal',
    internalFlags: ['internal'],
  });
  const key = await keyFor(gateway, subject, { scopes: ['reports.read'] });
  const reply = await gateway.get(GET_REPORT.path(subject), { key });
  expect(reply.status).toBe(200);
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(reply.headers['content-length']).toBe(String(reply.bytes.length));
  expect(reply.text).toBe(
    JSON.stringify({
      report: {
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
        status: 'completed',
        evaluatee_user: {
          name: 'Riley Ortega',
          first_name: 'Riley',
          email: 'riley.ortega@example.com',
          id: 'user_rep',
          avatar_url: 'https://example.com/riley.png',
        },
        share: { id: 'share_1', deactivated_at: null },
        participants: ['Riley Ortega'],
        attendees: ['riley.ortega@example.com', 'buyer@northwind.example'],
        crm_deals: [{ id: 'deal_1', name: 'Northwind renewal', url: 'https://crm.example.com/deal_1' }],
      },
    }),
  );
});

test('Q8: a bare record: allowed nulls, share left out, the arrays there', async () => {
  const subject = newSubject();
  const { id, workspaceId } = subject;
  const { shareLink: _shareLink, ...record } = anEvaluation({
    _id: id,
    workspaceId,
    overallScore: 0,
    categoryScores: [{ key: 'discovery', label: 'Discovery', value: null }],
    scorecardRef: { id: null, name: 'Ad hoc' },
    durationSeconds: null,
    source: null,
    evaluatee: { displayName: 'Sam', givenName: 'Sam', email: 'sam@example.com', avatar: null },
    people: [],
    crmLinks: [],
  });
  gateway.store.evaluations.set(id, record);
  const reply = await gateway.get(GET_REPORT.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.text).toBe(
    JSON.stringify({
      report: {
        id,
        name: 'Discovery call with Northwind',
        owner_id: 'user_owner',
        score: 0,
        score_breakdown: {},
        scorecard: 'Ad hoc',
        scorecard_id: null,
        created_at: '2026-03-04T05:06:07.089Z',
        duration_in_minutes: null,
        source: null,
        status: 'completed',
        evaluatee_user: { name: 'Sam', first_name: 'Sam', email: 'sam@example.com', avatar_url: null },
        participants: [],
        attendees: [],
        crm_deals: [],
      },
    }),
  );
});

test.each([
  ['QUEUED', 'queued'],
  ['TRANSCRIBING', 'transcribing'],
  ['SCORING', 'scoring'],
  ['COMPLETED', 'completed'],
  ['FAILED', 'failed'],
] as const)('Q5: a report whose state is %s is shown as %s', async (state, status) => {
  const subject = putSubject(gateway.store, newSubject(), { state });
  const reply = await gateway.get(GET_REPORT.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.status).toBe(200);
  expect(reply.json).toMatchObject({ report: { id: subject.id, status } });
});

test('K5: the case of the workspace in the path does not matter', async () => {
  const subject = putSubject(gateway.store, newSubject('abcdef00-1234-4abc-8abc-abcdefabcdef'));
  const key = await keyFor(gateway, subject);
  const upper = { ...subject, workspaceId: subject.workspaceId.toUpperCase() };
  const replies = [
    await gateway.get(GET_REPORT.path(subject), { key }),
    await gateway.get(GET_REPORT.path(upper), { key }),
  ];
  expect(replies.map(({ status }) => status)).toEqual([200, 200]);
  expect(replies[1]?.text).toBe(replies[0]?.text);
});

test('Q2: unknown query parameters are ignored', async () => {
  const subject = putSubject(gateway.store);
  const reply = await gateway.get(`${GET_REPORT.path(subject)}?page=x&raw&__proto__=1`, {
    key: await keyFor(gateway, subject),
  });
  expect(reply.status).toBe(200);
});
