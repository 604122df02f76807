import { expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { startTestGateway } from '../../../support/gateway.ts';
import { GET_CALL_TRANSCRIPT } from '../../common/endpoints.ts';
import { keyFor, putSubject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

const PAGE = 'The query parameter page must be an integer of at least 1';
const PAGE_SIZE = 'The query parameter pageSize must be an integer from 1 to 200';
const MAX_CHARS = 'The query parameter maxChars must be an integer from 1 to 50000';
const KNOWN = 'Known here: page, pageSize, maxChars, raw.';
const once = (name: string): string => `The query parameter ${name} may be given only once.`;

test.each([
  ['page=0', `${PAGE}; '0' was given.`],
  ['page=-1', `${PAGE}; '-1' was given.`],
  ['page=1000000000', `${PAGE}; '1000000000' was given.`],
  ['page=one', `${PAGE}; 'one' was given.`],
  ['page=', `${PAGE}; it was empty.`],
  ['page=1&page=2', once('page')],
  ['pageSize=0', `${PAGE_SIZE}; '0' was given.`],
  ['pageSize=201', `${PAGE_SIZE}; '201' was given.`],
  ['pageSize=', `${PAGE_SIZE}; it was empty.`],
  ['pageSize=1&pageSize=1', once('pageSize')],
  ['maxChars=0', `${MAX_CHARS}; '0' was given.`],
  ['maxChars=50001', `${MAX_CHARS}; '50001' was given.`],
  ['maxChars=-5', `${MAX_CHARS}; '-5' was given.`],
  ['maxChars=1.5', `${MAX_CHARS}; '1.5' was given.`],
  ['maxChars=', `${MAX_CHARS}; it was empty.`],
  ['maxChars=9&maxChars=9', once('maxChars')],
  ['raw=true&raw=false', once('raw')],
  ['raw&raw', once('raw')],
  ['max_chars=5', `Unknown query parameter 'max_chars'. ${KNOWN}`],
  ['search=x', `Unknown query parameter 'search'. ${KNOWN}`],
  ['Raw', `Unknown query parameter 'Raw'. ${KNOWN}`],
  [
    'maxChars=0&pageSize=0&page=0&y',
    `Unknown query parameter 'y'. ${KNOWN} ${PAGE}; '0' was given. ${PAGE_SIZE}; '0' was given. ${MAX_CHARS}; '0' was given.`,
  ],
])('Q3, Q4: get call transcript ?%s', async (query, message) => {
  const subject = putSubject(gateway.store);
  const reply = await gateway.get(`${GET_CALL_TRANSCRIPT.path(subject)}?${query}`, {
    key: await keyFor(gateway, subject),
  });
  expect(reply.status).toBe(400);
  expect(reply.text).toBe(JSON.stringify({ error: { message } }));
  expect(reply.headers['cache-control']).toBe('no-store');
  expect(gateway.store.calls()).toBe(0);
});
