import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { EVALUATION_STATES } from '../../../../src/domain/records.ts';
import { type Reply, startTestGateway } from '../../../support/gateway.ts';
import { anEvaluation } from '../../../support/records.ts';
import { keyFor, newSubject, putSubject, type Subject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

async function list(subject: Pick<Subject, 'workspaceId'>, query = ''): Promise<Reply> {
  const key = await keyFor(gateway, subject, { scopes: ['calls.read'] });
  return await gateway.get(`/v2/calls${query}`, { key });
}

/** The ids of the calls of a page, in order. */
function idsOf(reply: Reply): readonly string[] {
  return [...reply.text.matchAll(/\{"id":"([^"]+)","name":[^{]*"owner_id"/g)].map(([, id = '']) => id);
}

function lastQuestion(): URLSearchParams {
  return gateway.store.requests.at(-1)?.query ?? new URLSearchParams();
}

describe('the body', () => {
  test('holds every field of a rich record, in the order of the specification, and none of the internal members', async () => {
    const subject = newSubject();
    const { workspaceId, id } = subject;
    gateway.store.evaluations.set(id, { ...anEvaluation({ _id: id, workspaceId }), modelRun: 'internal' });
    const reply = await list(subject);
    expect(reply.status).toBe(200);
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(reply.text).toBe(
      JSON.stringify({
        calls: [
          {
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
        ],
        pagination: { page: 1, page_size: 50, total_count: 1, total_pages: 1 },
      }),
    );
  });

  test('Q8: a bare record has every field, null if it is not known', async () => {
    const subject = newSubject();
    const { workspaceId, id } = subject;
    const bare = anEvaluation({
      _id: id,
      workspaceId,
      categoryScores: [],
      scorecardRef: { id: null, name: 'Ad hoc' },
      durationSeconds: null,
      source: null,
      evaluatee: { displayName: 'Sam', givenName: 'Sam', email: 'sam@example.com' },
      shareLink: null,
      people: [],
      crmLinks: [],
    });
    gateway.store.put({ evaluations: [bare] });
    expect((await list(subject)).text).toBe(
      JSON.stringify({
        calls: [
          {
            id,
            name: 'Discovery call with Northwind',
            owner_id: 'user_owner',
            score: 72.5,
            score_breakdown: {},
            scorecard: 'Ad hoc',
            scorecard_id: null,
            created_at: '2026-03-04T05:06:07.089Z',
            duration_in_minutes: null,
            source: null,
            evaluatee_user_id: null,
            evaluatee_user_name: 'Sam',
            evaluatee_email: 'sam@example.com',
            participants: [],
            attendees: [],
            crm_objects: [],
          },
        ],
        pagination: { page: 1, page_size: 50, total_count: 1, total_pages: 1 },
      }),
    );
  });

  test('Q6: total_pages is 0 if there is nothing', async () => {
    expect((await list(newSubject())).text).toBe(
      '{"calls":[],"pagination":{"page":1,"page_size":50,"total_count":0,"total_pages":0}}',
    );
  });

  test.each([
    [1, 50, 1],
    [50, 50, 1],
    [51, 50, 2],
    [3, 1, 3],
  ])('Q6: %d calls in pages of %d are %d pages', async (total, pageSize, pages) => {
    const restore = gateway.store.override('/internal/v1/evaluations', (_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ items: [], total }));
    });
    const reply = await list(newSubject(), `?page=9&pageSize=${pageSize}`);
    restore();
    expect(reply.json).toMatchObject({ pagination: { page: 9, total_count: total, total_pages: pages } });
  });

  test('Q6: a page past the end is empty and has the true counts', async () => {
    const subject = putSubject(gateway.store);
    for (let more = 0; more < 4; more += 1) putSubject(gateway.store, newSubject(subject.workspaceId));
    expect((await list(subject, '?page=4&pageSize=2')).text).toBe(
      '{"calls":[],"pagination":{"page":4,"page_size":2,"total_count":5,"total_pages":3}}',
    );
  });
});

