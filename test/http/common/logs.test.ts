import { beforeEach, describe, expect, test } from 'vitest';
import { linesOf } from '../../support/admin.ts';
import { forFile } from '../../support/opened.ts';
import { newToken } from '../../../src/keys/token.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, GET_CALL, LIST_REPORTS } from './endpoints.ts';
import { deprecateKey } from './keys.ts';
import { newSubject, putSubject, type Subject } from './subject.ts';

let subject: Subject;
let key: { readonly keyId: string; readonly token: string };

const gateway = await forFile(startTestGateway({ env: { LOG_LEVEL: 'trace' } }));
beforeEach(async () => {
  subject = putSubject(gateway.store);
  key = await gateway.issue({ workspaceIds: [subject.workspaceId], perMinute: 1000, perHour: 1000 });
});

/** The one line about that request. */
async function lineOf(reply: Pick<Reply, 'headers'>): Promise<Record<string, unknown>> {
  // It is written when the connection has taken the answer; one more exchange later it is there.
  await gateway.admin('GET', '/livez');
  const requestId = reply.headers['x-request-id'];
  const lines = linesOf(gateway).filter((line) => line.msg === 'request' && line.requestId === requestId);
  expect(lines).toHaveLength(1);
  const [line = {}] = lines;
  return line;
}

function withoutProcess(line: Record<string, unknown>): Record<string, unknown> {
  const { time, service, pid, durationMs, ...rest } = line;
  expect(durationMs).toBeTypeOf('number');
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect([service, pid]).toEqual(['evalgate', process.pid]);
  return rest;
}

describe('one line a request', () => {
  test.each(ENDPOINTS)('$name: id, key, route, status, time and cache state, and nothing else', async (endpoint) => {
    for (const cache of ['miss', 'hit']) {
      const reply = await gateway.get(endpoint.path(subject), { key: key.token });
      const line = await lineOf(reply);
      expect(withoutProcess(line)).toEqual({
        level: 'info',
        msg: 'request',
        requestId: reply.headers['x-request-id'],
        keyId: key.keyId,
        surface: endpoint.surface,
        route: endpoint.route,
        method: 'GET',
        status: 200,
        cache,
      });
    }
  });

  test('how the cache answered: stale and stale on error too', async () => {
    const ask = (): Promise<Reply> => gateway.get(GET_CALL.path(subject), { key: key.token });
    await ask();
    gateway.clock.advance(400_000);
    expect(await lineOf(await ask())).toMatchObject({ status: 200, cache: 'stale-while-revalidate' });
    gateway.clock.advance(2 * 3_600_000);
    const end = gateway.store.fail(503);
    expect(await lineOf(await ask())).toMatchObject({ status: 200, cache: 'stale-if-error' });
    end();
  });

  test.each([
    [304, '/v2/calls', { 'if-none-match': '*' }, { route: '/v2/calls', cache: 'miss' }],
    [400, '/v2/calls?page=0', {}, { route: '/v2/calls', cache: null }],
    [403, '/v1/workspaces/x/reports', {}, { route: '/v1/workspaces/{workspaceId}/reports', cache: null }],
    [404, '/v2/calls/none', {}, { route: '/v2/calls/{callId}', cache: null }],
    [404, '/v2/nowhere', {}, { surface: 'v2', route: null, cache: null }],
    [404, '/nowhere', {}, { surface: 'other', route: null, keyId: null, cache: null }],
    [200, '/openapi.json', {}, { surface: 'other', route: null, keyId: null, cache: null }],
  ])('%i %s', async (status, path, headers, expected) => {
    const reply = await gateway.get(path, { key: key.token, headers, isUndocumented: true });
    expect(await lineOf(reply)).toMatchObject({ keyId: key.keyId, level: 'info', status, ...expected });
  });

  test.each([
    ['unknown', { key: newToken() }],
    ['malformed', { key: 'evg_nonsense' }],
    ['missing', {}],
  ])('401: the reason (%s) and whose it was; no key is named', async (reason, ask) => {
    const line = await lineOf(await gateway.get('/v2/calls', ask));
    expect(line).toMatchObject({ level: 'info', status: 401, keyId: null, route: '/v2/calls' });
    expect(line).toMatchObject({ reason, address: '127.0.0.1' });
  });

  test('K2: 403 of an inactive key: the key is named all the same, on every path', async () => {
    await deprecateKey(gateway, key.keyId);
    for (const [path, status] of [
      ['/v2/calls', 403],
      ['/v2/nowhere', 404],
    ] as const) {
      const reply = await gateway.get(path, { key: key.token, isUndocumented: true });
      const refused = status === 403 ? { reason: 'inactive', address: '127.0.0.1' } : {};
      expect(await lineOf(reply)).toMatchObject({ status, keyId: key.keyId, ...refused });
    }
  });

  test('405 and 429', async () => {
    const { token, keyId } = await gateway.issue({ workspaceIds: [subject.workspaceId], perMinute: 1 });
    const refused = await gateway.get('/v2/calls', { key: token, method: 'DELETE' });
    expect(await lineOf(refused)).toMatchObject({ status: 405, method: 'DELETE', route: null });
    const limited = await gateway.get('/v2/calls', { key: token });
    expect(await lineOf(limited)).toMatchObject({ level: 'info', status: 429, route: '/v2/calls' });
    expect(await lineOf(limited)).toMatchObject({ keyId, reason: 'minute', address: '127.0.0.1' });
  });

  test('500 that the store caused: with the private cause, at info, because its turn is told once', async () => {
    const end = gateway.store.fail(502);
    const reply = await gateway.get(LIST_REPORTS.path(subject), { key: key.token });
    end();
    expect(await lineOf(reply)).toMatchObject({
      level: 'info',
      status: 500,
      cache: null,
      failure: 'the store answered with 502 FAILURE (list)',
    });
  });

  test('a client that goes away before its answer', async () => {
    const gate = gateway.store.hold();
    const before = gateway.store.calls();
    const controller = new AbortController();
    const url = `${gateway.publicUrl}${GET_CALL.path(newSubject())}`;
    const headers = { authorization: `Bearer ${key.token}`, 'x-request-id': `gone-${subject.id.slice(0, 20)}` };
    const left = fetch(url, { headers, signal: controller.signal }).catch(() => 'left');
    await gateway.store.waitForCalls(before + 1);
    controller.abort();
    expect(await left).toBe('left');
    gate.release();
    const line = await lineOf({ headers });
    expect(line).toMatchObject({ aborted: true, keyId: key.keyId, route: '/v2/calls/{callId}' });
  });
});

