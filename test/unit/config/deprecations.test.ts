import { expect, test } from 'vitest';
import { OPERATIONS } from '../../../src/domain/operations.ts';
import { V1_ROUTES } from '../../../src/http/v1/endpoints.ts';
import { V2_ROUTES } from '../../../src/http/v2/endpoints.ts';
import { faultsOf, load } from './support.ts';

function deprecationsOf(...texts: readonly string[]): unknown {
  return load(JSON.stringify({ api: { deprecations: texts } })).config.api.deprecations;
}

test('a surface or an operation is announced with its date, and with its end and a link where they are given', () => {
  expect(
    deprecationsOf(
      'v1 from 2027-01-01 until 2028-02-29 see https://docs.example/v1?a=b,c#d',
      'getCallScorecard from 2026-06-30T12:00:00Z',
      'v2 from 2027-01-01 see https://docs.example/über<>"',
      'getWorkspaceKey from 2027-01-01 until 2027-01-01',
    ),
  ).toEqual([
    {
      target: 'v1',
      fromMs: Date.UTC(2027, 0, 1),
      untilMs: Date.UTC(2028, 1, 29),
      link: 'https://docs.example/v1?a=b,c#d',
    },
    { target: 'getCallScorecard', fromMs: Date.UTC(2026, 5, 30, 12), untilMs: null, link: null },
    { target: 'v2', fromMs: Date.UTC(2027, 0, 1), untilMs: null, link: 'https://docs.example/%C3%BCber%3C%3E%22' },
    { target: 'getWorkspaceKey', fromMs: Date.UTC(2027, 0, 1), untilMs: Date.UTC(2027, 0, 1), link: null },
  ]);
});

test('nothing is announced by default', () => {
  expect(load('').config.api.deprecations).toEqual([]);
  expect(load('api: {deprecations: []}').config.api.deprecations).toEqual([]);
});

test.each([
  ['v1', '"v1" is none'],
  ['v1 from', '"v1 from" is none'],
  ['v1 until 2027-01-01', '"v1 until 2027-01-01" is none'],
  ['v1 from 2027-01-01 see https://a b', '"v1 from 2027-01-01 see https://a b" is none'],
  [
    'v3 from 2027-01-01',
    'there is no v3: it can be v1, v2, listReports, getReport, getReportScorecard, getReportDealInsights, getReportTranscript, getWorkspaceKey, listCalls, getCall, getCallTranscript, getCallScorecard, getScorecardRubric, getCallsKey',
  ],
  ['v1 from soon', '"soon" is no date like 2027-01-01 or 2027-01-01T12:00:00Z'],
  ['v1 from 2027-02-30', '"2027-02-30" is no date like 2027-01-01 or 2027-01-01T12:00:00Z'],
  ['v1 from 2027-13-01', '"2027-13-01" is no date like 2027-01-01 or 2027-01-01T12:00:00Z'],
  [
    'v1 from 2027-01-01T00:00:00+02:00',
    '"2027-01-01T00:00:00+02:00" is no date like 2027-01-01 or 2027-01-01T12:00:00Z',
  ],
  ['v1 from 2027-01-02 until 2027-01-01', 'v1 would end before it is deprecated'],
  ['v1 from 2027-01-01 see docs/v1', '"docs/v1" is no http or https address'],
  ['v1 from 2027-01-01 see javascript:alert(1)', '"javascript:alert(1)" is no http or https address'],
  [
    'v1 from 2027-01-01 see https://me:secret@docs.example',
    'the address after "see" is shown to everybody and may hold no user name and password',
  ],
])('%s is refused', (text, problem) => {
  expect(faultsOf(() => deprecationsOf(text))).toMatchObject([{ name: 'api.deprecations (my.yaml)', problem }]);
});

test('two for one target are refused', () => {
  const faults = faultsOf(() => deprecationsOf('v1 from 2027-01-01', 'getCall from 2027-01-01', 'v1 from 2028-01-01'));
  expect(faults).toMatchObject([{ name: 'api.deprecations (my.yaml)', problem: 'v1 is there more than once' }]);
});

test('every operation of the API can be named, and no other', () => {
  expect({ v1: V1_ROUTES.map(({ name }) => name), v2: V2_ROUTES.map(({ name }) => name) }).toEqual(OPERATIONS);
});
