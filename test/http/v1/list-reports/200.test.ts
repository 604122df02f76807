import { describe, expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { EVALUATION_STATES } from '../../../../src/domain/records.ts';
import { type Reply, startTestGateway } from '../../../support/gateway.ts';
import { anEvaluation, CREATED_AT_MS } from '../../../support/records.ts';
import { LIST_REPORTS } from '../../common/endpoints.ts';
import { keyFor, newSubject, putSubject, type Subject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

async function list(subject: Subject, query = ''): Promise<Reply> {
  const key = await keyFor(gateway, subject, { scopes: ['reports.read'] });
  return await gateway.get(`${LIST_REPORTS.path(subject)}${query}`, { key });
}

/** The ids of the reports of a page, in order. */
function idsOf(reply: Reply): readonly string[] {
  return [...reply.text.matchAll(/\{"id":"([^"]+)","name":[^{]*"owner_id"/g)].map(([, id = '']) => id);
}

/** The last request to the store, without the workspace. */
function lastQuestion(): Record<string, string> {
  const { workspaceId: _workspaceId, ...asked } = Object.fromEntries(gateway.store.requests.at(-1)?.query ?? []);
  return asked;
}

describe('the body', () => {
  test('holds every field of a rich record, in the order of the specification, and none of the internal members', async () => {
    const subject = newSubject();
    const { workspaceId, id } = subject;
    const rich = anEvaluation({
      _id: id,
      workspaceId,
      shareLink: { id: 'share_1', deactivatedAtMs: CREATED_AT_MS + 1000 },
    });
    gateway.store.evaluations.set(id, {
      ...rich,
      modelRun: 'internal-1',
      costCents: 12,
      evaluatee: { ...rich.evaluatee, internalFlags: ['internal-2'] },
      shareLink: { ...rich.shareLink, reviewerNotes: 'internal-3' },
    });
    const reply = await list(subject);
    expect(reply.status).toBe(200);
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(reply.text).toBe(
      JSON.stringify({
        reports: [
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
            status: 'completed',
            evaluatee_user: {
              name: 'Riley Ortega',
              first_name: 'Riley',
              email: 'riley.ortega@example.com',
              id: 'user_rep',
              avatar_url: 'https://example.com/riley.png',
            },
            share: { id: 'share_1', deactivated_at: '2026-03-04T05:06:08.089Z' },
            participants: ['Riley Ortega'],
            attendees: ['riley.ortega@example.com', 'buyer@northwind.example'],
            crm_deals: [{ id: 'deal_1', name: 'Northwind renewal', url: 'https://crm.example.com/deal_1' }],
          },
        ],
        page: 1,
        total_count: 1,
      }),
    );
  });

  test('Q8: a bare record has its nulls and its empty arrays; what is optional and unknown is left out', async () => {
    const subject = newSubject();
    const { workspaceId, id } = subject;
    const bare = anEvaluation({
      _id: id,
      workspaceId,
      categoryScores: [],
      scorecardRef: { id: null, name: '' },
      durationSeconds: null,
      source: null,
      evaluatee: { displayName: 'Sam', givenName: '', email: 'sam@example.com' },
      shareLink: null,
      people: [],
      crmLinks: [],
    });
    gateway.store.put({ evaluations: [bare] });
    const reply = await list(subject);
    expect(reply.text).toBe(
      JSON.stringify({
        reports: [
          {
            id,
            name: 'Discovery call with Northwind',
            owner_id: 'user_owner',
            score: 72.5,
            score_breakdown: {},
            scorecard: '',
            scorecard_id: null,
            created_at: '2026-03-04T05:06:07.089Z',
            duration_in_minutes: null,
            source: null,
            status: 'completed',
            evaluatee_user: { name: 'Sam', first_name: '', email: 'sam@example.com' },
            participants: [],
            attendees: [],
            crm_deals: [],
          },
        ],
        page: 1,
        total_count: 1,
      }),
    );
  });

  test('Q6: a workspace without reports has an empty list', async () => {
    expect((await list(newSubject())).text).toBe('{"reports":[],"page":1,"total_count":0}');
  });

  test('Q6: a page past the end is empty and has the true total_count', async () => {
    const subject = putSubject(gateway.store);
    putSubject(gateway.store, newSubject(subject.workspaceId));
    const reply = await list(subject, '?page=2&limit=2');
    expect(reply.status).toBe(200);
    expect(reply.text).toBe('{"reports":[],"page":2,"total_count":2}');
  });
});

describe('which reports, in which order', () => {
  test('Q5: completed ones only', async () => {
    const { workspaceId } = newSubject();
    for (const state of EVALUATION_STATES) {
      putSubject(gateway.store, { ...newSubject(workspaceId), id: `${state}-${workspaceId}` }, { state });
    }
    const reply = await list({ ...newSubject(workspaceId) });
    expect(idsOf(reply)).toEqual([`COMPLETED-${workspaceId}`]);
    expect(reply.json).toMatchObject({ total_count: 1 });
  });

  test('Q5: newest first by created_at, then by id, descending, over all pages', async () => {
    const subject = newSubject();
    const { workspaceId } = subject;
    const suffix = workspaceId.slice(0, 8);
    const times: readonly (readonly [string, number])[] = [
      [`b_${suffix}`, 5000],
      [`a_${suffix}`, 9000],
      [`d_${suffix}`, 5000],
      [`c_${suffix}`, 5000],
      [`e_${suffix}`, 1000],
    ];
    for (const [id, createdAtMs] of times) {
      gateway.store.put({ evaluations: [anEvaluation({ _id: id, workspaceId, createdAtMs })] });
    }
    const pages = await Promise.all(
      ['', '?limit=2', '?limit=2&page=2', '?limit=2&page=3'].map((q) => list(subject, q)),
    );
    const letters = pages.map((page) => idsOf(page).map((id) => id.charAt(0)));
    expect(letters).toEqual([['a', 'd', 'c', 'b', 'e'], ['a', 'd'], ['c', 'b'], ['e']]);
    expect(pages.map(({ json }) => json)).toMatchObject([1, 1, 2, 3].map((page) => ({ page, total_count: 5 })));
  });
});

describe('Q2: page and limit never fail', () => {
  test.each([
    // query, offset, limit, page
    ['', 0, 50, 1],
    ['?page=1', 0, 50, 1],
    ['?page=2', 50, 50, 2],
    ['?page=0', 0, 50, 1],
    ['?page=-1', 0, 50, 1],
    ['?page=-0', 0, 50, 1],
    ['?page=', 0, 50, 1],
    ['?page=two', 0, 50, 1],
    ['?page=1.5', 0, 50, 1],
    ['?page=1e3', 0, 50, 1],
    ['?page=0x10', 0, 50, 1],
    ['?page=%202', 0, 50, 1],
    ['?page=+2', 0, 50, 1],
    ['?page=%2B2', 0, 50, 1],
    ['?page=%D9%A2', 0, 50, 1],
    ['?page=007', 300, 50, 7],
    ['?page=2&page=3', 0, 50, 1],
    ['?page=2147483', 107_374_100, 50, 2_147_483],
    ['?page=999999999', 2_147_483_647, 50, 999_999_999],
    ['?page=1000000000', 0, 50, 1],
    ['?page=-999999999', 0, 50, 1],
    ['?Page=2', 0, 50, 1],
    ['?limit=1', 0, 1, 1],
    ['?limit=50', 0, 50, 1],
    ['?limit=51', 0, 50, 1],
    ['?limit=0', 0, 1, 1],
    ['?limit=-0', 0, 1, 1],
    ['?limit=-7', 0, 1, 1],
    ['?limit=999999999', 0, 50, 1],
    ['?limit=-999999999', 0, 1, 1],
    ['?limit=9999999999', 0, 50, 1],
    ['?limit=', 0, 50, 1],
    ['?limit=ten', 0, 50, 1],
    ['?limit=2.0', 0, 50, 1],
    ['?limit=2&limit=2', 0, 50, 1],
    ['?page=3&limit=7', 14, 7, 3],
  ])('%s asks the store from %i on for %i and is page %i', async (query, offset, limit, page) => {
    const reply = await list(newSubject(), query);
    expect(reply.text).toBe(`{"reports":[],"page":${page},"total_count":0}`);
    expect(lastQuestion()).toEqual({ state: 'COMPLETED', offset: String(offset), limit: String(limit) });
  });

  test('Q2: unknown parameters are ignored, whatever they are called', async () => {
    const subject = putSubject(gateway.store);
    const plain = await list(subject);
    const calls = gateway.store.calls('list');
    const strange = await list(
      subject,
      '?pageSize=1&Search=x&page[]=2&__proto__=1&constructor=2&&=&%zz=1&state=FAILED',
    );
    expect(strange.text).toBe(plain.text);
    expect(strange.headers.etag).toBe(plain.headers.etag);
    expect(gateway.store.calls('list')).toBe(calls);
  });
});

describe('search and scorecardId', () => {
  test.each([
    ['report name', { title: 'Zebra crossing' }],
    [
      'evaluatee',
      { evaluatee: { displayName: 'Zebra Jones', givenName: 'Zebra', email: 'z@example.com', avatar: null } },
    ],
    ['attendee e-mail', { people: [{ name: null, email: 'zebra@example.com', spoke: false, attended: true }] }],
    ['CRM deal name', { crmLinks: [{ objectType: 'deal' as const, externalId: 'd', label: 'Zebra Ltd', href: null }] }],
  ])('finds by %s, whatever the case', async (_field, different) => {
    const subject = putSubject(gateway.store, newSubject(), different);
    putSubject(gateway.store, newSubject(subject.workspaceId));
    const reply = await list(subject, '?search=zEBRA');
    expect(idsOf(reply)).toEqual([subject.id]);
    expect(reply.json).toMatchObject({ total_count: 1 });
  });

  test('hands the text to the store as it was meant: decoded once, encoded once', async () => {
    await list(newSubject(), '?search=50%25%20of+a%26b%3Dc%23%C3%A9%F0%9F%98%80%252F%C2%80');
    expect(lastQuestion()).toEqual({
      state: 'COMPLETED',
      q: '50% of a&b=c#é😀%2f\u0080',
      offset: '0',
      limit: '50',
    });
  });

  test('filters by scorecardId', async () => {
    const subject = putSubject(gateway.store);
    putSubject(gateway.store, newSubject(subject.workspaceId));
    const reply = await list(subject, `?scorecardId=${subject.scorecardId}`);
    expect(idsOf(reply)).toEqual([subject.id]);
  });

  test.each(['?search=', '?scorecardId=', '?search=&scorecardId='])('Q2: empty is absent: %s', async (query) => {
    const reply = await list(putSubject(gateway.store), query);
    expect(reply.status).toBe(200);
    expect(lastQuestion()).toEqual({ state: 'COMPLETED', offset: '0', limit: '50' });
  });

  test.each([
    ['100 letters', 'a'.repeat(100)],
    ['100 characters of 4 bytes each', '😀'.repeat(100)],
    ['100 combining marks', '\u0301'.repeat(100)],
  ])('Q1, Q2: %s are not too long', async (_what, text) => {
    const reply = await list(newSubject(), `?search=${encodeURIComponent(text)}`);
    expect(reply.status).toBe(200);
    expect(lastQuestion()['q']).toBe(text);
  });
});
