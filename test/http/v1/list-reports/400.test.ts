import { expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { startTestGateway } from '../../../support/gateway.ts';
import { LIST_REPORTS } from '../../common/endpoints.ts';
import { keyFor, putSubject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

const tooLong = (length: number): string =>
  `{"reports":[],"error":"The query parameter search may hold at most 100 characters; ${length} were given."}`;
const CONTROL =
  '{"reports":[],"error":"The query parameter search must hold no control characters (U+0000 to U+001F, U+007F)."}';
const TWICE = (name: string): string => `{"reports":[],"error":"The query parameter ${name} may be given only once."}`;
const NO_UUID = '{"reports":[],"error":"The query parameter scorecardId must be a UUID."}';
const UUID = '11111111-1111-4111-8111-111111111111';

test.each([
  ['a search of 101 letters', `search=${'a'.repeat(101)}`, tooLong(101)],
  ['a search of 101 characters of 4 bytes each', `search=${encodeURIComponent('😀'.repeat(101))}`, tooLong(101)],
  ['a search of 101 spaces', `search=${'+'.repeat(101)}`, tooLong(101)],
  ['a search of 5,000 letters', `search=${'a'.repeat(5000)}`, tooLong(5000)],
  ['a search with NUL', 'search=a%00b', CONTROL],
  ['a search with a line feed', 'search=%0A', CONTROL],
  ['a search with U+001F', 'search=ab%1F', CONTROL],
  ['a search with DEL', 'search=%7Fab', CONTROL],
  ['a repeated search', 'search=a&search=a', TWICE('search')],
  ['a search repeated empty', 'search=&search=', TWICE('search')],
  ['a scorecardId that is a word', 'scorecardId=discovery', NO_UUID],
  ['a scorecardId that is an id but no UUID', 'scorecardId=sc_1', NO_UUID],
  ['a scorecardId without hyphens', `scorecardId=${UUID.replaceAll('-', '')}`, NO_UUID],
  ['a scorecardId in braces', `scorecardId=%7B${UUID}%7D`, NO_UUID],
  ['a scorecardId with something behind it', `scorecardId=${UUID}%0A`, NO_UUID],
  ['a scorecardId with a letter that is no digit', `scorecardId=g${UUID.slice(1)}`, NO_UUID],
  ['a repeated scorecardId', `scorecardId=${UUID}&scorecardId=${UUID}`, TWICE('scorecardId')],
  ['a bad search beside a bad page, which never fails', `page=x&search=${'a'.repeat(101)}`, tooLong(101)],
])('Q2, S3: %s', async (_what, query, body) => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  const reply = await gateway.get(`${LIST_REPORTS.path(subject)}?${query}`, { key });
  expect(reply.status).toBe(400);
  expect(reply.text).toBe(body);
  expect(reply.headers['cache-control']).toBe('no-store');
  expect(gateway.store.calls()).toBe(0);
});
