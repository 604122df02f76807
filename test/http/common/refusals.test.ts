/** Who may not ask, and what may not be asked, at every endpoint alike: its code, its text, what it costs, and in which order. */
import { randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../../src/http/problem.ts';
import { SCOPES } from '../../../src/domain/vocabulary.ts';
import { newToken } from '../../../src/keys/token.ts';
import { type Ask, startTestGateway } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import {
  ENDPOINTS,
  type EndpointRow,
  errorText,
  GET_CALL,
  GET_REPORT,
  LIST_CALLS,
  LIST_REPORTS,
  TEXTS,
} from './endpoints.ts';
import { RATE_LIMIT_NAMES, rateLimitOf, uncountedHeaders } from './headers.ts';
import { activateKey, deprecateKey, importKey, inHours, revokeKey } from './keys.ts';
import { keyFor, newSubject, putSubject, readerOf, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway({ env: { TRUSTED_PROXIES: '127.0.0.1/32' } }));
const LIMITS = { perMinute: 100, perHour: 1000 };
/** As long as a key lives that expires. */
const LIFE_MS = 3600;

/** Each from an address of its own, so that the failures of one don't use up those of another (K9). */
function from(authorization?: string): Ask {
  const address = Array.from({ length: 4 }, () => randomInt(1, 250)).join('.');
  return { headers: { 'x-forwarded-for': address, ...(authorization === undefined ? {} : { authorization }) } };
}

interface Refusal {
  readonly endpoint: EndpointRow;
  readonly code: ErrorCode;
  /** Null for that of the endpoint (K7). */
  readonly text: string | null;
  /** Whether the request counts against the key's quota. */
  readonly isCounted: boolean;
}

/** GET and HEAD of it: the same refusal, held against the document too, with the store not asked. */
async function expectRefused(path: string, ask: Ask, { endpoint, code, text, isCounted }: Refusal): Promise<void> {
  const before = gateway.store.calls();
  const { status } = ERROR_CODES[code];
  const [get, head] = [await gateway.get(path, ask), await gateway.get(path, { ...ask, method: 'HEAD' })];
  const own = status === 404 ? endpoint.notFound : endpoint.forbidden;
  expect(get.text).toBe(text === null ? own : errorText(endpoint, status, text));
  for (const reply of [get, head]) {
    expect([reply.status, reply.headers['x-error-code']]).toEqual([status, code]);
    expect(Object.keys(rateLimitOf(reply))).toEqual(isCounted ? RATE_LIMIT_NAMES : []);
  }
  expect(get.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(head.bytes.length).toBe(0);
  expect(uncountedHeaders(head)).toEqual(uncountedHeaders(get));
  expect(gateway.store.calls()).toBe(before);
  if (!isCounted) return;
  const left = [get, head].map(({ headers }) => Number(headers['x-ratelimit-hour-remaining']));
  expect(left[1]).toBe((left[0] ?? 0) - 1);
}

/** The token with another last character, so that its checksum can't be right. */
function withWrongChecksum(token: string): string {
  return token.slice(0, -1) + (token.endsWith('0') ? '1' : '0');
}

const CREDENTIALS: readonly (readonly [what: string, authorization: string | undefined, ErrorCode, string])[] = [
  ['no Authorization', undefined, 'key_missing', TEXTS.missing],
  ['an empty Authorization', '', 'key_missing', TEXTS.missing],
  ['another scheme', 'Basic dXNlcjpwYXNz', 'key_invalid', TEXTS.notBearer],
  ['a key without a scheme', newToken(), 'key_invalid', TEXTS.notBearer],
  ['a scheme that only begins like Bearer', `Bearers ${newToken()}`, 'key_invalid', TEXTS.notBearer],
  ['a scheme that is not parted from the key', `Bearer:${newToken()}`, 'key_invalid', TEXTS.notBearer],
  ['Bearer without a key', 'Bearer', 'key_missing', TEXTS.empty],
  ['Bearer and a space', 'Bearer ', 'key_missing', TEXTS.empty],
  ['K1: a wrong checksum', `Bearer ${withWrongChecksum(newToken())}`, 'key_invalid', TEXTS.invalid],
  ['K1: one character too few', `Bearer ${newToken().slice(0, -1)}`, 'key_invalid', TEXTS.invalid],
  ['K1: one character too many', `Bearer ${newToken()}0`, 'key_invalid', TEXTS.invalid],
  ['K1: only the prefix of a key', 'Bearer evg_', 'key_invalid', TEXTS.invalid],
  ['a whole key that was never issued', `Bearer ${newToken()}`, 'key_invalid', TEXTS.invalid],
  ['a key of another form that was never issued', 'Bearer legacy-key.1', 'key_invalid', TEXTS.invalid],
  ['two keys', `Bearer ${newToken()} ${newToken()}`, 'key_invalid', TEXTS.invalid],
  ['two keys with a comma', `Bearer ${newToken()}, Bearer ${newToken()}`, 'key_invalid', TEXTS.invalid],
  ['a key in quotes', `Bearer "${newToken()}"`, 'key_invalid', TEXTS.invalid],
];

const ENDS: readonly (readonly [string, (keyId: string) => unknown])[] = [
  ['deprecated', (keyId) => deprecateKey(gateway, keyId)],
  ['revoked', (keyId) => revokeKey(gateway, keyId)],
  ['expired, from the very millisecond on', () => gateway.clock.advance(1)],
];

/** Something cached, so that a refusal is seen to come before it. */
async function warm(endpoint: EndpointRow): Promise<Subject> {
  const { subject, ask } = await readerOf(gateway, endpoint);
  expect((await ask()).status).toBe(200);
  return subject;
}

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test.each(CREDENTIALS)('A4, K4, K8: %s', async (_what, authorization, code, text) => {
    const refusal = { endpoint, code, text, isCounted: false };
    await expectRefused(endpoint.path(putSubject(gateway.store)), from(authorization), refusal);
  });

  test('K4: the scheme may be written in any case, and with more spaces', async () => {
    const { path, key } = await readerOf(gateway, endpoint);
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer   ']) {
      expect((await gateway.get(path, from(`${scheme} ${key}`))).status).toBe(200);
    }
  });

  test.each(ENDS)('K3, K4, K7: a key that is %s, which is not counted', async (_what, end) => {
    const subject = await warm(endpoint);
    const wanted = { workspaceIds: [subject.workspaceId], expiresAt: inHours(gateway, 0.001), ...LIMITS };
    const { keyId, token: key } = await gateway.issue(wanted);
    gateway.clock.advance(LIFE_MS - 1);
    expect((await gateway.get(endpoint.path(subject), { key })).status).toBe(200);
    await end(keyId);
    const refusal = { endpoint, code: 'key_inactive', text: null, isCounted: false } as const;
    await expectRefused(endpoint.path(subject), { key }, refusal);
  });

  test('K4, K5, K6: every scope but the one that is needed; that one is enough', async () => {
    const subject = await warm(endpoint);
    const key = await keyFor(gateway, subject, { scopes: SCOPES.filter((scope) => scope !== endpoint.scope) });
    const refusal = { endpoint, code: 'scope_missing', text: null, isCounted: true } as const;
    await expectRefused(endpoint.path(subject), { key }, refusal);
    const enough = await keyFor(gateway, subject, { scopes: [endpoint.scope] });
    expect((await gateway.get(endpoint.path(subject), { key: enough })).status).toBe(200);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'QUERY'])(
    'A2: %s is not allowed, and counts; without a key it is not asked for one',
    async (method) => {
      const { path, key } = await readerOf(gateway, endpoint);
      const before = gateway.store.calls();
      for (const ask of [{ key }, {}]) {
        const reply = await gateway.get(path, { ...ask, method });
        expect([reply.status, reply.headers['x-error-code']]).toEqual([405, 'method_not_allowed']);
        expect(reply.text).toBe(errorText(endpoint, 405, TEXTS.methodNotAllowed(method)));
        expect(reply.headers.allow).toBe('GET, HEAD');
        expect(Object.keys(rateLimitOf(reply))).toEqual('key' in ask ? RATE_LIMIT_NAMES : []);
      }
      expect(gateway.store.calls()).toBe(before);
    },
  );
});