describe('which calls, in which order', () => {
  test('Q5: completed ones only', async () => {
    const { workspaceId } = newSubject();
    for (const state of EVALUATION_STATES) {
      putSubject(gateway.store, { ...newSubject(workspaceId), id: `${state}-${workspaceId}` }, { state });
    }
    const reply = await list({ workspaceId });
    expect(idsOf(reply)).toEqual([`COMPLETED-${workspaceId}`]);
    expect(reply.json).toMatchObject({ pagination: { total_count: 1 } });
  });

  test('Q6: pages so far past the end that they are one question to the store each have their own number', async () => {
    const subject = newSubject();
    for (const page of [999_999_998, 999_999_999]) {
      expect((await list(subject, `?page=${page}`)).json).toMatchObject({ pagination: { page } });
    }
  });

  test('Q5: newest first by created_at, then by id, descending, over all pages', async () => {
    const { workspaceId } = newSubject();
    const suffix = workspaceId.slice(0, 8);
    const times: readonly (readonly [string, number])[] = [
      ['b', 5000],
      ['a', 9000],
      ['d', 5000],
      ['c', 5000],
      ['e', 1000],
    ];
    for (const [letter, createdAtMs] of times) {
      gateway.store.put({ evaluations: [anEvaluation({ _id: `${letter}_${suffix}`, workspaceId, createdAtMs })] });
    }
    const queries = ['', '?pageSize=2', '?pageSize=2&page=2', '?pageSize=2&page=3'];
    const pages = await Promise.all(queries.map((query) => list({ workspaceId }, query)));
    const letters = pages.map((page) => idsOf(page).map((id) => id.charAt(0)));
    expect(letters).toEqual([['a', 'd', 'c', 'b', 'e'], ['a', 'd'], ['c', 'b'], ['e']]);
    expect(pages.map(({ json }) => json)).toMatchObject(
      [
        [1, 50, 1],
        [1, 2, 3],
        [2, 2, 3],
        [3, 2, 3],
      ].map(([page, page_size, total_pages]) => ({ pagination: { page, page_size, total_count: 5, total_pages } })),
    );
  });

  test('without workspaceId: those of all workspaces of the key, and of no other', async () => {
    const [one, two, three] = [putSubject(gateway.store), putSubject(gateway.store), putSubject(gateway.store)];
    const key = await keyFor(gateway, one, { workspaceIds: [two.workspaceId, one.workspaceId] });
    const reply = await gateway.get('/v2/calls', { key });
    expect(new Set(idsOf(reply))).toEqual(new Set([one.id, two.id]));
    expect(reply.text).not.toContain(three.id);
    expect(lastQuestion().getAll('workspaceId')).toEqual([one.workspaceId, two.workspaceId].toSorted());
  });

  test('with 50 workspaces: all of them are asked for', async () => {
    const workspaceIds = Array.from({ length: 50 }, () => randomUUID());
    const [first = ''] = workspaceIds;
    const subject = putSubject(gateway.store, newSubject(first));
    const key = await keyFor(gateway, subject, { workspaceIds });
    expect(idsOf(await gateway.get('/v2/calls', { key }))).toEqual([subject.id]);
    expect(lastQuestion().getAll('workspaceId')).toEqual(workspaceIds.toSorted());
  });

  test('K6: workspaceId narrows to one of them, whatever its case', async () => {
    const one = putSubject(gateway.store, newSubject('abcdef00-1234-4abc-8abc-aaaaaaaaaaaa'));
    const two = putSubject(gateway.store);
    const key = await keyFor(gateway, one, { workspaceIds: [one.workspaceId, two.workspaceId] });
    const narrow = await gateway.get(`/v2/calls?workspaceId=${one.workspaceId}`, { key });
    expect(idsOf(narrow)).toEqual([one.id]);
    expect(lastQuestion().getAll('workspaceId')).toEqual([one.workspaceId]);
    const upper = await gateway.get(`/v2/calls?workspaceId=${one.workspaceId.toUpperCase()}`, { key });
    expect(upper.text).toBe(narrow.text);
  });
});

