import { expect, test } from 'vitest';
import { Entry, tagsOf } from '../../../src/cache/entry.ts';
import { parseTag } from '../../../src/cache/purge-log.ts';
import { cacheRequest } from '../../../src/cache/request.ts';
import { EVALUATION_KINDS, RECORD_KINDS, RESOURCES } from '../../../src/upstream/resources.ts';
import { anEvaluation, aScorecard, aTranscript, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const found = <T>(record: T): Entry<T> => new Entry({ kind: 'found', record, etag: null, bytes: 1 }, 0);
const absent = new Entry<never>({ kind: 'absent', code: 'NOT_FOUND' }, 0);

test.each([
  ['all', 'all'],
  ['class:list', 'class:list'],
  ['class:notFound', 'class:notFound'],
  [`workspace:${WORKSPACE_A}`, `workspace:${WORKSPACE_A}`],
  ['workspace:AAAAAAAA-1111-4111-8111-111111111111', 'workspace:aaaaaaaa-1111-4111-8111-111111111111'],
  ['evaluation:ev_1', 'evaluation:ev_1'],
  ['scorecard:sc-1', 'scorecard:sc-1'],
])('%s is a tag', (text, tag) => {
  expect(parseTag(text)).toBe(tag);
});

test.each([
  '',
  'al',
  'class:',
  'class:lists',
  'workspace:ev_1',
  'evaluation:',
  'evaluation:a b',
  `lists-of:${WORKSPACE_A}`,
])('%j is no tag of the admin interface', (text) => {
  expect(parseTag(text)).toBeNull();
});

test('an evaluation is tagged with its workspace and its scorecard', () => {
  expect(tagsOf(cacheRequest(RESOURCES.evaluation, { id: 'ev_1' }), found(anEvaluation()))).toEqual([
    'all',
    'class:evaluation',
    'evaluation:ev_1',
    `workspace:${WORKSPACE_A}`,
    'scorecard:sc_1',
  ]);
});

test('an absent part is of both classes; nobody knows its workspace', () => {
  const tags = tagsOf(cacheRequest(RESOURCES.transcript, { id: 'ev_1' }), absent);
  expect(tags).toEqual(['all', 'class:transcript', 'class:notFound', 'evaluation:ev_1']);
});

test('a transcript and a rubric are tagged with what they belong to', () => {
  expect(tagsOf(cacheRequest(RESOURCES.transcript, { id: 'ev_1' }), found(aTranscript()))).toEqual([
    'all',
    'class:transcript',
    'evaluation:ev_1',
    `workspace:${WORKSPACE_A}`,
  ]);
  expect(tagsOf(cacheRequest(RESOURCES.rubric, { id: 'sc_1' }), found(aScorecard()))).toEqual([
    'all',
    'class:rubric',
    'scorecard:sc_1',
    `workspace:${WORKSPACE_A}`,
  ]);
});

test('a list is tagged with its workspaces, the scorecard it is filtered by, and those that it shows', () => {
  const query = { workspaceIds: [WORKSPACE_A, WORKSPACE_B], search: null, scorecardId: 'sc_9', offset: 0, limit: 50 };
  const items = [anEvaluation(), anEvaluation({ scorecardRef: { id: null, name: 'None' } }), anEvaluation()];
  expect(tagsOf(cacheRequest(RESOURCES.list, query), found({ items, omitted: 0, sentIds: [], total: 3 }))).toEqual([
    'all',
    'class:list',
    `workspace:${WORKSPACE_A}`,
    `lists-of:${WORKSPACE_A}`,
    `workspace:${WORKSPACE_B}`,
    `lists-of:${WORKSPACE_B}`,
    'scorecard:sc_1',
    'scorecard:sc_9',
  ]);
});

test('C6: the kinds of an evaluation are those that have its tag', () => {
  expect(EVALUATION_KINDS).toEqual(RECORD_KINDS.filter((kind) => RESOURCES[kind].idTag === 'evaluation'));
});
