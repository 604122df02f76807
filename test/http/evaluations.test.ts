/** How evaluations become reports of v1 and calls of v2, alone and in lists. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { EvaluationRecord } from '../../src/domain/records.ts';
import { EVALUATION_STATES } from '../../src/domain/vocabulary.ts';
import { startTestGateway } from '../support/gateway.ts';
import { forFile } from '../support/opened.ts';
import { anEvaluation, CREATED_AT_MS } from '../support/records.ts';
import { GET_CALL, GET_REPORT, LIST_CALLS, LIST_REPORTS } from './common/endpoints.ts';
import { uncountedHeaders } from './common/headers.ts';
import { newSubject, putSubject, readerOf } from './common/subject.ts';

const gateway = await forFile(startTestGateway());

/** In the order of the specification, and nothing else. */
const RICH = {
  name: 'Discovery call with Northwind',
  owner_id: 'user_owner',
  score: 72.5,
  score_breakdown: { discovery: 80 },
  scorecard: 'Discovery scorecard',
  scorecard_id: 'sc_1',
  created_at: '2026-03-04T05:06:07.089Z',
  duration_in_minutes: 30.57,
  source: 'zoom',
};
const RICH_PEOPLE = {
  participants: ['Riley Ortega'],
  attendees: ['riley.ortega@example.com', 'buyer@northwind.example'],
};
const DEAL = { id: 'deal_1', name: 'Northwind renewal', url: 'https://crm.example.com/deal_1' };
const RICH_REPORT = {
  ...RICH,
  status: 'completed',
  evaluatee_user: {
    name: 'Riley Ortega',
    first_name: 'Riley',
    email: 'riley.ortega@example.com',
    id: 'user_rep',
    avatar_url: 'https://example.com/riley.png',
  },
  share: { id: 'share_1', deactivated_at: '2026-03-04T05:06:08.089Z' },
  ...RICH_PEOPLE,
  crm_deals: [DEAL],
};
const RICH_CALL = {
  ...RICH,
  evaluatee_user_id: 'user_rep',
  evaluatee_user_name: 'Riley Ortega',
  evaluatee_email: 'riley.ortega@example.com',
  ...RICH_PEOPLE,
  crm_objects: [
    { ...DEAL, type: 'deal' },
    { id: 'acc_1', name: 'Northwind', url: null, type: 'account' },
  ],
};

const BARE_RECORD: Partial<EvaluationRecord> = {
  overallScore: 0,
  categoryScores: [{ key: 'discovery', label: 'Discovery', value: null }],
  scorecardRef: { id: null, name: '' },
  durationSeconds: null,
  source: null,
  evaluatee: { displayName: 'Sam', givenName: '', email: 'sam@example.com' },
  people: [],
  crmLinks: [],
};
const BARE = {
  ...RICH,
  score: 0,
  score_breakdown: {},
  scorecard: '',
  scorecard_id: null,
  duration_in_minutes: null,
  source: null,
};
const BARE_REPORT = {
  ...BARE,
  status: 'completed',
  evaluatee_user: { name: 'Sam', first_name: '', email: 'sam@example.com' },
  participants: [],
  attendees: [],
  crm_deals: [],
};
const BARE_CALL = {
  ...BARE,
  evaluatee_user_id: null,
  evaluatee_user_name: 'Sam',
  evaluatee_email: 'sam@example.com',
  participants: [],
  attendees: [],
  crm_objects: [],
};

const REPORT = { rich: RICH_REPORT, bare: BARE_REPORT };
const CALL = { rich: RICH_CALL, bare: BARE_CALL };
const ONE_PAGE = { page: 1, page_size: 50, total_count: 1, total_pages: 1 };
const FORMS = [
  { ...GET_REPORT, form: REPORT, bodyOf: (report: object) => ({ report }) },
  { ...LIST_REPORTS, form: REPORT, bodyOf: (report: object) => ({ reports: [report], page: 1, total_count: 1 }) },
  { ...GET_CALL, form: CALL, bodyOf: (call: object) => ({ call }) },
  { ...LIST_CALLS, form: CALL, bodyOf: (call: object) => ({ calls: [call], pagination: ONE_PAGE }) },
];

