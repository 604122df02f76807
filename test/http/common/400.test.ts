/** Q1 to Q4: what may stand in a query, and the words for what may not. HEAD and the order of faults are in other files. */
import { describe, expect, test } from 'vitest';
import { startTestGateway } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import {
  type EndpointRow,
  errorText,
  GET_CALL,
  GET_CALL_SCORECARD,
  GET_CALL_TRANSCRIPT,
  GET_REPORT,
  GET_RUBRIC,
  LIST_CALLS,
  LIST_REPORTS,
} from './endpoints.ts';
import { newSubject, readerOf } from './subject.ts';

const gateway = await forFile(startTestGateway());
const UUID = '11111111-1111-4111-8111-111111111111';

const onlyOnce = (name: string): string => `The query parameter ${name} may be given only once.`;
const integer = (name: string, range: string) => {
  const rule = `The query parameter ${name} must be an integer ${range}`;
  return { rule, given: (value: string) => `${rule}; '${value}' was given.`, empty: `${rule}; it was empty.` };
};
const page = integer('page', 'from 1 to 999999999');
const CONTROL = 'The query parameter search must hold no control characters (U+0000 to U+001F, U+007F).';
const tooLong = (length: number): string =>
  `The query parameter search may hold at most 100 characters; ${length} were given.`;
const unknown = (name: string): string => `Unknown query parameter '${name}'. This endpoint takes none.`;

async function expectRefused(endpoint: EndpointRow, query: string, text: string): Promise<void> {
  const { ask } = await readerOf(gateway, endpoint);
  const reply = await ask({ query: `?${encodeURI(query).replaceAll('%25', '%')}` });
  expect([reply.status, reply.headers['x-error-code']]).toEqual([400, 'parameter_invalid']);
  expect(reply.text).toBe(errorText(endpoint, 400, text));
  expect(gateway.store.calls()).toBe(0);
}

describe('a list of v1', () => {
  const NO_UUID = 'The query parameter scorecardId must be a UUID.';

  test.each([
    ['a search of 101 letters', `search=${'a'.repeat(101)}`, tooLong(101)],
    ['a search of 101 characters of 4 bytes each', `search=${'😀'.repeat(101)}`, tooLong(101)],
    ['a search of 101 spaces', `search=${'+'.repeat(101)}`, tooLong(101)],
    ['a search of 5,000 letters', `search=${'a'.repeat(5000)}`, tooLong(5000)],
    ['a search with NUL', 'search=a%00b', CONTROL],
    ['a search with a line feed', 'search=%0A', CONTROL],
    ['a search with U+001F', 'search=ab%1F', CONTROL],
    ['a search with DEL', 'search=%7Fab', CONTROL],
    ['a repeated search', 'search=a&search=a', onlyOnce('search')],
    ['a search repeated empty', 'search=&search=', onlyOnce('search')],
    ['a scorecardId that is a word', 'scorecardId=discovery', NO_UUID],
    ['a scorecardId that is an id but no UUID', 'scorecardId=sc_1', NO_UUID],
    ['a scorecardId without hyphens', `scorecardId=${UUID.replaceAll('-', '')}`, NO_UUID],
    ['a scorecardId in braces', `scorecardId=%7B${UUID}%7D`, NO_UUID],
    ['a scorecardId with something behind it', `scorecardId=${UUID}%0A`, NO_UUID],
    ['a scorecardId with a letter that is no digit', `scorecardId=g${UUID.slice(1)}`, NO_UUID],
    ['a repeated scorecardId', `scorecardId=${UUID}&scorecardId=${UUID}`, onlyOnce('scorecardId')],
    ['a bad search beside a bad page, which never fails', `page=x&search=${'a'.repeat(101)}`, tooLong(101)],
  ])('Q2, S3: %s', async (_what, query, text) => {
    await expectRefused(LIST_REPORTS, query, text);
  });
});