test('K2: no line holds a path, a query, a key, the token or the address of the store, at any level', async () => {
  const secret = 'xyzzy-secret';
  const id = `${secret}-id`;
  putSubject(gateway.store, { ...subject, id }, { title: `${secret}-title` });
  const { token } = key;
  const never = newToken();
  const paths = [
    `${LIST_REPORTS.path(subject)}?search=${secret}-search&scorecardId=${secret}`,
    `${LIST_REPORTS.path(subject)}?search=${secret}-search`,
    `/v2/calls?search=${secret}-search&${secret}-name=${secret}`,
    `/v2/calls?search=${secret}-search&page=2`,
    `/v2/calls?workspaceId=${secret}`,
    `/v2/calls/${id}/transcript?maxChars=${secret}`,
    `/v2/calls/${id}`,
    `/v2/calls/${id}/transcript`,
    `/v2/${secret}/nowhere?${secret}`,
    `/${secret}`,
    `/v1/workspaces/${secret}/reports/${secret}`,
    `/v2/calls?key=${token}`,
    `/v2/calls/${token}`,
    `/v2/calls/${'%' + token.charCodeAt(0).toString(16) + token.slice(1)}/scorecard`,
  ];
  const headers = {
    cookie: secret,
    referer: `https://${secret}.example/`,
    'user-agent': secret,
    'x-forwarded-for': secret,
    'x-api-key': token,
    traceparent: secret,
    // A text in the form of an id is echoed and logged; a key in it must not be.
    'x-request-id': token,
  };
  const causes = [() => () => {}, () => gateway.store.fail(503), () => gateway.store.resetConnections()];
  for (const cause of causes) {
    const end = cause();
    for (const path of paths) {
      for (const authorization of [`Bearer ${token}`, `Bearer ${never}`, `Basic ${secret}`, `Bearer ${secret}`]) {
        await gateway.get(path, { headers: { ...headers, authorization }, isUndocumented: true });
      }
    }
    gateway.clock.advance(2 * 3_600_000);
    end();
  }
  await gateway.admin('GET', '/livez');
  const lines = gateway.logLines.join('');
  expect(gateway.logLines.filter((line) => line.includes('"msg":"request"')).length).toBeGreaterThan(150);
  const store = new URL(gateway.store.url);
  const secrets = {
    token,
    never,
    'the random part of the token': token.slice(4),
    'the token of the store': gateway.store.token,
    'the address of the store': store.host,
    'its port': `:${store.port}`,
    'its paths': '/internal/v1',
    'a search': `${secret}-search`,
    'a title': `${secret}-title`,
    'a path': `/${secret}`,
    'a name of a parameter': `${secret}-name`,
    'credentials of another scheme': `Basic ${secret}`,
    'a path of the reports': `workspaces/${subject.workspaceId}`,
    'a query string': '?search',
  };
  const found = Object.entries(secrets).filter(([, text]) => lines.includes(text));
  expect(found).toEqual([]);
  // Ids of records do appear if the store's answer about them is what failed, and nowhere else.
  const withId = gateway.logLines.filter((line) => line.includes(secret) && !line.includes('"err"'));
  expect(withId).toEqual([]);
});

test('every line is one JSON object', () => {
  expect(gateway.logLines.length).toBeGreaterThan(100);
  for (const line of gateway.logLines) {
    expect(line.endsWith('\n')).toBe(true);
    expect(line.slice(0, -1)).not.toContain('\n');
    expect(JSON.parse(line)).toBeTypeOf('object');
  }
});
