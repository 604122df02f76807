import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EvaluationRecord } from '../../../src/domain/records.ts';
import { createSampleData } from '../../../src/sample/index.ts';
import { BadQueryError, compareNewestFirst, parseListQuery } from '../../../src/sample/query.ts';

const data = createSampleData({ seed: 3, evaluations: 400 });
const [first = '', second = ''] = data.workspaceIds;
const UUID = '0b2d4c1e-6f7a-4b8c-9d0e-1f2a3b4c5d6e';

function find(query: string): { ids: string[]; total: number } {
  const { items, total } = data.list(parseListQuery(new URLSearchParams(query)));
  return { ids: items.map((item) => String(item['_id'])), total };
}

function searchedTexts(record: EvaluationRecord): string[] {
  return [
    record.title,
    record.evaluatee.displayName,
    record.evaluatee.email,
    ...record.people.map(({ email }) => email ?? ''),
    ...record.crmLinks.filter(({ objectType }) => objectType === 'deal').map(({ label }) => label),
  ];
}

describe('reading a list query', () => {
  test('fills in what is left out', () => {
    expect(parseListQuery(new URLSearchParams(`workspaceId=${UUID}`))).toEqual({
      workspaceIds: [UUID],
      state: null,
      q: '',
      scorecardId: null,
      offset: 0,
      limit: 50,
    });
  });

  test('takes every parameter, workspaces in either case and without repeats', () => {
    const query = `workspaceId=${UUID.toUpperCase()}&workspaceId=${UUID}&workspaceId=${first}&state=FAILED&q=Caf%C3%A9&scorecardId=sc_1&offset=200&limit=100`;
    expect(parseListQuery(new URLSearchParams(query))).toEqual({
      workspaceIds: [UUID, first],
      state: 'FAILED',
      q: 'café',
      scorecardId: 'sc_1',
      offset: 200,
      limit: 100,
    });
  });

  test.each([
    ['', 'workspaceId is required'],
    ['workspaceId=', 'workspaceId must be a UUID'],
    [`workspaceId=${UUID}x`, 'workspaceId must be a UUID'],
    [`workspaceId=${UUID}&workspaceId=1`, 'workspaceId must be a UUID'],
    [`workspaceId=${UUID}&state=`, 'state must be one of QUEUED, TRANSCRIBING, SCORING, COMPLETED, FAILED'],
    [`workspaceId=${UUID}&state=COMPLETED&state=FAILED`, 'state must not be repeated'],
    [`workspaceId=${UUID}&q=a&q=b`, 'q must not be repeated'],
    [`workspaceId=${UUID}&scorecardId=a.b`, 'scorecardId must be an id'],
    [`workspaceId=${UUID}&offset=-1`, 'offset must be an integer of at least 0'],
    [`workspaceId=${UUID}&offset=1e3`, 'offset must be an integer of at least 0'],
    [`workspaceId=${UUID}&limit=0`, 'limit must be an integer from 1 to 100'],
    [`workspaceId=${UUID}&limit=101`, 'limit must be an integer from 1 to 100'],
    [`workspaceId=${UUID}&limit=`, 'limit must be an integer from 1 to 100'],
    [`workspaceId=${UUID}&search=x`, 'unknown parameter; known are workspaceId, state, q, scorecardId, offset, limit'],
  ])('refuses %j', (query, message) => {
    expect(() => parseListQuery(new URLSearchParams(query))).toThrow(new BadQueryError(message));
  });
});

describe('the order of a list', () => {
  test('is by code units where two are of the same millisecond', () => {
    const [record] = data.evaluations;
    if (record === undefined) throw new Error('the sample is empty');
    const sorted = ['b', 'B', 'a', '_', '-', 'Z', '9']
      .map((_id) => ({ ...record, _id }))
      .toSorted(compareNewestFirst)
      .map(({ _id }) => _id);
    expect(sorted).toEqual(['b', 'a', '_', 'Z', 'B', '9', '-']);
  });

  test('is by time first', () => {
    const [record] = data.evaluations;
    if (record === undefined) throw new Error('the sample is empty');
    const [older, newer] = [
      { ...record, _id: 'z', createdAtMs: 1 },
      { ...record, _id: 'a', createdAtMs: 2 },
    ];
    expect([older, newer].toSorted(compareNewestFirst)).toEqual([newer, older]);
    expect(compareNewestFirst(older, older)).toBe(0);
  });
});

