/** The behaviour of every store that implements the upstream interface. Run it against any of them. */
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  dealInsightsSchema,
  evaluationSchema,
  scorecardSchema,
  scoredCardSchema,
  transcriptSchema,
} from '../../../src/domain/records.ts';
import type { EvaluationRecord } from '../../../src/domain/records.ts';
import { get, json } from './http-get.ts';
import type { RawResponse } from './http-get.ts';

/** A running store and what the suite has to know of its records. */
export interface UpstreamUnderTest {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: string;
  /** A workspace with more than three completed evaluations and with others, none of them malformed. */
  readonly workspaceId: string;
  /** Another such workspace. */
  readonly otherWorkspaceId: string;
  /** A completed evaluation of the workspace, with all its parts, a scorecard, a deal and a person's e-mail address. */
  readonly completedId: string;
  /** An evaluation that has no transcript, scorecard or insights yet. */
  readonly unfinishedId: string;
  stop(): Promise<void>;
}

const PARTS = ['transcript', 'scorecard', 'deal-insights'] as const;
const MISSING = 'there-is-no-such-id';
const MISSING_UUID = '00000000-0000-4000-8000-000000000000';
const listSchema = z.object({ items: z.array(evaluationSchema), total: z.int().min(0) });
const errorSchema = z.object({ code: z.string(), message: z.string() });

