/** Every test comes from an address of its own, so that the failures of one don't use up those of another (K9). */
import { randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { newToken } from '../../../src/keys/token.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, type EndpointRow, errorText, GET_REPORT } from './endpoints.ts';
import { cachingOf, rateLimitOf } from './headers.ts';
import { importKey } from './keys.ts';
import { keyFor, newSubject, putSubject, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway({ env: { TRUSTED_PROXIES: '127.0.0.1/32' } }));

function ask(endpoint: EndpointRow, subject: Subject, authorization?: string): Promise<Reply> {
  const address = Array.from({ length: 4 }, () => randomInt(1, 250)).join('.');
  const headers = { 'x-forwarded-for': address, ...(authorization === undefined ? {} : { authorization }) };
  return gateway.get(endpoint.path(subject), { headers });
}

const MISSING = 'No API key was given. Send it as "Authorization: Bearer <API key>".';
const NOT_BEARER = 'The Authorization header must be of the form "Bearer <API key>".';
const EMPTY = 'The Authorization header holds no API key. Send it as "Authorization: Bearer <API key>".';
const INVALID = 'The API key is not valid.';

/** The token with another last character, so that its checksum can't be right. */
function withWrongChecksum(token: string): string {
  return token.slice(0, -1) + (token.endsWith('0') ? '1' : '0');
}

const REFUSED: readonly (readonly [what: string, authorization: string | undefined, message: string])[] = [
  ['no Authorization', undefined, MISSING],
  ['an empty Authorization', '', MISSING],
  ['another scheme', 'Basic dXNlcjpwYXNz', NOT_BEARER],
  ['a key without a scheme', newToken(), NOT_BEARER],
  ['a scheme that only begins like Bearer', `Bearers ${newToken()}`, NOT_BEARER],
  ['a scheme that is not parted from the key by a space', `Bearer:${newToken()}`, NOT_BEARER],
  ['Bearer without a key', 'Bearer', EMPTY],
  ['Bearer and a space', 'Bearer ', EMPTY],
  ['K1: a key whose checksum is wrong', `Bearer ${withWrongChecksum(newToken())}`, INVALID],
  ['K1: a key that is one character short', `Bearer ${newToken().slice(0, -1)}`, INVALID],
  ['K1: a key that is one character long', `Bearer ${newToken()}0`, INVALID],
  ['K1: the prefix of a key alone', 'Bearer evg_', INVALID],
  ['a whole key that was never issued', `Bearer ${newToken()}`, INVALID],
  ['a key of another form that was never issued', 'Bearer legacy-key.1', INVALID],
  ['two keys', `Bearer ${newToken()} ${newToken()}`, INVALID],
  ['two keys with a comma', `Bearer ${newToken()}, Bearer ${newToken()}`, INVALID],
  ['a key in quotes', `Bearer "${newToken()}"`, INVALID],
];

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test.each(REFUSED)('K4: %s', async (_what, authorization, message) => {
    const reply = await ask(endpoint, putSubject(gateway.store), authorization);
    expect(reply.status).toBe(401);
    expect(reply.text).toBe(errorText(endpoint, 401, message));
    expect(reply.headers['www-authenticate']).toBe('Bearer');
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
    expect(rateLimitOf(reply)).toEqual({});
  });

  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer   '])(
    'K4: the scheme may be written %s',
    async (scheme) => {
      const subject = putSubject(gateway.store);
      const key = await keyFor(gateway, subject);
      const reply = await ask(endpoint, subject, `${scheme} ${key}`);
      expect(reply.status).toBe(200);
    },
  );
});

test('K1: a key of another form that was imported is looked up as it is', async () => {
  const subject = putSubject(gateway.store);
  const token = `legacy-${subject.id}`;
  expect((await ask(GET_REPORT, subject, `Bearer ${token}`)).status).toBe(401);
  await importKey(gateway, subject, token);
  expect((await ask(GET_REPORT, subject, `Bearer ${token}`)).status).toBe(200);
});

test('K8: without a valid key nothing is asked of the store, whatever it would have', async () => {
  const before = gateway.store.calls();
  for (const endpoint of ENDPOINTS) await ask(endpoint, newSubject(), 'Bearer legacy-key.1');
  expect(gateway.store.calls()).toBe(before);
});