describe('a list', () => {
  test('finds what a plain search through all records finds, for any text', () => {
    const texts = data.evaluations.flatMap(searchedTexts).filter((text) => text.length > 0);
    const part = fc
      .tuple(fc.constantFrom(...texts), fc.nat(40), fc.integer({ min: 1, max: 12 }))
      .map(([text, start, length]) => text.slice(start % text.length, (start % text.length) + length));
    fc.assert(
      fc.property(part, fc.boolean(), (text, upper) => {
        const q = upper ? text.toUpperCase() : text;
        const expected = data.evaluations
          .filter(({ workspaceId }) => workspaceId === first)
          .filter((record) => searchedTexts(record).some((it) => it.toLowerCase().includes(q.toLowerCase())));
        const found = find(new URLSearchParams({ workspaceId: first, q, limit: '100' }).toString());
        expect(found.total).toBe(expected.length);
        expect(found.ids).toEqual(expected.slice(0, 100).map(({ _id }) => _id));
      }),
      { seed: 20, numRuns: 60 },
    );
  });

  test.each(['.*', '%', '_____', '\\', "' OR 1=1"])('takes %s for what it says, not for a pattern', (q) => {
    expect(find(new URLSearchParams({ workspaceId: first, q }).toString())).toEqual({ ids: [], total: 0 });
  });

  test.each([
    [
      'an account',
      (record: EvaluationRecord) => record.crmLinks.find((link) => link.objectType === 'account')?.externalId,
    ],
    ['an owner', (record: EvaluationRecord) => record.ownerUserId],
    ['an id', (record: EvaluationRecord) => record._id],
    [
      'a deal’s own id',
      (record: EvaluationRecord) => record.crmLinks.find((link) => link.objectType === 'deal')?.externalId,
    ],
    ['a share', (record: EvaluationRecord) => record.shareLink?.id],
  ])('does not search %s', (_what, text) => {
    const q = data.evaluations.map(text).find((it) => it !== undefined) ?? '';
    expect(q.length).toBeGreaterThan(8);
    const query = new URLSearchParams({ q, limit: '100' });
    for (const id of data.workspaceIds) query.append('workspaceId', id);
    expect(find(query.toString()).total).toBe(0);
  });

  test('does not find a text that runs from one member into the next', () => {
    const [record] = data.evaluations;
    const q = `${record?.title.slice(-5)}${record?.evaluatee.displayName.slice(0, 5)}`;
    expect(find(new URLSearchParams({ workspaceId: first, q }).toString()).total).toBe(0);
  });

  test('combines its filters', () => {
    const card = data.evaluations.find(({ workspaceId, state }) => workspaceId === second && state === 'COMPLETED');
    const scorecardId = card?.scorecardRef.id ?? '';
    const expected = data.evaluations.filter(
      (record) =>
        record.workspaceId === second &&
        record.state === 'COMPLETED' &&
        record.scorecardRef.id === scorecardId &&
        searchedTexts(record).some((text) => text.toLowerCase().includes('demo')),
    );
    expect(expected.length).toBeGreaterThan(0);
    const query = { workspaceId: second, state: 'COMPLETED', scorecardId, q: 'DEMO', limit: '100' };
    expect(find(new URLSearchParams(query).toString())).toEqual({
      ids: expected.map(({ _id }) => _id),
      total: expected.length,
    });
  });

  test('counts the same total on every page, and past the end', () => {
    const all = data.evaluations.filter(({ workspaceId }) => workspaceId === first).map(({ _id }) => _id);
    for (const offset of [0, 33, all.length - 1, all.length, all.length + 1000]) {
      expect(find(`workspaceId=${first}&limit=33&offset=${offset}`)).toEqual({
        ids: all.slice(offset, offset + 33),
        total: all.length,
      });
    }
  });
});