test('A2: a method that would override another by a header is taken as it is, and no body is looked at', async () => {
  const { ask, path, key } = await readerOf(gateway, GET_CALL);
  const headers = { 'x-http-method-override': 'DELETE', 'x-method-override': 'POST' };
  expect((await ask({ headers })).status).toBe(200);
  const body = '{"page":1}';
  const reply = await gateway.raw(
    `POST ${path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  expect(reply.status).toBe(405);
});

test('K1: a key of another form that was imported is looked up as it is', async () => {
  const subject = putSubject(gateway.store);
  const key = `legacy-${subject.id}`;
  const statusOf = async (): Promise<number> => (await gateway.get(GET_REPORT.path(subject), { key })).status;
  expect(await statusOf()).toBe(401);
  await importKey(gateway, subject, key);
  expect(await statusOf()).toBe(200);
});

test('K3: a deprecated key that is made active again is as good as before', async () => {
  const { keyId, token: key } = await gateway.issue(LIMITS);
  const statuses: number[] = [];
  for (const change of [deprecateKey, activateKey]) {
    await change(gateway, keyId);
    const reply = await gateway.get('/v2/calls', { key });
    statuses.push(reply.status);
    // An inactive key never counts, so a successor that shares its quota loses nothing by it.
    expect(reply.headers['x-ratelimit-hour-remaining']).toBe(reply.status === 200 ? '999' : undefined);
  }
  expect(statuses).toEqual([403, 200]);
});

describe.each(ENDPOINTS.filter(({ surface }) => surface === 'v1'))('the workspace of the path: $name', (endpoint) => {
  const refusal = { endpoint, code: 'workspace_forbidden', text: null, isCounted: true } as const;

  test.each([
    ["another's", (other: string) => other],
    ['nobody’s', () => '99999999-9999-4999-8999-999999999999'],
    ['no UUID', () => 'my-workspace'],
    ['a UUID without hyphens', (other: string) => other.replaceAll('-', '')],
    ['dots', () => '..'],
    ['encoded dots and slashes', () => '%2e%2e%2f'],
    ['no valid percent encoding', () => '%zz'],
    ['NUL', () => '%00'],
    ['__proto__', () => '__proto__'],
  ])('K5, K7: is %s', async (_what, workspaceOf) => {
    const other = await warm(endpoint);
    const { key } = await readerOf(gateway, endpoint);
    await expectRefused(endpoint.path({ ...other, workspaceId: workspaceOf(other.workspaceId) }), { key }, refusal);
  });

  test("K5, K8: another's comes before a query that is too long and bad, a bad id and a missing report", async () => {
    const path = endpoint.path({ ...newSubject(), id: '..%2f..' });
    const key = await keyFor(gateway, newSubject());
    await expectRefused(`${path}?search=${'a'.repeat(9000)}&scorecardId=x`, { key }, refusal);
  });

  test('K5: a key of two workspaces may see both and no third', async () => {
    const subjects = [await warm(endpoint), await warm(endpoint), await warm(endpoint)];
    const workspaceIds = subjects.slice(0, 2).map(({ workspaceId }) => workspaceId);
    const key = await keyFor(gateway, newSubject(), { workspaceIds });
    const replies = await Promise.all(subjects.map((subject) => gateway.get(endpoint.path(subject), { key })));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 403]);
  });
});

test.each([
  ['alone', (id: string) => `workspaceId=${id}`],
  ['in capitals', (id: string) => `workspaceId=${id.toUpperCase()}`],
  ['before every other fault', (id: string) => `page=0&pageSize=x&search=&scorecardId=!&y=1&workspaceId=${id}`],
])("K6, K7: a workspaceId of a list that is not the key's, %s", async (_what, queryOf) => {
  const other = await warm(LIST_CALLS);
  const { path, key } = await readerOf(gateway, LIST_CALLS);
  const refusal = { endpoint: LIST_CALLS, code: 'workspace_forbidden', text: null, isCounted: true } as const;
  await expectRefused(`${path}?${queryOf(other.workspaceId)}`, { key }, refusal);
});

const FAULTY = '?x=1&page=0&search=';

test.each([
  ['authentication before all else', [], 401],
  ['the quota before scope, workspace, query and id', ['coaching.read'], 429],
  ['the scope before query and id', ['reports.read'], 403],
  ['the query before the id and the store', SCOPES, 400],
] as const)('K8: of several faults the first in order is told: %s', async (_what, scopes, status) => {
  const subject = newSubject();
  const limits = status === 429 ? { perMinute: 1 } : {};
  const key = scopes.length === 0 ? null : await keyFor(gateway, subject, { scopes, ...limits });
  if (key !== null && status === 429) await gateway.get('/v2/calls', { key });
  const end = gateway.store.fail(503);
  for (const path of [
    `/v2/calls${FAULTY}`,
    '/v2/calls/a%20b?x=1',
    `${GET_CALL.path(subject)}/transcript?maxChars=0`,
    ...(status === 400 ? [] : [`/v2/calls${FAULTY}&workspaceId=${newSubject().workspaceId}`]),
    ...(status === 401 || status === 429 ? ['/v1/workspaces/x/reports', GET_REPORT.path(subject)] : []),
  ]) {
    expect([path, (await gateway.get(path, key === null ? {} : { key })).status]).toEqual([path, status]);
  }
  end();
});

test('K8: an inactive key is refused before its quota is looked at, and counts nowhere', async () => {
  const { keyId, token: key } = await gateway.issue({ perMinute: 1 });
  const ask = () => gateway.get('/v2/calls', { key });
  expect([(await ask()).status, (await ask()).status]).toEqual([200, 429]);
  await revokeKey(gateway, keyId);
  const reply = await ask();
  expect([reply.status, rateLimitOf(reply)]).toEqual([403, {}]);
  const nowhere = await gateway.get('/v2/none', { key, isUndocumented: true });
  expect([nowhere.status, rateLimitOf(nowhere)]).toEqual([404, {}]);
});

test.each([
  ['200', 200, LIST_REPORTS.path, {}],
  ['304', 304, LIST_REPORTS.path, { 'if-none-match': '*' }],
  ['400 of a parameter', 400, () => '/v2/calls?page=0', {}],
  ['400 of v1', 400, (subject: Subject) => `${LIST_REPORTS.path(subject)}?scorecardId=x`, {}],
  ['400 of an address', 400, () => `/v2/calls?search=${'x'.repeat(9000)}`, {}],
  ['404 of an id', 404, () => '/v2/calls/a.b', {}],
  ['404 of a record', 404, () => GET_CALL.path(newSubject()), {}],
  ['404 of a path', 404, () => '/v2/nowhere', {}],
  ['500', 500, () => '/v2/calls?search=failing', {}],
] as const)('K8, R2: a request with an active key counts, whatever its outcome: %s', async (...row) => {
  const [, status, pathOf, headers] = row;
  const { subject, key } = await readerOf(gateway, LIST_CALLS, LIMITS);
  const end = status === 500 ? gateway.store.fail(500) : () => {};
  const replies = [
    await gateway.get(pathOf(subject), { key, headers, isUndocumented: pathOf(subject) === '/v2/nowhere' }),
    await gateway.get(LIST_CALLS.path(subject), { key }),
  ];
  end();
  expect(replies[0]?.status).toBe(status);
  expect(Object.keys(rateLimitOf(replies[0] ?? { headers: {} })).filter((name) => name !== 'retry-after')).toEqual(
    RATE_LIMIT_NAMES,
  );
  const left = replies.map(({ headers: told }) => [
    told['x-ratelimit-minute-remaining'],
    told['x-ratelimit-hour-remaining'],
  ]);
  expect(left).toEqual([
    ['99', '999'],
    ['98', '998'],
  ]);
  const codes: Readonly<Record<string, string>> = {
    '400 of a parameter': 'parameter_invalid',
    '400 of v1': 'parameter_invalid',
    '400 of an address': 'address_too_long',
    '404 of an id': 'not_found',
    '404 of a record': 'not_found',
    '404 of a path': 'path_unknown',
    '500': 'store_unavailable',
  };
  expect(replies[0]?.headers['x-error-code']).toBe(codes[row[0]]);
});