describe.each(FORMS)('$name', ({ form, bodyOf, ...endpoint }) => {
  test('a rich record: every field in the order of the specification, and none of the internal members', async () => {
    const { subject, ask } = await readerOf(gateway, endpoint, { scopes: [endpoint.scope] });
    const rich = anEvaluation({ _id: subject.id, workspaceId: subject.workspaceId });
    gateway.store.evaluations.set(subject.id, {
      ...rich,
      modelRun: 'internal',
      costCents: 12,
      evaluatee: { ...rich.evaluatee, internalFlags: ['internal'] },
      shareLink: { id: 'share_1', deactivatedAtMs: CREATED_AT_MS + 1000, reviewerNotes: 'internal' },
    });
    const reply = await ask();
    expect([reply.status, reply.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(reply.headers['content-length']).toBe(String(reply.bytes.length));
    expect(reply.text).toBe(JSON.stringify(bodyOf({ id: subject.id, ...form.rich })));
  });

  test.each([
    ['null', { shareLink: null }],
    ['left out', {}],
  ])('Q8: a bare record has its nulls and its empty arrays; what is optional and %s is left out', async (_, more) => {
    const { subject, ask } = await readerOf(gateway, endpoint, { subject: newSubject() });
    const { shareLink: _shareLink, ...bare } = anEvaluation({
      _id: subject.id,
      workspaceId: subject.workspaceId,
      ...BARE_RECORD,
    });
    gateway.store.evaluations.set(subject.id, { ...bare, ...more });
    expect((await ask()).text).toBe(JSON.stringify(bodyOf({ id: subject.id, ...form.bare })));
  });
});

const record = z.record(z.string(), z.unknown());

describe.each([
  { endpoint: GET_REPORT, member: 'report' },
  { endpoint: GET_CALL, member: 'call' },
] as const)('the fields of $member', ({ endpoint, member }) => {
  /** The public form of an evaluation that differs so, and its text. */
  async function shown(evaluation: Partial<EvaluationRecord>) {
    const subject = putSubject(gateway.store, newSubject(), evaluation);
    const reply = await (await readerOf(gateway, endpoint, { subject })).ask();
    expect(reply.status).toBe(200);
    return { text: reply.text, fields: record.parse(record.parse(reply.json)[member]) };
  }

  test.each([
    [0, '0'],
    [60, '1'],
    [1, '0.02'],
    [0.29, '0'],
    [0.3, '0.01'],
    [90, '1.5'],
    [100, '1.67'],
    [1834, '30.57'],
    [-0.1, '0'],
    [-60, '-1'],
    [60e20, '100000000000000000000'],
  ])('%d seconds are %s minutes', async (durationSeconds, minutes) => {
    expect((await shown({ durationSeconds })).text).toContain(`"duration_in_minutes":${minutes},`);
  });

  test.each([
    [0, '1970-01-01T00:00:00.000Z'],
    [-62_167_219_200_000, '0000-01-01T00:00:00.000Z'],
    [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
  ])('%d is %s', async (createdAtMs, timestamp) => {
    expect((await shown({ createdAtMs })).fields['created_at']).toBe(timestamp);
  });

  test('participants are those who spoke, by name, attendees those who attended, by e-mail address; each else by the other', async () => {
    const people = [
      { name: 'Ann', email: 'ann@example.com', spoke: true, attended: true },
      { name: null, email: 'bob@example.com', spoke: true, attended: true },
      { name: 'Cy', email: null, spoke: true, attended: true },
      { name: null, email: null, spoke: true, attended: true },
      { name: '', email: 'dee@example.com', spoke: true, attended: false },
      { name: 'Eve', email: ' ', spoke: false, attended: true },
      { name: 'Fay', email: 'fay@example.com', spoke: false, attended: false },
    ];
    const { fields } = await shown({ people });
    expect(fields['participants']).toEqual(['Ann', 'bob@example.com', 'Cy', 'dee@example.com']);
    expect(fields['attendees']).toEqual(['ann@example.com', 'bob@example.com', 'Cy', 'Eve']);
  });

  test.each<[what: string, scores: readonly (readonly [string, number | null])[], expected: string]>([
    [
      'null is left out, zero is not',
      [
        ['a', null],
        ['b', 0],
        ['c', 1.5],
      ],
      '{"b":0,"c":1.5}',
    ],
    [
      'of one key the last counts, and null undoes none',
      [
        ['a', 1],
        ['a', 2],
        ['a', null],
      ],
      '{"a":2}',
    ],
    [
      'names of prototypes are keys',
      [
        ['__proto__', 3],
        ['constructor', 4],
      ],
      '{"__proto__":3,"constructor":4}',
    ],
  ])('scores by category: %s', async (_what, scores, expected) => {
    const categoryScores = scores.map(([key, value]) => ({ key, label: key, value }));
    expect((await shown({ categoryScores })).text).toContain(`"score_breakdown":${expected},`);
  });

  test('CRM: a report shows the deals, a call all objects with their type', async () => {
    const crmLinks = (['account', 'deal', 'contact', 'lead', 'deal'] as const).map((objectType, i) => ({
      objectType,
      externalId: `x${i}`,
      label: `L${i}`,
      href: i === 1 ? 'https://crm.example/x1' : null,
    }));
    const { fields } = await shown({ crmLinks });
    const objects = crmLinks.map(({ objectType, externalId, label, href }) => ({
      id: externalId,
      name: label,
      url: href,
      type: objectType,
    }));
    const deals = objects.filter(({ type }) => type === 'deal').map(({ type: _type, ...deal }) => deal);
    expect(fields['crm_deals'] ?? fields['crm_objects']).toEqual(member === 'report' ? deals : objects);
  });
});

const PERSON = { displayName: 'R', givenName: '', email: 'r@example.com' };
const TOLD = { name: 'R', first_name: '', email: 'r@example.com' };

test.each([
  ['no id and no picture', PERSON, TOLD],
  ['an id that is null', { ...PERSON, userId: null }, TOLD],
  ['a picture that is null', { ...PERSON, avatar: null }, { ...TOLD, avatar_url: null }],
])('Q8: the person of a report with %s', async (_what, evaluatee, expected) => {
  const subject = putSubject(gateway.store, newSubject(), { evaluatee });
  const { json } = await (await readerOf(gateway, GET_REPORT, { subject })).ask();
  expect(record.parse(record.parse(json)['report'])['evaluatee_user']).toStrictEqual(expected);
});

test.each(EVALUATION_STATES)('Q5, K7: if its state is %s a report says so, and a call is as none', async (state) => {
  const subject = putSubject(gateway.store, newSubject(), { state });
  const report = await (await readerOf(gateway, GET_REPORT, { subject })).ask();
  expect([report.status, report.json]).toMatchObject([200, { report: { status: state.toLowerCase() } }]);
  const { ask, key } = await readerOf(gateway, GET_CALL, { subject });
  const [call, none] = [await ask(), await gateway.get(GET_CALL.path(newSubject()), { key })];
  const isShown = state === 'COMPLETED';
  expect([call.status, none.status]).toEqual([isShown ? 200 : 404, 404]);
  expect(isShown || call.text === none.text).toBe(true);
  const comparable = isShown ? none : call;
  expect(uncountedHeaders(comparable)).toEqual(uncountedHeaders(none));
});

test('K5: the case of the workspace in the path does not matter', async () => {
  const subject = putSubject(gateway.store, newSubject('abcdef00-1234-4abc-8abc-abcdefabcdef'));
  const { ask, key } = await readerOf(gateway, GET_REPORT, { subject });
  const upper = GET_REPORT.path({ ...subject, workspaceId: subject.workspaceId.toUpperCase() });
  const replies = [await ask(), await gateway.get(upper, { key })];
  expect(replies.map(({ status }) => status)).toEqual([200, 200]);
  expect(replies[1]?.text).toBe(replies[0]?.text);
});
