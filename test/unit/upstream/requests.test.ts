import { createHash } from 'node:crypto';

import { describe, expect, test, vi } from 'vitest';

import { createHttpStore } from '../../../src/upstream/http-store.ts';
import type { ListQuery } from '../../../src/upstream/store.ts';
import {
  aScorecard,
  aScoredCard,
  aTranscript,
  anApiKeyRecord,
  anEvaluation,
  dealInsights,
  EVALUATION_ID,
  SCORECARD_ID,
  WORKSPACE_A,
  WORKSPACE_B,
} from '../../support/records.ts';
import type { SeenRequest, StoreServer } from '../../support/store-server.ts';
import { ASKED, failureOf, openClient, openStore, recordOf } from './harness.ts';

const QUERY: ListQuery = { workspaceIds: [WORKSPACE_A], search: null, scorecardId: null, offset: 0, limit: 50 };
const KEY_HASH = createHash('sha256').update('a key').digest('hex');

function lastRequest(store: StoreServer): SeenRequest {
  const request = store.requests.at(-1);
  if (request === undefined) throw new Error('nothing was sent');
  return request;
}

describe('each resource is asked for at its address and comes back as its record', () => {
  test('an evaluation', async () => {
    const { store, client } = await openStore();
    store.put({ evaluations: [anEvaluation()] });
    expect(await recordOf(client.evaluation(EVALUATION_ID, ASKED))).toEqual(anEvaluation());
    expect(lastRequest(store).path).toBe('/internal/v1/evaluations/ev_1');
  });

  test('a transcript', async () => {
    const { store, client } = await openStore();
    store.put({ transcripts: [aTranscript()] });
    expect(await recordOf(client.transcript(EVALUATION_ID, ASKED))).toEqual(aTranscript());
    expect(lastRequest(store).path).toBe('/internal/v1/evaluations/ev_1/transcript');
  });

  test('a scored scorecard', async () => {
    const { store, client } = await openStore();
    store.put({ scoredCards: [aScoredCard()] });
    expect(await recordOf(client.scorecard(EVALUATION_ID, ASKED))).toEqual(aScoredCard());
    expect(lastRequest(store).path).toBe('/internal/v1/evaluations/ev_1/scorecard');
  });

  test('deal insights', async () => {
    const { store, client } = await openStore();
    store.put({ dealInsights: [dealInsights()] });
    expect(await recordOf(client.dealInsights(EVALUATION_ID, ASKED))).toEqual(dealInsights());
    expect(lastRequest(store).path).toBe('/internal/v1/evaluations/ev_1/deal-insights');
  });

  test('a rubric', async () => {
    const { store, client } = await openStore();
    store.put({ scorecards: [aScorecard()] });
    expect(await recordOf(client.rubric(SCORECARD_ID, ASKED))).toEqual(aScorecard());
    expect(lastRequest(store).path).toBe('/internal/v1/scorecards/sc_1');
  });

  test('an API key', async () => {
    const { store, client } = await openStore();
    store.put({ apiKeys: { [KEY_HASH]: anApiKeyRecord() } });
    expect(await recordOf(client.apiKey(KEY_HASH, ASKED))).toEqual(anApiKeyRecord());
    expect(lastRequest(store).path).toBe(`/internal/v1/api-keys/${KEY_HASH}`);
  });

  test('a list, of completed evaluations only', async () => {
    const { store, client } = await openStore();
    store.put({ evaluations: [anEvaluation(), anEvaluation({ _id: 'ev_2', state: 'SCORING' })] });
    expect(await recordOf(client.list(QUERY, ASKED))).toEqual({ items: [anEvaluation()], total: 1 });
    expect(lastRequest(store).path).toBe(
      `/internal/v1/evaluations?workspaceId=${WORKSPACE_A}&state=COMPLETED&offset=0&limit=50`,
    );
  });

  test('a list with everything that narrows it, encoded', async () => {
    const { store, client } = await openStore();
    const query: ListQuery = {
      workspaceIds: [WORKSPACE_A, WORKSPACE_B],
      search: 'a&limit=1 é+%',
      scorecardId: SCORECARD_ID,
      offset: 100,
      limit: 20,
    };
    expect(await recordOf(client.list(query, ASKED))).toEqual({ items: [], total: 0 });
    expect([...lastRequest(store).query]).toEqual([
      ['workspaceId', WORKSPACE_A],
      ['workspaceId', WORKSPACE_B],
      ['state', 'COMPLETED'],
      ['q', 'a&limit=1 é+%'],
      ['scorecardId', SCORECARD_ID],
      ['offset', '100'],
      ['limit', '20'],
    ]);
  });
});