/** Runs the suite against what `start` starts. */
export function describeUpstreamInterface(name: string, start: () => Promise<UpstreamUnderTest>): void {
  describe(`upstream interface: ${name}`, () => {
    let store: UpstreamUnderTest;
    let completed: EvaluationRecord;

    const read = (path: string, headers: Record<string, string> = {}): Promise<RawResponse> =>
      get(`${store.url}/internal/v1${path}`, {
        authorization: `Bearer ${store.token}`,
        'x-request-id': 'contract-1',
        ...headers,
      });
    const list = async (query: Record<string, string | number>, workspaces = [store.workspaceId]) => {
      const params = new URLSearchParams();
      for (const id of workspaces) params.append('workspaceId', id);
      for (const [member, value] of Object.entries(query)) params.set(member, String(value));
      const response = await read(`/evaluations?${params.toString()}`);
      expect(response.status).toBe(200);
      return listSchema.parse(json(response));
    };
    const walk = async (query: Record<string, string | number>, limit: number, workspaces?: string[]) => {
      const items: EvaluationRecord[] = [];
      for (;;) {
        const page = await list({ ...query, limit, offset: items.length }, workspaces);
        items.push(...page.items);
        if (page.items.length === 0 || items.length >= page.total) return { items, total: page.total };
      }
    };
    const find = async (q: string): Promise<string[]> => (await walk({ q }, 100)).items.map(({ _id }) => _id);
    /** The addresses of the six reads, of things that are there. */
    const addresses = (): string[] => [
      `/evaluations?workspaceId=${store.workspaceId}&limit=3`,
      `/evaluations/${store.completedId}`,
      ...PARTS.map((part) => `/evaluations/${store.completedId}/${part}`),
      `/scorecards/${completed.scorecardRef.id ?? ''}`,
    ];

    beforeAll(async () => {
      store = await start();
      completed = evaluationSchema.parse(json(await read(`/evaluations/${store.completedId}`)));
    });
    afterAll(() => store.stop());

    describe('a read', () => {
      test.each([
        ['transcript', transcriptSchema],
        ['scorecard', scoredCardSchema],
        ['deal-insights', dealInsightsSchema],
      ] as const)('of the %s gives the part of that evaluation', async (part, schema) => {
        const response = await read(`/evaluations/${store.completedId}/${part}`);
        expect(response.status).toBe(200);
        expect(schema.parse(json(response))).toMatchObject({
          evaluationId: store.completedId,
          workspaceId: store.workspaceId,
        });
      });

      test('of a scorecard gives its rubric', async () => {
        const id = completed.scorecardRef.id ?? '';
        const response = await read(`/scorecards/${id}`);
        expect(response.status).toBe(200);
        expect(scorecardSchema.parse(json(response))).toMatchObject({ _id: id, workspaceId: store.workspaceId });
      });

      test('answers JSON with an ETag, and the same ETag again', async () => {
        for (const address of addresses()) {
          const [first, second] = [await read(address), await read(address)];
          expect(first.headers['content-type']).toMatch(/^application\/json\b/);
          expect(first.headers.etag).toMatch(/^(?:W\/)?"[\x21\x23-\x7e]*"$/);
          expect(second.headers.etag).toBe(first.headers.etag);
        }
      });

      test('with its ETag in If-None-Match is a 304 without a body', async () => {
        for (const address of addresses()) {
          const { etag = '' } = (await read(address)).headers;
          for (const header of [etag, `"another", ${etag}`]) {
            const again = await read(address, { 'if-none-match': header });
            expect({ address, status: again.status, bytes: again.body.length }).toEqual({
              address,
              status: 304,
              bytes: 0,
            });
          }
        }
      });

      test('is the same whether it is compressed or not', async () => {
        for (const address of addresses()) {
          const plain = await read(address, { 'accept-encoding': 'identity' });
          const zipped = await read(address, { 'accept-encoding': 'gzip' });
          expect(plain.headers['content-encoding']).toBeUndefined();
          const body = zipped.headers['content-encoding'] === 'gzip' ? gunzipSync(zipped.body) : zipped.body;
          expect(body.equals(plain.body)).toBe(true);
        }
      });
    });

    describe('an error', () => {
      test.each([
        ['no token', {}],
        ['a wrong token', { authorization: 'Bearer not-the-token' }],
        ['another scheme', { authorization: 'Basic bm90OnRoaXM=' }],
      ])('is 401 UNAUTHENTICATED for %s', async (_case, headers) => {
        for (const address of addresses()) {
          expect(errorOf(await get(`${store.url}/internal/v1${address}`, headers))).toEqual([401, 'UNAUTHENTICATED']);
        }
      });

      test.each([
        `/evaluations/${MISSING}`,
        ...PARTS.map((part) => `/evaluations/${MISSING}/${part}`),
        `/scorecards/${MISSING}`,
      ])('is 404 NOT_FOUND for what does not exist: %s', async (address) => {
        expect(errorOf(await read(address))).toEqual([404, 'NOT_FOUND']);
      });

      test.each(PARTS)('is 404 NOT_READY for the %s of an evaluation that is not that far', async (part) => {
        expect(errorOf(await read(`/evaluations/${store.unfinishedId}/${part}`))).toEqual([404, 'NOT_READY']);
      });

      test.each([
        'limit=10',
        'workspaceId=not-a-uuid',
        `workspaceId=${MISSING_UUID}&workspaceId=`,
        `workspaceId=${MISSING_UUID}&state=DONE`,
        `workspaceId=${MISSING_UUID}&state=completed`,
        `workspaceId=${MISSING_UUID}&offset=-1`,
        `workspaceId=${MISSING_UUID}&offset=1.5`,
        `workspaceId=${MISSING_UUID}&limit=0`,
        `workspaceId=${MISSING_UUID}&limit=101`,
        `workspaceId=${MISSING_UUID}&limit=ten`,
      ])('is 400 BAD_REQUEST for the list query %s', async (query) => {
        expect(errorOf(await read(`/evaluations?${query}`))).toEqual([400, 'BAD_REQUEST']);
      });
    });

    describe('the list', () => {
      test('holds evaluations of the workspaces asked for only, all of them when several are', async () => {
        const both = [store.workspaceId, store.otherWorkspaceId];
        const [one, other, together] = [await list({}), await list({}, both.slice(1)), await list({}, both)];
        expect(together.total).toBe(one.total + other.total);
        expect(new Set(one.items.map(({ workspaceId }) => workspaceId))).toEqual(new Set([store.workspaceId]));
        const seen = (await walk({}, 100, both)).items.map(({ workspaceId }) => workspaceId);
        expect(new Set(seen)).toEqual(new Set(both));
      });

      test('is newest first, and by descending id within a millisecond', async () => {
        const { items } = await walk({}, 100, [store.workspaceId, store.otherWorkspaceId]);
        const sorted = items.toSorted((a, b) => b.createdAtMs - a.createdAtMs || (a._id < b._id ? 1 : -1));
        expect(items.map(({ _id }) => _id)).toEqual(sorted.map(({ _id }) => _id));
      });

      test('gives every evaluation once when it is walked in pages of any size', async () => {
        const whole = await walk({ state: 'COMPLETED' }, 100);
        const inSevens = await walk({ state: 'COMPLETED' }, 7);
        expect(whole.items).toHaveLength(whole.total);
        expect(inSevens.items).toEqual(whole.items);
        expect(new Set(whole.items.map(({ _id }) => _id)).size).toBe(whole.total);
      });

      test('holds at most as many as the limit says', async () => {
        const { items, total } = await list({ limit: 3 });
        expect(total).toBeGreaterThan(3);
        expect(items).toHaveLength(3);
      });

      test('is empty past its end, with the true total', async () => {
        const { total } = await list({});
        expect(await list({ offset: total })).toEqual({ items: [], total });
      });

      test('holds one state only where one is asked for', async () => {
        const all = await walk({}, 100);
        const done = await walk({ state: 'COMPLETED' }, 100);
        expect(done.total).toBeLessThan(all.total);
        expect(done.items).toEqual(all.items.filter(({ state }) => state === 'COMPLETED'));
      });

      test('holds one scorecard only where one is asked for', async () => {
        const all = await walk({}, 100);
        const id = completed.scorecardRef.id ?? '';
        const ofCard = await walk({ scorecardId: id }, 100);
        expect(ofCard.total).toBeGreaterThan(0);
        expect(ofCard.items).toEqual(all.items.filter(({ scorecardRef }) => scorecardRef.id === id));
      });
    });

    describe('the search', () => {
      test.each([
        ['the title', (): string => completed.title],
        ["the evaluatee's name", (): string => completed.evaluatee.displayName],
        ["the evaluatee's e-mail address", (): string => completed.evaluatee.email],
        [
          "a person's e-mail address",
          (): string => completed.people.findLast(({ email }) => email !== null)?.email ?? '',
        ],
        ['the label of a deal', (): string => completed.crmLinks.find(isDeal)?.label ?? ''],
      ])('finds an evaluation by %s, in either case and by a part of it', async (_field, text) => {
        expect(text()).not.toBe('');
        for (const q of [text(), text().toUpperCase(), text().toLowerCase(), text().slice(1, -1)]) {
          expect(await find(q)).toContain(store.completedId);
        }
      });

      test('finds exactly the evaluations that hold the text in one of the searched members', async () => {
        const q = completed.evaluatee.givenName.toLowerCase();
        const all = await walk({}, 100);
        const expected = all.items.filter((record) => searched(record).some((text) => text.toLowerCase().includes(q)));
        expect(await find(q)).toEqual(expected.map(({ _id }) => _id));
      });

      test('does not look at other members', async () => {
        expect(await find(completed._id)).toEqual([]);
        expect(await find(completed.evaluatee.userId ?? completed.ownerUserId)).toEqual([]);
      });
    });
  });
}

/** Status and code; throws if the body isn't the interface's error form. */
function errorOf(response: RawResponse): readonly [number, string] {
  return [response.status, errorSchema.parse(json(response)).code];
}

function isDeal({ objectType }: EvaluationRecord['crmLinks'][number]): boolean {
  return objectType === 'deal';
}

function searched({ title, evaluatee, people, crmLinks }: EvaluationRecord): readonly string[] {
  const emails = people.map(({ email }) => email ?? '');
  return [
    title,
    evaluatee.displayName,
    evaluatee.email,
    ...emails,
    ...crmLinks.filter(isDeal).map(({ label }) => label),
  ];
}
