import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { SCOPES } from '../../../src/keys/key.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, type EndpointRow, LIST_CALLS, LIST_REPORTS } from './endpoints.ts';
import { cachingOf, RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { activateKey, deprecateKey, inHours, revokeKey } from './keys.ts';
import { keyFor, newSubject, putSubject, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway());

/** The one text of the route, and nothing that tells more (K7). */
function expectForbidden(reply: Reply, endpoint: EndpointRow): void {
  expect(reply.status).toBe(403);
  expect(reply.text).toBe(endpoint.forbidden);
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(reply.headers['www-authenticate']).toBeUndefined();
  expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
}

/** Fills the cache, so that a refusal is seen to come before what is cached. */
async function warm(endpoint: EndpointRow): Promise<Subject> {
  const subject = putSubject(gateway.store);
  const reply = await gateway.get(endpoint.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.status).toBe(200);
  return subject;
}

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test.each([
    ['deprecated', deprecateKey],
    ['revoked', revokeKey],
  ] as const)('K3, K4, K7: a key that is %s', async (_status, end) => {
    const subject = await warm(endpoint);
    const { keyId, token: key } = await gateway.issue({ workspaceIds: [subject.workspaceId] });
    expect((await gateway.get(endpoint.path(subject), { key })).status).toBe(200);
    await end(gateway, keyId);
    const reply = await gateway.get(endpoint.path(subject), { key });
    expectForbidden(reply, endpoint);
    expect(rateLimitOf(reply)).toEqual({});
  });

  test('K4, K7: a key that has expired, from the very millisecond on', async () => {
    const subject = await warm(endpoint);
    const key = await keyFor(gateway, subject, { expiresAt: inHours(gateway, 1) });
    gateway.clock.advance(3_599_999);
    expect((await gateway.get(endpoint.path(subject), { key })).status).toBe(200);
    gateway.clock.advance(1);
    const reply = await gateway.get(endpoint.path(subject), { key });
    expectForbidden(reply, endpoint);
    expect(rateLimitOf(reply)).toEqual({});
  });

  test('K4, K5, K6: a key with every scope but the one that is needed', async () => {
    const subject = await warm(endpoint);
    const key = await keyFor(gateway, subject, { scopes: SCOPES.filter((scope) => scope !== endpoint.scope) });
    const reply = await gateway.get(endpoint.path(subject), { key });
    expectForbidden(reply, endpoint);
    expect(Object.keys(rateLimitOf(reply))).toEqual(RATE_LIMIT_NAMES);
  });

  test('K4: that scope alone is enough', async () => {
    const subject = await warm(endpoint);
    const key = await keyFor(gateway, subject, { scopes: [endpoint.scope] });
    expect((await gateway.get(endpoint.path(subject), { key })).status).toBe(200);
  });
});

test('K3: a deprecated key that is made active again is as good as before', async () => {
  const subject = putSubject(gateway.store);
  const { keyId, token: key } = await gateway.issue({ workspaceIds: [subject.workspaceId] });
  await deprecateKey(gateway, keyId);
  expect((await gateway.get(LIST_REPORTS.path(subject), { key })).status).toBe(403);
  await activateKey(gateway, keyId);
  expect((await gateway.get(LIST_REPORTS.path(subject), { key })).status).toBe(200);
});

describe.each(ENDPOINTS.filter(({ surface }) => surface === 'v1'))('$name', (endpoint) => {
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
  ])('K5, K7: a workspace of the path that is %s', async (_what, workspaceOf) => {
    const other = await warm(endpoint);
    const key = await keyFor(gateway, putSubject(gateway.store));
    const before = gateway.store.calls();
    const reply = await gateway.get(endpoint.path({ ...other, workspaceId: workspaceOf(other.workspaceId) }), { key });
    expectForbidden(reply, endpoint);
    expect(Object.keys(rateLimitOf(reply))).toEqual(RATE_LIMIT_NAMES);
    expect(gateway.store.calls()).toBe(before);
  });

  test("K5, K8: another's workspace comes before a bad query, a bad id and a missing report", async () => {
    const key = await keyFor(gateway, newSubject());
    const path = endpoint.path({ ...newSubject(), id: '..%2f..' });
    expectForbidden(await gateway.get(`${path}?search=${'a'.repeat(101)}&scorecardId=x`, { key }), endpoint);
  });

  test('K5: a key of two workspaces may see both and no third', async () => {
    const subjects = [await warm(endpoint), await warm(endpoint), await warm(endpoint)];
    const workspaceIds = subjects.slice(0, 2).map(({ workspaceId }) => workspaceId);
    const key = await keyFor(gateway, newSubject(), { workspaceIds });
    const replies = await Promise.all(subjects.map((subject) => gateway.get(endpoint.path(subject), { key })));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 403]);
  });
});

describe('list calls', () => {
  test.each([
    ['alone', (id: string) => `workspaceId=${id}`],
    ['in capitals', (id: string) => `workspaceId=${id.toUpperCase()}`],
    ['before every other fault', (id: string) => `page=0&pageSize=x&search=&scorecardId=!&y=1&workspaceId=${id}`],
  ])("K6, K7: a workspaceId that is not the key's, %s", async (_what, queryOf) => {
    const other = await warm(LIST_CALLS);
    const key = await keyFor(gateway, putSubject(gateway.store));
    const before = gateway.store.calls();
    const reply = await gateway.get(`/v2/calls?${queryOf(other.workspaceId)}`, { key });
    expectForbidden(reply, LIST_CALLS);
    expect(Object.keys(rateLimitOf(reply))).toEqual(RATE_LIMIT_NAMES);
    expect(gateway.store.calls()).toBe(before);
  });

  test('K4, K6: a missing scope comes before a malformed workspaceId', async () => {
    const key = await keyFor(gateway, newSubject(), { scopes: ['reports.read', 'coaching.read'] });
    expectForbidden(await gateway.get('/v2/calls?workspaceId=mine&page=0', { key }), LIST_CALLS);
  });
});
