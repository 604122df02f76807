import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { GET_CALL, GET_REPORT, LIST_CALLS, LIST_REPORTS } from './endpoints.ts';
import { RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { deprecateKey, inHours, revokeKey } from './keys.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const gateway = await forFile(startTestGateway());

const FAULTY = '?x=1&page=0&search=';

describe('K8: of several faults the first in order is told', () => {
  test('authentication before all else', async () => {
    const foreign = `&workspaceId=${newSubject().workspaceId}`;
    for (const path of [`/v2/calls${FAULTY}${foreign}`, '/v2/calls/a%20b?x=1', '/v1/workspaces/x/reports/y']) {
      expect((await gateway.get(path)).status).toBe(401);
    }
  });

  test('the quota before scope, workspace, query and id', async () => {
    const subject = newSubject();
    const key = await keyFor(gateway, subject, { scopes: ['coaching.read'], perMinute: 1, perHour: 1 });
    expect((await gateway.get(`/v2/calls${FAULTY}`, { key })).status).toBe(403);
    for (const path of [
      `/v2/calls${FAULTY}`,
      '/v2/calls/a%20b?x=1',
      '/v1/workspaces/x/reports',
      GET_REPORT.path(subject),
    ]) {
      expect((await gateway.get(path, { key })).status).toBe(429);
    }
  });

  test('the scope before query and id', async () => {
    const key = await keyFor(gateway, newSubject(), { scopes: ['reports.read'] });
    for (const path of [`/v2/calls${FAULTY}`, '/v2/calls/a%20b?x=1', '/v2/scorecards/none/rubric?x=1']) {
      expect((await gateway.get(path, { key })).status).toBe(403);
    }
  });

  test('the query before the id and the store', async () => {
    const subject = newSubject();
    const key = await keyFor(gateway, subject);
    const end = gateway.store.fail(503);
    const paths = [`/v2/calls${FAULTY}`, '/v2/calls/a%20b?x=1', `${GET_CALL.path(subject)}/transcript?maxChars=0`];
    const statuses = await Promise.all(paths.map(async (path) => (await gateway.get(path, { key })).status));
    end();
    expect(statuses).toEqual([400, 400, 400]);
  });

  test('an inactive key is refused before its quota is looked at', async () => {
    const subject = newSubject();
    const { keyId, token: key } = await gateway.issue({
      workspaceIds: [subject.workspaceId],
      perMinute: 1,
      perHour: 1,
    });
    await gateway.get(LIST_REPORTS.path(subject), { key });
    expect((await gateway.get(LIST_REPORTS.path(subject), { key })).status).toBe(429);
    await revokeKey(gateway, keyId);
    const reply = await gateway.get(LIST_REPORTS.path(subject), { key });
    expect(reply.status).toBe(403);
    expect(rateLimitOf(reply)).toEqual({});
  });
});

describe('K8: every request with an active key counts, whatever its outcome', () => {
  const LIMITS = { perMinute: 100, perHour: 1000 };

  test.each([
    ['200', 200, LIST_REPORTS.path, {}],
    ['304', 304, LIST_REPORTS.path, { 'if-none-match': '*' }],
    ['400', 400, () => '/v2/calls?page=0', {}],
    ['403 of a workspace', 403, () => LIST_REPORTS.path(newSubject()), {}],
    ['403 of a workspaceId', 403, () => `/v2/calls?workspaceId=${newSubject().workspaceId}`, {}],
    ['404 of an id', 404, () => '/v2/calls/a.b', {}],
    ['404 of a record', 404, () => GET_CALL.path(newSubject()), {}],
    ['404 of a path', 404, () => '/v2/nowhere', {}],
  ] as const)('%s', async (_what, status, pathOf, headers) => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject, LIMITS);
    const isUndocumented = pathOf(subject) === '/v2/nowhere';
    const reply = await gateway.get(pathOf(subject), { key, headers, isUndocumented });
    expect(reply.status).toBe(status);
    expect(reply.headers['x-ratelimit-minute-remaining']).toBe('99');
    expect(reply.headers['x-ratelimit-hour-remaining']).toBe('999');
    const next = await gateway.get(LIST_CALLS.path(subject), { key });
    expect(next.headers['x-ratelimit-minute-remaining']).toBe('98');
    expect(next.headers['x-ratelimit-hour-remaining']).toBe('998');
  });

  test('405', async () => {
    const key = await keyFor(gateway, newSubject(), LIMITS);
    const reply = await gateway.get('/v2/calls', { key, method: 'DELETE' });
    expect(reply.status).toBe(405);
    expect(reply.headers['x-ratelimit-hour-remaining']).toBe('999');
  });

  test('403 of a scope', async () => {
    const key = await keyFor(gateway, newSubject(), { ...LIMITS, scopes: ['coaching.read'] });
    const reply = await gateway.get('/v2/calls', { key });
    expect(reply.status).toBe(403);
    expect(reply.headers['x-ratelimit-hour-remaining']).toBe('999');
  });

  test('500', async () => {
    const key = await keyFor(gateway, newSubject(), LIMITS);
    const end = gateway.store.fail(500);
    const reply = await gateway.get('/v2/calls', { key });
    end();
    expect(reply.status).toBe(500);
    expect(reply.headers['x-ratelimit-hour-remaining']).toBe('999');
  });

  test('K3: an inactive key never counts, so a successor that shares its quota loses nothing by it', async () => {
    const subject = newSubject();
    const { keyId, token: key } = await gateway.issue({ workspaceIds: [subject.workspaceId], ...LIMITS });
    await deprecateKey(gateway, keyId);
    for (let request = 0; request < 3; request += 1) {
      const reply = await gateway.get('/v2/calls', { key });
      expect(reply.status).toBe(403);
      expect(rateLimitOf(reply)).toEqual({});
    }
    await gateway.admin('PATCH', `/api/keys/${keyId}`, { status: 'active' });
    const reply = await gateway.get('/v2/calls', { key });
    expect(reply.headers['x-ratelimit-hour-remaining']).toBe('999');
  });

  test('an expired key never counts', async () => {
    const key = await keyFor(gateway, newSubject(), { ...LIMITS, expiresAt: inHours(gateway, 1) });
    gateway.clock.advance(3_600_000);
    const reply = await gateway.get('/v2/calls', { key });
    expect(reply.status).toBe(403);
    expect(rateLimitOf(reply)).toEqual({});
  });

  test('R2: all of the headers are on each of them', async () => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject, LIMITS);
    for (const path of [LIST_REPORTS.path(subject), '/v2/calls?page=0', '/v1/workspaces/x/reports', '/v2/calls/none']) {
      expect(Object.keys(rateLimitOf(await gateway.get(path, { key })))).toEqual(RATE_LIMIT_NAMES);
    }
  });
});