describe('a list of v2', () => {
  const size = integer('pageSize', 'from 1 to 100');
  const SEARCH = 'The query parameter search must hold 1 to 200 characters';
  const SCORECARD = 'The query parameter scorecardId must be made of 1 to 64 letters, digits, hyphens and underscores';
  const WORKSPACE = 'The query parameter workspaceId must be a UUID';
  const KNOWN = 'Known here: workspaceId, page, pageSize, search, scorecardId, after.';

  test.each([
    ['page=0', page.given('0')],
    ['page=-0', page.given('-0')],
    ['page=-1', page.given('-1')],
    ['page=1000000000', page.given('1000000000')],
    ['page=1.0', page.given('1.0')],
    ['page=1e2', page.given('1e2')],
    ['page=0x1', page.given('0x1')],
    ['page=%201', page.given(' 1')],
    ['page=+1', page.given(' 1')],
    ['page=1%0A', page.given('1\n')],
    ['page=%D9%A1', page.given('\u0661')],
    ['page=NaN', page.given('NaN')],
    ['page=', page.empty],
    ['page', page.empty],
    ['page=1&page=1', onlyOnce('page')],
    ['pageSize=0', size.given('0')],
    ['pageSize=101', size.given('101')],
    ['pageSize=-1', size.given('-1')],
    ['pageSize=ten', size.given('ten')],
    ['pageSize=', size.empty],
    ['pageSize=5&pageSize=6', onlyOnce('pageSize')],
    ['search=', `${SEARCH}; 0 were given.`],
    [`search=${'a'.repeat(201)}`, `${SEARCH}; 201 were given.`],
    [`search=${'😀'.repeat(201)}`, `${SEARCH}; 201 were given.`],
    ['search=a%00b', CONTROL],
    ['search=%09', CONTROL],
    ['search=ab%1F', CONTROL],
    ['search=%7Fab', CONTROL],
    ['search=a&search=b', onlyOnce('search')],
    ['scorecardId=', `${SCORECARD}; it was empty.`],
    ['scorecardId=a%20b', `${SCORECARD}; 'a b' was given.`],
    ['scorecardId=..%2F..', `${SCORECARD}; '../..' was given.`],
    [`scorecardId=${'a'.repeat(65)}`, `${SCORECARD}; '${'a'.repeat(40)}…' was given.`],
    ['scorecardId=a&scorecardId=a', onlyOnce('scorecardId')],
    ['workspaceId=', `${WORKSPACE}; it was empty.`],
    ['workspaceId=mine', `${WORKSPACE}; 'mine' was given.`],
    [`workspaceId=${UUID}0`, `${WORKSPACE}; '${UUID}0' was given.`],
    [`workspaceId=%7B${UUID}%7D`, `${WORKSPACE}; '{${UUID}}' was given.`],
    [`workspaceId=${UUID}&workspaceId=${UUID}`, onlyOnce('workspaceId')],
    ['limit=5', `Unknown query parameter 'limit'. ${KNOWN}`],
    ['Page=1', `Unknown query parameter 'Page'. ${KNOWN}`],
    ['page[]=1', `Unknown query parameter 'page[]'. ${KNOWN}`],
    ['__proto__=1', `Unknown query parameter '__proto__'. ${KNOWN}`],
    ['=1', `Unknown query parameter ''. ${KNOWN}`],
    ['?pageSize=1', `Unknown query parameter '?pageSize'. ${KNOWN}`],
    ['?', `Unknown query parameter '?'. ${KNOWN}`],
    ['x=1&x=2', `Unknown query parameter 'x'. ${KNOWN}`],
    [`${'é'.repeat(41)}=1`, `Unknown query parameter '${'é'.repeat(40)}…'. ${KNOWN}`],
    ['x=1&page=0&search=', `Unknown query parameter 'x'. ${KNOWN} ${page.given('0')} ${SEARCH}; 0 were given.`],
    // K6: only a foreign workspace comes before the other faults.
    [
      'x=1&page=0&workspaceId=mine',
      `Unknown query parameter 'x'. ${KNOWN} ${WORKSPACE}; 'mine' was given. ${page.given('0')}`,
    ],
  ])('Q1, Q3, Q4: ?%s', async (query, text) => {
    await expectRefused(LIST_CALLS, query, text);
  });
});

describe('a transcript of v2', () => {
  const size = integer('pageSize', 'from 1 to 200');
  const chars = integer('maxChars', 'from 1 to 50000');
  const KNOWN = 'Known here: page, pageSize, maxChars, raw.';

  test.each([
    ['page=0', page.given('0')],
    ['page=-1', page.given('-1')],
    ['page=1000000000', page.given('1000000000')],
    ['page=one', page.given('one')],
    ['page=', page.empty],
    ['page=1&page=2', onlyOnce('page')],
    ['pageSize=0', size.given('0')],
    ['pageSize=201', size.given('201')],
    ['pageSize=', size.empty],
    ['pageSize=1&pageSize=1', onlyOnce('pageSize')],
    ['maxChars=0', chars.given('0')],
    ['maxChars=50001', chars.given('50001')],
    ['maxChars=-5', chars.given('-5')],
    ['maxChars=1.5', chars.given('1.5')],
    ['maxChars=', chars.empty],
    ['maxChars=9&maxChars=9', onlyOnce('maxChars')],
    ['raw=true&raw=false', onlyOnce('raw')],
    ['raw&raw', onlyOnce('raw')],
    ['max_chars=5', `Unknown query parameter 'max_chars'. ${KNOWN}`],
    ['search=x', `Unknown query parameter 'search'. ${KNOWN}`],
    ['Raw', `Unknown query parameter 'Raw'. ${KNOWN}`],
    [
      'maxChars=0&pageSize=0&page=0&y',
      `Unknown query parameter 'y'. ${KNOWN} ${page.given('0')} ${size.given('0')} ${chars.given('0')}`,
    ],
  ])('Q3, Q4: ?%s', async (query, text) => {
    await expectRefused(GET_CALL_TRANSCRIPT, query, text);
  });
});

test.each([GET_CALL, GET_CALL_SCORECARD, GET_RUBRIC])('Q3, Q4: $name takes no parameters', async (endpoint) => {
  await expectRefused(endpoint, 'page=1', unknown('page'));
  await expectRefused(endpoint, '=', unknown(''));
  await expectRefused(endpoint, 'a=1&b&a=2', `${unknown('a')} ${unknown('b')}`);
  const { ask } = await readerOf(gateway, endpoint, { subject: newSubject() });
  expect((await ask({ query: '?' })).status).toBe(404);
  gateway.store.forget();
});

test('Q2: v1 ignores unknown parameters, whatever they are called', async () => {
  const { ask } = await readerOf(gateway, GET_REPORT);
  expect((await ask({ query: '?page=x&raw&__proto__=1' })).status).toBe(200);
  gateway.store.forget();
});
