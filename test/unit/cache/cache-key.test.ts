import { expect, test } from 'vitest';
import { cacheRequest } from '../../../src/cache/request.ts';
import { listRead } from '../../../src/http/read.ts';
import { RESOURCES } from '../../../src/upstream/resources.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const query = { workspaceIds: [WORKSPACE_A], page: 1, search: null, scorecardId: null, pageSize: 50 };
type Query = Omit<typeof query, 'search' | 'scorecardId'> & Parameters<typeof listRead>[2];
const keyOf = (overrides: Partial<Query>): string => {
  const { workspaceIds, page, ...rest }: Query = { ...query, ...overrides };
  return cacheRequest(RESOURCES.list, listRead(workspaceIds, page, rest).params).key;
};

test('workspaces in another order or twice are the same question', () => {
  const expected = keyOf({ workspaceIds: [WORKSPACE_A, WORKSPACE_B] });
  expect(keyOf({ workspaceIds: [WORKSPACE_B, WORKSPACE_A, WORKSPACE_A] })).toBe(expected);
});

test('C4: a list over many workspaces has a short key of its own', () => {
  const many = Array.from({ length: 50 }, (_, index) => `${WORKSPACE_A.slice(0, -2)}${String(index + 10)}`);
  expect(keyOf({ workspaceIds: many }).length).toBeLessThan(64);
  expect(keyOf({ workspaceIds: many })).not.toBe(keyOf({ workspaceIds: many.slice(1) }));
});

test('the key of a searched list shows nothing of the search', () => {
  expect(keyOf({ search: 'northwind' })).not.toContain('northwind');
});

test('searches that differ in the case of ASCII letters share an entry, because the store ignores case', () => {
  expect(keyOf({ search: 'NorthWind Äpfel' })).toBe(keyOf({ search: 'northwind Äpfel' }));
});

test.each([
  ['case beyond ASCII', 'Äpfel', 'äpfel'],
  ['a letter whose lower case is two characters', 'İ', 'i̇'],
  ['a space at the end', 'north', 'north '],
  ['composed and decomposed characters', 'caf\u00e9', 'cafe\u0301'],
])('searches that may have different answers keep apart: %s', (_, one, other) => {
  expect(keyOf({ search: one })).not.toBe(keyOf({ search: other }));
});

test('every part of a searched query makes another key', () => {
  const keys = [
    keyOf({ search: 'a' }),
    keyOf({ search: 'b' }),
    keyOf({ search: 'a', page: 2 }),
    keyOf({ search: 'a', pageSize: 1 }),
    keyOf({ search: 'a', scorecardId: 'sc_1' }),
    keyOf({ search: 'a', workspaceIds: [WORKSPACE_B] }),
  ];
  expect(new Set(keys).size).toBe(keys.length);
});
