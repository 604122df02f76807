/** The requests that the gateway sends to the store, to the last header. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import type { SeenRequest } from '../../support/store-server.ts';
import { putCalls, startUpstreamGateway } from '../../support/upstream-settings.ts';
import { ENDPOINTS, GET_CALL, LIST_CALLS, LIST_REPORTS } from './endpoints.ts';
import { keyFor, newSubject, putSubject, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway());

function lastRequest({ store }: TestGateway = gateway): SeenRequest {
  const request = store.requests.at(-1);
  if (request === undefined) throw new Error('nothing was sent');
  return request;
}

const ROOT = '/internal/v1';
const ADDRESSES: Readonly<Record<string, (subject: Subject) => string>> = {
  list: ({ workspaceId }) => `/evaluations?workspaceId=${workspaceId}&state=COMPLETED&offset=0&limit=50`,
  evaluation: ({ id }) => `/evaluations/${id}`,
  transcript: ({ id }) => `/evaluations/${id}/transcript`,
  scorecard: ({ id }) => `/evaluations/${id}/scorecard`,
  dealInsights: ({ id }) => `/evaluations/${id}/deal-insights`,
  rubric: ({ scorecardId }) => `/scorecards/${scorecardId}`,
};

test.each(ENDPOINTS)(
  '$name is one GET of $resource, with the token, the request id and nothing else',
  async (endpoint) => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    const before = gateway.store.calls();
    const headers = {
      cookie: 'a=b',
      'x-forwarded-for': '192.0.2.1',
      'user-agent': 'secret-agent',
      referer: 'https://secret.example/',
      'accept-language': 'de',
      'x-secret': 'c',
      'cache-control': 'no-cache',
      'if-none-match': '"secret"',
      baggage: 'secret=1',
      tracestate: 'secret=1',
    };
    const reply = await gateway.get(endpoint.path(subject), { key, headers });
    expect(reply.status).toBe(200);
    expect(gateway.store.calls() - before).toBe(1);
    const { method, path, headers: sent } = lastRequest();
    expect([method, path]).toEqual(['GET', `${ROOT}${ADDRESSES[endpoint.resource]?.(subject)}`]);
    expect(sent).toEqual({
      authorization: `Bearer ${gateway.store.token}`,
      'x-request-id': reply.headers['x-request-id'],
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': 'evalgate',
      connection: 'keep-alive',
      host: new URL(gateway.store.url).host,
    });
  },
);

test.each([
  [LIST_REPORTS, 'page=3&limit=20&'],
  [LIST_CALLS, 'page=3&pageSize=20&'],
])('a list is asked for with everything that narrows it, encoded: $0.name', async (endpoint, paging) => {
  const subject = newSubject();
  const narrowed = `${paging}search=a%26limit%3D1%20%C3%A9%2B%25&scorecardId=${subject.scorecardId}`;
  const reply = await gateway.get(`${endpoint.path(subject)}?${narrowed}`, { key: await keyFor(gateway, subject) });
  expect(reply.status).toBe(200);
  expect([...lastRequest().query]).toEqual([
    ['workspaceId', subject.workspaceId],
    ['state', 'COMPLETED'],
    ['q', 'a&limit=1 é+%'],
    ['scorecardId', subject.scorecardId],
    ['offset', '40'],
    ['limit', '20'],
  ]);
});

test('a list of a key of several workspaces asks for all of them, sorted', async () => {
  const subjects = [newSubject(), newSubject(), newSubject()];
  const workspaceIds = subjects.map(({ workspaceId }) => workspaceId);
  await gateway.get('/v2/calls', { key: await keyFor(gateway, newSubject(), { workspaceIds }) });
  expect(lastRequest().query.getAll('workspaceId')).toEqual(workspaceIds.toSorted());
});

test('the trace context of the consumer is passed on', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const subject = newSubject();
  await gateway.get(GET_CALL.path(subject), { key: await keyFor(gateway, subject), headers: { traceparent } });
  expect(lastRequest().headers['traceparent']).toBe(traceparent);
});

describe('the ETag of the store', () => {
  test.each(['"strong"', 'W/"weak"', 'unquoted'])(
    '%s comes back in If-None-Match, and a 304 renews the copy',
    async (etag) => {
      const subject = putSubject(gateway.store);
      const key = await keyFor(gateway, subject);
      const body = JSON.stringify(gateway.store.evaluations.get(subject.id));
      const end = gateway.store.override(/^/, ({ headers }, response) => {
        response.writeHead(headers['if-none-match'] === etag ? 304 : 200, { etag }).end(body);
      });
      const first = await gateway.get(GET_CALL.path(subject), { key });
      gateway.clock.advance(2 * 3_600_000);
      const renewed = await gateway.get(GET_CALL.path(subject), { key });
      end();
      expect(lastRequest().headers['if-none-match']).toBe(etag);
      expect([renewed.status, renewed.text, renewed.headers['age']]).toEqual([200, first.text, '0']);
    },
  );

  test.each([undefined, 'é'.repeat(3), 'x'.repeat(257)])('%s is not sent back', async (etag) => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    const body = JSON.stringify(gateway.store.evaluations.get(subject.id));
    const end = gateway.store.override(/^/, (_request, response) => {
      response.writeHead(200, etag === undefined ? {} : { etag }).end(body);
    });
    await gateway.get(GET_CALL.path(subject), { key });
    gateway.clock.advance(2 * 3_600_000);
    const again = await gateway.get(GET_CALL.path(subject), { key });
    end();
    expect([again.status, again.headers['age']]).toEqual([200, '0']);
    expect(lastRequest().headers['if-none-match']).toBeUndefined();
  });
});

test('the base address may have a path', async () => {
  for (const prefix of ['/store', '/a/b//']) {
    const { store } = gateway;
    const other = await startTestGateway({ store, env: { UPSTREAM_URL: store.url + prefix } });
    const key = await other.issueKey();
    await other.get('/v2/calls/ev_1', { key });
    expect(lastRequest().path).toBe(`${prefix.replace(/\/+$/, '')}${ROOT}/evaluations/ev_1`);
    await other.close();
  }
});

test('proxies of the environment are not used', async () => {
  for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY']) vi.stubEnv(name, 'http://127.0.0.1:1');
  onTestFinished(() => void vi.unstubAllEnvs());
  const direct = await startUpstreamGateway();
  const [id = ''] = putCalls(direct, 1);
  expect((await direct.read(id)).status).toBe(200);
});

describe('connections', () => {
  test('one serves call after call, failures and redirects included, and no cookie is sent back', async () => {
    const reader = await startUpstreamGateway();
    const ids = putCalls(reader, 5);
    for (const id of ids) expect((await reader.read(id)).status).toBe(200);
    for (const status of [500, 404, 302]) {
      const end = reader.store.fail(status, { location: '/elsewhere', 'set-cookie': 'session=1' });
      expect((await reader.read(`failing_${status}`)).status).toBe(500);
      end();
    }
    expect((await reader.read('none')).status).toBe(404);
    expect(lastRequest(reader).headers.cookie).toBeUndefined();
    expect(reader.store.connections).toBe(1);
  });

  test('there are never more than upstream.maxConnections; further calls wait', async () => {
    const reader = await startUpstreamGateway({ maxConnections: 2, reservePercent: 0, queueTimeout: '60s' });
    const ids = putCalls(reader, 6);
    const gate = reader.store.hold();
    const replies = ids.map((id) => reader.read(id));
    await reader.store.waitForCalls(2);
    await vi.waitFor(async () => expect(await reader.metric('evalgate_store_calls_queued')).toBe(4));
    expect(reader.store.calls()).toBe(2);
    gate.release();
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual(ids.map(() => 200));
    expect(reader.store.connections).toBe(2);
  });
});