describe('the query', () => {
  test.each([
    // query, offset, page size, page
    ['', 0, 50, 1],
    ['?page=1', 0, 50, 1],
    ['?page=2', 50, 50, 2],
    ['?page=007', 300, 50, 7],
    ['?page=999999999', 2_147_483_647, 50, 999_999_999],
    ['?pageSize=1', 0, 1, 1],
    ['?pageSize=100', 0, 100, 1],
    ['?page=3&pageSize=7', 14, 7, 3],
  ])('Q3: %s asks the store from %i on for %i', async (query, offset, pageSize, page) => {
    const { text } = await list(newSubject(), query);
    expect(text).toBe(
      `{"calls":[],"pagination":{"page":${page},"page_size":${pageSize},"total_count":0,"total_pages":0}}`,
    );
    const { workspaceId: _workspaceId, ...asked } = Object.fromEntries(lastQuestion());
    expect(asked).toEqual({ state: 'COMPLETED', offset: String(offset), limit: String(pageSize) });
  });

  test.each([
    ['call name', { title: 'Zebra crossing' }],
    ['evaluatee', { evaluatee: { displayName: 'Zebra Jones', givenName: 'Zebra', email: 'z@example.com' } }],
    ['attendee e-mail', { people: [{ name: null, email: 'zebra@example.com', spoke: false, attended: true }] }],
    ['CRM deal name', { crmLinks: [{ objectType: 'deal' as const, externalId: 'd', label: 'Zebra Ltd', href: null }] }],
  ])('search finds by %s', async (_field, different) => {
    const subject = putSubject(gateway.store, newSubject(), different);
    putSubject(gateway.store, newSubject(subject.workspaceId));
    const reply = await list(subject, '?search=zEBRA');
    expect(idsOf(reply)).toEqual([subject.id]);
    expect(reply.json).toMatchObject({ pagination: { total_count: 1 } });
  });

  test.each([
    ['one letter', 'a'],
    ['200 letters', 'a'.repeat(200)],
    ['200 characters of 4 bytes each', '😀'.repeat(200)],
    ['one space', ' '],
  ])('Q1, Q3: search may hold %s', async (_what, text) => {
    const reply = await list(newSubject(), `?search=${encodeURIComponent(text)}`);
    expect(reply.status).toBe(200);
    expect(lastQuestion().get('q')).toBe(text);
  });

  test.each([
    ['one letter', 'a'],
    ['64 characters', 'A-_9'.repeat(16)],
    ['a UUID', randomUUID()],
  ])('Q3: scorecardId may be any id: %s', async (_what, scorecardId) => {
    const subject = putSubject(gateway.store, newSubject(), { scorecardRef: { id: scorecardId, name: 'It' } });
    putSubject(gateway.store, newSubject(subject.workspaceId));
    const reply = await list(subject, `?scorecardId=${scorecardId}`);
    expect(idsOf(reply)).toEqual([subject.id]);
    expect(lastQuestion().get('scorecardId')).toBe(scorecardId);
  });
});

test('K6: one address asks for each key its own workspaces, in whatever order keys come, more of them than are remembered', async () => {
  const subjects = Array.from({ length: 12 }, () => newSubject());
  const ids = subjects.map(({ workspaceId, id }) => {
    gateway.store.evaluations.set(id, anEvaluation({ _id: id, workspaceId }));
    return id;
  });
  const keys = await Promise.all(subjects.map((subject) => keyFor(gateway, subject, { scopes: ['calls.read'] })));
  for (let turn = 0; turn < 60; turn += 1) {
    const which = (turn * 7 + Math.floor(turn / 5)) % keys.length;
    const reply = await gateway.get('/v2/calls?pageSize=3', { key: keys[which] ?? '' });
    expect(idsOf(reply)).toEqual([ids[which]]);
  }
});