describe('what every request carries', () => {
  test('the token, the request id, and nothing that was not said', async () => {
    const { store, client } = await openStore();
    await client.evaluation(EVALUATION_ID, ASKED);
    const { method, headers } = lastRequest(store);
    expect(method).toBe('GET');
    expect(headers).toEqual({
      authorization: `Bearer ${store.token}`,
      'x-request-id': 'request-1',
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': 'evalgate',
      connection: 'keep-alive',
      host: new URL(store.url).host,
    });
  });

  test('the trace context and the ETag of a copy, where there are any', async () => {
    const { store, client } = await openStore();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await client.evaluation(EVALUATION_ID, { requestId: 'request-2', traceparent, ifNoneMatch: 'W/"v1"' });
    expect(lastRequest(store).headers).toMatchObject({
      'x-request-id': 'request-2',
      traceparent,
      'if-none-match': 'W/"v1"',
    });
  });

  test('no cookie that the store has set', async () => {
    const { store, client } = await openStore();
    store.fail(503, { 'set-cookie': 'session=1' });
    await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(lastRequest(store).headers.cookie).toBeUndefined();
  });
});

describe('the base address', () => {
  test.each(['/store', '/store/', '/a/b//'])('may have the path %s', async (path) => {
    const { store } = await openStore();
    store.put({ evaluations: [anEvaluation()] });
    const { client } = openClient({ baseUrl: store.url + path, token: store.token });
    await recordOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(lastRequest(store).path).toBe(`${path.replace(/\/+$/, '')}/internal/v1/evaluations/ev_1`);
  });

  test.each([
    ['ftp://store.example.com', 'the store speaks http or https'],
    ['http://user:secret@store.example.com', "the store's address must not hold credentials"],
    ['http://store.example.com/?a=1', "the store's address must not have a query or a hash"],
    ['http://store.example.com/#a', "the store's address must not have a query or a hash"],
    ['store.example.com', "the store's address is no URL"],
  ])('%s is refused', (baseUrl, message) => {
    const options = { baseUrl, token: 'a-token', timeoutMs: 1000, maxResponseBytes: 1000, maxConnections: 1 };
    expect(() => createHttpStore(options)).toThrow(new TypeError(message));
  });
});

describe('connections', () => {
  test('one connection serves call after call', async () => {
    const { store, client } = await openStore();
    store.put({ evaluations: [anEvaluation()] });
    for (let i = 0; i < 5; i += 1) await client.evaluation(EVALUATION_ID, ASKED);
    await client.transcript(EVALUATION_ID, ASKED);
    expect(store.connections).toBe(1);
  });

  test('a 304, an error and a redirect leave the connection usable', async () => {
    const { store, client } = await openStore();
    store.put({ evaluations: [anEvaluation()] });
    const first = await client.evaluation(EVALUATION_ID, ASKED);
    const etag = first.kind === 'found' && first.etag !== null ? first.etag : '';
    await client.evaluation(EVALUATION_ID, { ...ASKED, ifNoneMatch: etag });
    const mend = store.fail(500);
    await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    mend();
    store.fail(302, { location: '/elsewhere' });
    await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(store.connections).toBe(1);
  });

  test('there are never more than allowed; further calls wait', async () => {
    const { store, client } = await openStore({ maxConnections: 2 });
    store.put({ evaluations: [anEvaluation()] });
    const gate = store.gate();
    const calls = Array.from({ length: 6 }, () => recordOf(client.evaluation(EVALUATION_ID, ASKED)));
    await store.waitForCalls(2);
    expect(store.calls()).toBe(2);
    gate.release();
    expect(await Promise.all(calls)).toHaveLength(6);
    expect(store.connections).toBe(2);
  });

  test('proxies of the environment are not used', async () => {
    const { store, client } = await openStore();
    vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:1');
    vi.stubEnv('http_proxy', 'http://127.0.0.1:1');
    vi.stubEnv('ALL_PROXY', 'http://127.0.0.1:1');
    store.put({ evaluations: [anEvaluation()] });
    expect(await recordOf(client.evaluation(EVALUATION_ID, ASKED))).toEqual(anEvaluation());
    vi.unstubAllEnvs();
  });
});

describe('what the caller should have refused is not sent', () => {
  test.each(['', '.', '..', 'a/b', 'a%2fb', 'a?b', 'ä', 'a'.repeat(65), 'ev_1\n'])('Q7: the id %j', async (id) => {
    const { store, client, calls } = await openStore();
    for (const call of [
      client.evaluation(id, ASKED),
      client.transcript(id, ASKED),
      client.scorecard(id, ASKED),
      client.dealInsights(id, ASKED),
      client.rubric(id, ASKED),
      client.apiKey(id, ASKED),
    ]) {
      await expect(call).rejects.toBeInstanceOf(TypeError);
    }
    expect(store.calls()).toBe(0);
    expect(calls).toEqual([]);
  });

  test.each([
    { workspaceIds: [] },
    { limit: 0 },
    { limit: 101 },
    { limit: 1.5 },
    { offset: -1 },
    { offset: Number.NaN },
  ])('a list with %o', async (change) => {
    const { store, client } = await openStore();
    await expect(client.list({ ...QUERY, ...change }, ASKED)).rejects.toBeInstanceOf(TypeError);
    expect(store.calls()).toBe(0);
  });
});
