import { expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { startTestGateway } from '../../../support/gateway.ts';
import { keyFor, putSubject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

const PAGE = 'The query parameter page must be an integer of at least 1';
const PAGE_SIZE = 'The query parameter pageSize must be an integer from 1 to 100';
const SEARCH = 'The query parameter search must hold 1 to 200 characters';
const CONTROL = 'The query parameter search must hold no control characters (U+0000 to U+001F, U+007F).';
const SCORECARD = 'The query parameter scorecardId must be made of 1 to 64 letters, digits, hyphens and underscores';
const WORKSPACE = 'The query parameter workspaceId must be a UUID';
const KNOWN = 'Known here: workspaceId, page, pageSize, search, scorecardId.';
const UUID = '11111111-1111-4111-8111-111111111111';

test.each([
  ['page=0', `${PAGE}; '0' was given.`],
  ['page=-0', `${PAGE}; '-0' was given.`],
  ['page=-1', `${PAGE}; '-1' was given.`],
  ['page=1000000000', `${PAGE}; '1000000000' was given.`],
  ['page=1.0', `${PAGE}; '1.0' was given.`],
  ['page=1e2', `${PAGE}; '1e2' was given.`],
  ['page=0x1', `${PAGE}; '0x1' was given.`],
  ['page=%201', `${PAGE}; ' 1' was given.`],
  ['page=+1', `${PAGE}; ' 1' was given.`],
  ['page=1%0A', `${PAGE}; '1\n' was given.`],
  ['page=%D9%A1', `${PAGE}; '\u0661' was given.`],
  ['page=NaN', `${PAGE}; 'NaN' was given.`],
  ['page=', `${PAGE}; it was empty.`],
  ['page', `${PAGE}; it was empty.`],
  ['page=1&page=1', 'The query parameter page may be given only once.'],
  ['pageSize=0', `${PAGE_SIZE}; '0' was given.`],
  ['pageSize=101', `${PAGE_SIZE}; '101' was given.`],
  ['pageSize=-1', `${PAGE_SIZE}; '-1' was given.`],
  ['pageSize=ten', `${PAGE_SIZE}; 'ten' was given.`],
  ['pageSize=', `${PAGE_SIZE}; it was empty.`],
  ['pageSize=5&pageSize=6', 'The query parameter pageSize may be given only once.'],
  ['search=', `${SEARCH}; 0 were given.`],
  [`search=${'a'.repeat(201)}`, `${SEARCH}; 201 were given.`],
  [`search=${encodeURIComponent('😀'.repeat(201))}`, `${SEARCH}; 201 were given.`],
  ['search=a%00b', CONTROL],
  ['search=%09', CONTROL],
  ['search=ab%1F', CONTROL],
  ['search=%7Fab', CONTROL],
  ['search=a&search=b', 'The query parameter search may be given only once.'],
  ['scorecardId=', `${SCORECARD}; it was empty.`],
  ['scorecardId=a%20b', `${SCORECARD}; 'a b' was given.`],
  ['scorecardId=..%2F..', `${SCORECARD}; '../..' was given.`],
  [`scorecardId=${'a'.repeat(65)}`, `${SCORECARD}; '${'a'.repeat(40)}…' was given.`],
  ['scorecardId=a&scorecardId=a', 'The query parameter scorecardId may be given only once.'],
  ['workspaceId=', `${WORKSPACE}; it was empty.`],
  ['workspaceId=mine', `${WORKSPACE}; 'mine' was given.`],
  [`workspaceId=${UUID}0`, `${WORKSPACE}; '${UUID}0' was given.`],
  [`workspaceId=%7B${UUID}%7D`, `${WORKSPACE}; '{${UUID}}' was given.`],
  [`workspaceId=${UUID}&workspaceId=${UUID}`, 'The query parameter workspaceId may be given only once.'],
  ['limit=5', `Unknown query parameter 'limit'. ${KNOWN}`],
  ['Page=1', `Unknown query parameter 'Page'. ${KNOWN}`],
  ['page[]=1', `Unknown query parameter 'page[]'. ${KNOWN}`],
  ['__proto__=1', `Unknown query parameter '__proto__'. ${KNOWN}`],
  ['=1', `Unknown query parameter ''. ${KNOWN}`],
  ['x=1&x=2', `Unknown query parameter 'x'. ${KNOWN}`],
  [`${'é'.repeat(41)}=1`, `Unknown query parameter '${'é'.repeat(40)}…'. ${KNOWN}`],
  ['x=1&page=0&search=', `Unknown query parameter 'x'. ${KNOWN} ${PAGE}; '0' was given. ${SEARCH}; 0 were given.`],
])('Q1, Q3, Q4: ?%s', async (query, message) => {
  const key = await keyFor(gateway, putSubject(gateway.store));
  const reply = await gateway.get(`/v2/calls?${encodeURI(query).replaceAll('%25', '%')}`, { key });
  expect(reply.status).toBe(400);
  expect(reply.text).toBe(JSON.stringify({ error: { message } }));
  expect(reply.headers['cache-control']).toBe('no-store');
  expect(gateway.store.calls()).toBe(0);
});

test('K6: a malformed workspaceId is told before the faults of others', async () => {
  const key = await keyFor(gateway, putSubject(gateway.store));
  const reply = await gateway.get('/v2/calls?x=1&page=0&workspaceId=mine', { key });
  expect(reply.status).toBe(400);
  expect(reply.text).toBe(JSON.stringify({ error: { message: `${WORKSPACE}; 'mine' was given.` } }));
});
