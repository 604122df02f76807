/** Q1 to Q6: which records a list of either surface holds, in which order, and what is asked of the store for it. */
import { EVALUATION_STATES } from '../../src/domain/vocabulary.ts';
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type Reply, startTestGateway } from '../support/gateway.ts';
import { forFile } from '../support/opened.ts';
import { anEvaluation } from '../support/records.ts';
import { LIST_CALLS, LIST_REPORTS } from './common/endpoints.ts';
import { keyFor, newSubject, putSubject, readerOf, type Subject } from './common/subject.ts';

const gateway = await forFile(startTestGateway());

/** The ids of a page, in order. */
function idsOf(reply: Reply): readonly string[] {
  return [...reply.text.matchAll(/\{"id":"([^"]+)","name":[^{]*"owner_id"/g)].map(([, id = '']) => id);
}

function lastQuery(): URLSearchParams {
  return gateway.store.requests.at(-1)?.query ?? new URLSearchParams();
}

/** The last request to the store, without the workspace. */
function lastQuestion(): Record<string, string> {
  const { workspaceId: _workspaceId, ...asked } = Object.fromEntries(lastQuery());
  return asked;
}

interface Page {
  readonly page: number;
  readonly size: number;
  readonly total: number;
}

/** How each surface names the size of a page, and the body of a page without records. */
const SURFACES = [
  {
    ...LIST_REPORTS,
    size: 'limit',
    bodyOf: ({ page, total }: Page) => ({ reports: [], page, total_count: total }),
  },
  {
    ...LIST_CALLS,
    size: 'pageSize',
    bodyOf: ({ page, size, total }: Page) => ({
      calls: [],
      pagination: { page, page_size: size, total_count: total, total_pages: Math.ceil(total / size) },
    }),
  },
];

describe.each(SURFACES)('$name', ({ size: sizeName, bodyOf, ...endpoint }) => {
  const list = async (subject: Subject, query = ''): Promise<Reply> =>
    (await readerOf(gateway, endpoint, { subject, scopes: [endpoint.scope] })).ask({ query });

  test.each([
    ['a workspace without records', '', 0, { page: 1, size: 50, total: 0 }],
    ['a page past the end', `?page=4&${sizeName}=2`, 5, { page: 4, size: 2, total: 5 }],
  ])('Q6: %s is empty and has the true counts', async (_what, query, count, page) => {
    const subject = newSubject();
    for (let record = 0; record < count; record += 1) putSubject(gateway.store, newSubject(subject.workspaceId));
    expect((await list(subject, query)).text).toBe(JSON.stringify(bodyOf(page)));
  });

  test('Q5: completed ones only', async () => {
    const subject = newSubject();
    for (const state of EVALUATION_STATES) {
      putSubject(gateway.store, { ...subject, id: `${state}-${subject.workspaceId}` }, { state });
    }
    const reply = await list(subject);
    expect(idsOf(reply)).toEqual([`COMPLETED-${subject.workspaceId}`]);
    expect(reply.text).toContain('"total_count":1');
  });

  test('Q5: newest first by created_at, then by id, descending, over all pages', async () => {
    const subject = newSubject();
    for (const [letter, createdAtMs] of Object.entries({ b: 5000, a: 9000, d: 5000, c: 5000, e: 1000 })) {
      putSubject(gateway.store, { ...subject, id: `${letter}_${subject.workspaceId}` }, { createdAtMs });
    }
    const queries = ['', ...[1, 2, 3].map((page) => `?${sizeName}=2&page=${page}`)];
    const pages = await Promise.all(queries.map((query) => list(subject, query)));
    expect(
      pages.map((page) =>
        idsOf(page)
          .map((id) => id.charAt(0))
          .join(''),
      ),
    ).toEqual(['adcbe', 'ad', 'cb', 'e']);
    const counts = [
      bodyOf({ page: 1, size: 50, total: 5 }),
      ...[1, 2, 3].map((page) => bodyOf({ page, size: 2, total: 5 })),
    ];
    for (const [index, { json }] of pages.entries()) {
      const { reports: _reports, calls: _calls, ...told } = { reports: [], calls: [], ...counts[index] };
      expect(json).toMatchObject(told);
    }
  });

  test.each([
    // query, offset, size, page
    ['', 0, 50, 1],
    ['?page=1', 0, 50, 1],
    ['?page=2', 50, 50, 2],
    ['?page=007', 300, 50, 7],
    ['?page=2147483', 107_374_100, 50, 2_147_483],
    // So far past the end that they are one question to the store.
    ['?page=999999998', 2_147_483_647, 50, 999_999_998],
    ['?page=999999999', 2_147_483_647, 50, 999_999_999],
    [`?${sizeName}=1`, 0, 1, 1],
    [`?${sizeName}=50`, 0, 50, 1],
    [`?page=3&${sizeName}=7`, 14, 7, 3],
  ])('Q2, Q3: %s asks the store from %i on for %i and is page %i', async (query, offset, size, page) => {
    const reply = await list(newSubject(), query);
    expect(reply.text).toBe(JSON.stringify(bodyOf({ page, size, total: 0 })));
    expect(lastQuestion()).toEqual({ state: 'COMPLETED', offset: String(offset), limit: String(size) });
  });

  test.each([
    ['name', { title: 'Zebra crossing' }],
    [
      'evaluatee',
      { evaluatee: { displayName: 'Zebra Jones', givenName: 'Zebra', email: 'z@example.com', avatar: null } },
    ],
    ['attendee e-mail', { people: [{ name: null, email: 'zebra@example.com', spoke: false, attended: true }] }],
    ['CRM deal name', { crmLinks: [{ objectType: 'deal' as const, externalId: 'd', label: 'Zebra Ltd', href: null }] }],
  ])('a search finds by %s, whatever the case', async (_field, different) => {
    const subject = putSubject(gateway.store, newSubject(), different);
    putSubject(gateway.store, newSubject(subject.workspaceId));
    const reply = await list(subject, '?search=zEBRA');
    expect(idsOf(reply)).toEqual([subject.id]);
    expect(reply.text).toContain('"total_count":1');
  });

  const longest = endpoint.surface === 'v1' ? 100 : 200;
  test.each([
    ['a letter', 'a'],
    ['a space', ' '],
    ['as many letters as may be', 'a'.repeat(longest)],
    ['as many characters of 4 bytes each', '😀'.repeat(longest)],
    ['combining marks', '\u0301'.repeat(longest)],
    ['what has a meaning in a query', '50% of a&b=c#é😀%2f\u0080'],
  ])('Q1 to Q3: a search may hold %s, and the store gets it as it was meant', async (_what, text) => {
    const reply = await list(newSubject(), `?search=${encodeURIComponent(text)}`);
    expect(reply.status).toBe(200);
    expect(lastQuestion()).toEqual({ state: 'COMPLETED', q: text, offset: '0', limit: '50' });
  });

  test('filters by scorecardId', async () => {
    const subject = putSubject(gateway.store);
    putSubject(gateway.store, newSubject(subject.workspaceId));
    expect(idsOf(await list(subject, `?scorecardId=${subject.scorecardId}`))).toEqual([subject.id]);
    expect(lastQuery().get('scorecardId')).toBe(subject.scorecardId);
  });
});

describe('Q2: a list of v1', () => {
  test.each([
    // query, limit
    ...[
      '0',
      '-1',
      '-0',
      '',
      'two',
      '1.5',
      '1e3',
      '0x10',
      '%202',
      '+2',
      '%2B2',
      '%D9%A2',
      '1000000000',
      '-999999999',
    ].map((page) => [`?page=${page}`, 50] as const),
    ['?page=2&page=3', 50],
    ['?Page=2', 50],
    ...['51', '999999999', '9999999999', '', 'ten', '2.0'].map((limit) => [`?limit=${limit}`, 50] as const),
    ['?limit=2&limit=2', 50],
    ...['0', '-0', '-7', '-999999999'].map((limit) => [`?limit=${limit}`, 1] as const),
    ['?search=', 50],
    ['?scorecardId=', 50],
    ['?search=&scorecardId=', 50],
  ] as const)('fails for no page and no limit, and takes empty for absent: %s', async (query, limit) => {
    const { ask } = await readerOf(gateway, LIST_REPORTS, { subject: newSubject() });
    expect((await ask({ query })).text).toBe('{"reports":[],"page":1,"total_count":0}');
    expect(lastQuestion()).toEqual({ state: 'COMPLETED', offset: '0', limit: String(limit) });
  });

  test('ignores unknown parameters, whatever they are called', async () => {
    const { ask } = await readerOf(gateway, LIST_REPORTS);
    const plain = await ask();
    const calls = gateway.store.calls('list');
    const query = '?pageSize=1&Search=x&page[]=2&__proto__=1&constructor=2&&=&%zz=1&state=FAILED';
    const strange = await ask({ query });
    expect([strange.text, strange.headers.etag]).toEqual([plain.text, plain.headers.etag]);
    expect(gateway.store.calls('list')).toBe(calls);
  });
});

describe('a list of v2', () => {
  test.each([
    [1, 50, 1],
    [50, 50, 1],
    [51, 50, 2],
    [3, 1, 3],
  ])('Q6: %d calls in pages of %d are %d pages', async (total, pageSize, pages) => {
    const restore = gateway.store.answer('/internal/v1/evaluations', { items: [], total });
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject: newSubject() });
    const reply = await ask({ query: `?page=9&pageSize=${pageSize}` });
    restore();
    expect(reply.json).toMatchObject({ pagination: { page: 9, total_count: total, total_pages: pages } });
  });

  test.each([2, 50])(
    'K6: without workspaceId it is of all %i workspaces of the key, and of no other',
    async (count) => {
      const [subject, other, foreign] = [
        putSubject(gateway.store),
        putSubject(gateway.store),
        putSubject(gateway.store),
      ];
      const others = Array.from({ length: count - 2 }, () => randomUUID());
      const workspaceIds = [other.workspaceId, subject.workspaceId, ...others];
      const reply = await (await readerOf(gateway, LIST_CALLS, { subject, workspaceIds })).ask();
      expect(new Set(idsOf(reply))).toEqual(new Set([subject.id, other.id]));
      expect(reply.text).not.toContain(foreign.id);
      expect(lastQuery().getAll('workspaceId')).toEqual(workspaceIds.toSorted());
    },
  );

  test('K6: workspaceId narrows to one of them, whatever its case', async () => {
    const subject = putSubject(gateway.store, newSubject('abcdef00-1234-4abc-8abc-aaaaaaaaaaaa'));
    const workspaceIds = [subject.workspaceId, putSubject(gateway.store).workspaceId];
    const { ask } = await readerOf(gateway, LIST_CALLS, { subject, workspaceIds });
    const narrow = await ask({ query: `?workspaceId=${subject.workspaceId}` });
    expect(idsOf(narrow)).toEqual([subject.id]);
    expect(lastQuery().getAll('workspaceId')).toEqual([subject.workspaceId]);
    expect((await ask({ query: `?workspaceId=${subject.workspaceId.toUpperCase()}` })).text).toBe(narrow.text);
  });

  test('Q3: may have 100 calls a page, and any id of a scorecard', async () => {
    for (const scorecardId of ['a', 'A-_9'.repeat(16)]) {
      const subject = putSubject(gateway.store, newSubject(), { scorecardRef: { id: scorecardId, name: 'It' } });
      putSubject(gateway.store, newSubject(subject.workspaceId));
      const { ask } = await readerOf(gateway, LIST_CALLS, { subject });
      expect(idsOf(await ask({ query: `?pageSize=100&scorecardId=${scorecardId}` }))).toEqual([subject.id]);
      expect(lastQuestion()).toEqual({ state: 'COMPLETED', scorecardId, offset: '0', limit: '100' });
    }
  });

  test('K6: asks for each key its own workspaces, in whatever order keys come, more of them than are remembered', async () => {
    const subjects = Array.from({ length: 12 }, () => newSubject());
    for (const { workspaceId, id } of subjects) {
      gateway.store.evaluations.set(id, anEvaluation({ _id: id, workspaceId }));
    }
    const keys = await Promise.all(subjects.map((subject) => keyFor(gateway, subject, { scopes: ['calls.read'] })));
    for (let turn = 0; turn < 60; turn += 1) {
      const which = (turn * 7 + Math.floor(turn / 5)) % keys.length;
      const reply = await gateway.get('/v2/calls?pageSize=3', { key: keys[which] ?? '' });
      expect(idsOf(reply)).toEqual([subjects[which]?.id]);
    }
  });
});
