import { describe, expect, test } from 'vitest';

import type { ListQuery } from '../../../src/upstream/store.ts';
import { anEvaluation, CREATED_AT_MS, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';
import { ASKED, failureOf, openStore, recordOf, type ClientUnderTest } from './harness.ts';

const QUERY: ListQuery = { workspaceIds: [WORKSPACE_A], search: null, scorecardId: null, offset: 0, limit: 50 };

/** A client of a store whose list is that body. */
async function openList(body: unknown): Promise<ClientUnderTest> {
  const opened = await openStore();
  opened.store.override(/./, (_request, response) => response.end(JSON.stringify(body)));
  return opened;
}

async function idsOf(client: ClientUnderTest['client'], query: ListQuery = QUERY): Promise<readonly string[]> {
  return (await recordOf(client.list(query, ASKED))).items.map((item) => item['_id']);
}

describe('a malformed record is left out and reported, and the rest is served', () => {
  test.each([
    ['a missing member', { title: undefined }, 'title'],
    ['a member of the wrong type', { overallScore: '72' }, 'overallScore'],
    ['an unknown state', { state: 'DONE' }, 'state'],
    ['a workspace that is no UUID', { workspaceId: 'acme' }, 'workspaceId'],
    ['a time beyond the calendar', { createdAtMs: 1e300 }, 'createdAtMs'],
    [
      'a fault further down',
      { evaluatee: { ...anEvaluation().evaluatee, email: 'riley at example' } },
      'evaluatee.email',
    ],
    ['a fault in an array', { people: [...anEvaluation().people, { name: 'Sam' }] }, 'people.2.email'],
    ['a null object', { scorecardRef: null }, 'scorecardRef'],
  ])('%s', async (_name, change, path) => {
    const { client, leftOut } = await openList({
      items: [anEvaluation({ _id: 'ev_1' }), { ...anEvaluation({ _id: 'ev_2' }), ...change }],
      total: 7,
    });
    expect(await recordOf(client.list(QUERY, ASKED))).toEqual({ items: [anEvaluation({ _id: 'ev_1' })], total: 7 });
    expect(leftOut).toEqual([{ resource: 'list', id: 'ev_2', path, requestId: 'request-1' }]);
  });

  test.each([
    ['an id of other characters', { ...anEvaluation(), _id: 'ev 1; drop' }, '_id'],
    ['an id that is no string', { ...anEvaluation(), _id: 17 }, '_id'],
    ['no id', { ...anEvaluation(), _id: undefined }, '_id'],
    ['null', null, '(record)'],
    ['a string', 'ev_1', '(record)'],
    ['an array', [], '(record)'],
  ])('without its id where that is none: %s', async (_name, item, path) => {
    const { client, leftOut } = await openList({ items: [item], total: 1 });
    expect(await idsOf(client)).toEqual([]);
    expect(leftOut).toEqual([{ resource: 'list', id: null, path, requestId: 'request-1' }]);
  });
});

describe('C4: a record that was not asked for is left out and reported', () => {
  test('of another workspace', async () => {
    const { client, leftOut } = await openList({
      items: [anEvaluation({ _id: 'ev_1', workspaceId: WORKSPACE_B }), anEvaluation({ _id: 'ev_2' })],
      total: 2,
    });
    expect(await idsOf(client)).toEqual(['ev_2']);
    expect(leftOut).toEqual([{ resource: 'list', id: 'ev_1', path: 'workspaceId', requestId: 'request-1' }]);
  });

  test.each(['QUEUED', 'TRANSCRIBING', 'SCORING', 'FAILED'] as const)('Q5: that is %s', async (state) => {
    const { client, leftOut } = await openList({ items: [anEvaluation({ state })], total: 1 });
    expect(await idsOf(client)).toEqual([]);
    expect(leftOut).toEqual([{ resource: 'list', id: 'ev_1', path: 'state', requestId: 'request-1' }]);
  });

  test('of a workspace that is written in capitals it is not', async () => {
    const upper = 'ABCDEFAB-1111-4111-8111-111111111111';
    const { client, leftOut } = await openList({ items: [anEvaluation({ workspaceId: upper })], total: 1 });
    const page = await recordOf(client.list({ ...QUERY, workspaceIds: [upper.toLowerCase()] }, ASKED));
    expect(page.items.map((item) => item.workspaceId)).toEqual([upper.toLowerCase()]);
    expect(leftOut).toEqual([]);
  });
});

describe('the page', () => {
  test('Q5: is newest first and then by id, descending by code unit, whatever order the store sends', async () => {
    const { client } = await openList({
      items: [
        anEvaluation({ _id: 'a' }),
        anEvaluation({ _id: 'old', createdAtMs: CREATED_AT_MS - 1 }),
        anEvaluation({ _id: 'B' }),
        anEvaluation({ _id: '_' }),
        anEvaluation({ _id: 'new', createdAtMs: CREATED_AT_MS + 1 }),
        anEvaluation({ _id: '9' }),
      ],
      total: 6,
    });
    expect(await idsOf(client)).toEqual(['new', 'a', '_', 'B', '9', 'old']);
  });

  test('holds at most as many as were asked for', async () => {
    const items = Array.from({ length: 7 }, (_, i) => anEvaluation({ _id: `ev_${i}`, createdAtMs: CREATED_AT_MS - i }));
    const { client, leftOut } = await openList({ items, total: 7 });
    expect(await idsOf(client, { ...QUERY, limit: 3 })).toEqual(['ev_0', 'ev_1', 'ev_2']);
    expect(leftOut).toEqual([]);
  });

  test('holds each id once: the first that the store sent', async () => {
    const { client, leftOut } = await openList({
      items: [anEvaluation({ title: 'first' }), anEvaluation({ title: 'second' })],
      total: 2,
    });
    expect((await recordOf(client.list(QUERY, ASKED))).items.map((item) => item.title)).toEqual(['first']);
    expect(leftOut).toEqual([{ resource: 'list', id: 'ev_1', path: '_id', requestId: 'request-1' }]);
  });

  test('may be empty', async () => {
    const { client } = await openList({ items: [], total: 0 });
    expect(await recordOf(client.list(QUERY, ASKED))).toEqual({ items: [], total: 0 });
  });
});

test.each([
  ['no items', { total: 1 }, 'items'],
  ['items that are no array', { items: { length: 1 }, total: 1 }, 'items'],
  ['no total', { items: [] }, 'total'],
  ['a negative total', { items: [], total: -1 }, 'total'],
  ['a fraction as total', { items: [], total: 1.5 }, 'total'],
  ['a string as total', { items: [], total: '1' }, 'total'],
  ['an array', [], 'items'],
  ['null', null, '(record)'],
  ['a number', 1, '(record)'],
])('a list with %s is malformed', async (_name, body, path) => {
  const { client, calls } = await openList(body);
  const failure = await failureOf(client.list(QUERY, ASKED));
  expect(failure).toMatchObject({ kind: 'malformed', status: 200, isTransient: false });
  expect(failure.message).toBe(`the store's list is malformed at ${path}`);
  expect(calls).toMatchObject([{ resource: 'list', outcome: 'malformed', status: 200 }]);
});
