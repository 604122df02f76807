import { describe, expect, test } from 'vitest';

import { aTranscript, anEvaluation, EVALUATION_ID, SCORECARD_ID, WORKSPACE_A } from '../../support/records.ts';
import { sendError } from '../../support/store-server.ts';
import { ASKED, failureOf, foundOf, openClient, openStore } from './harness.ts';

const QUERY = { workspaceIds: [WORKSPACE_A], search: null, scorecardId: null, offset: 0, limit: 50 };

describe('200', () => {
  test('comes with the ETag as it was sent and the size of the decoded body', async () => {
    const { store, client } = await openStore();
    const body = JSON.stringify(anEvaluation({ title: 'Größe' }));
    store.override(/./, (_request, response) => {
      response.setHeader('etag', 'W/"abc"');
      response.end(body);
    });
    const found = await foundOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(found.etag).toBe('W/"abc"');
    expect(found.bytes).toBe(Buffer.byteLength(body));
    expect(found.record.title).toBe('Größe');
  });

  test('without an ETag has none', async () => {
    const { store, client } = await openStore();
    store.override(/./, (_request, response) => response.end(JSON.stringify(anEvaluation())));
    expect((await foundOf(client.evaluation(EVALUATION_ID, ASKED))).etag).toBeNull();
  });

  test.each([['text/plain'], ['text/html; charset=utf-8']])('with JSON as %s is an answer', async (contentType) => {
    const { store, client } = await openStore();
    store.override(/./, (_request, response) => {
      response.setHeader('content-type', contentType);
      response.end(JSON.stringify(anEvaluation()));
    });
    expect((await foundOf(client.evaluation(EVALUATION_ID, ASKED))).record).toEqual(anEvaluation());
  });
});

describe('304', () => {
  test('is not-modified to who asked with an ETag', async () => {
    const { store, client, calls } = await openStore();
    store.put({ evaluations: [anEvaluation()] });
    const { etag } = await foundOf(client.evaluation(EVALUATION_ID, ASKED));
    const again = await client.evaluation(EVALUATION_ID, { ...ASKED, ifNoneMatch: etag ?? '' });
    expect(again).toEqual({ kind: 'not-modified' });
    expect(calls.map(({ outcome, status }) => ({ outcome, status }))).toEqual([
      { outcome: 'found', status: 200 },
      { outcome: 'not-modified', status: 304 },
    ]);
  });

  test('is a failure to who did not', async () => {
    const { store, client } = await openStore();
    store.fail(304);
    expect(await failureOf(client.evaluation(EVALUATION_ID, ASKED))).toMatchObject({ kind: 'refused', status: 304 });
  });
});

describe('Q9: 404', () => {
  test.each(['transcript', 'scorecard', 'dealInsights'] as const)('NOT_READY is absent for %s', async (part) => {
    const { store, client, calls } = await openStore();
    store.put({ evaluations: [anEvaluation()] });
    expect(await client[part](EVALUATION_ID, ASKED)).toEqual({ kind: 'absent', code: 'NOT_READY' });
    expect(calls).toMatchObject([{ resource: part, outcome: 'absent', status: 404 }]);
  });

  test.each(['evaluation', 'transcript', 'scorecard', 'dealInsights', 'rubric'] as const)(
    'NOT_FOUND is absent for %s',
    async (resource) => {
      const { client } = await openStore();
      expect(await client[resource](SCORECARD_ID, ASKED)).toEqual({ kind: 'absent', code: 'NOT_FOUND' });
    },
  );

  test('NOT_FOUND is absent for an API key', async () => {
    const { client } = await openStore();
    expect(await client.apiKey('0'.repeat(64), ASKED)).toEqual({ kind: 'absent', code: 'NOT_FOUND' });
  });

  test.each(['evaluation', 'rubric'] as const)('NOT_READY is absent for %s too', async (resource) => {
    const { store, client } = await openStore();
    store.override(/./, (_request, response) => sendError(response, 404, 'NOT_READY'));
    expect(await client[resource](EVALUATION_ID, ASKED)).toEqual({ kind: 'absent', code: 'NOT_READY' });
  });

  test.each(['NOT_FOUND', 'NOT_READY'])('%s is a failure for a list, which can only be empty', async (code) => {
    const { store, client } = await openStore();
    store.override(/./, (_request, response) => sendError(response, 404, code));
    expect(await failureOf(client.list(QUERY, ASKED))).toMatchObject({ kind: 'refused', status: 404 });
  });

  test.each([
    ['another code', '{"code":"GONE_FISHING","message":"x"}'],
    ['a code of another case', '{"code":"not_found"}'],
    ['no code', '{"message":"x"}'],
    ['a code that is no string', '{"code":["NOT_FOUND"]}'],
    ['a code further down', '{"error":{"code":"NOT_FOUND"}}'],
    ['an HTML page', '<h1>404 NOT_FOUND</h1>'],
    ['an empty body', ''],
    ['a body too large to be an error', `{"code":"NOT_FOUND","message":"${'x'.repeat(10_000)}"}`],
  ])('with %s is a failure', async (_name, body) => {
    const { store, client } = await openStore();
    store.override(/./, (_request, response) => {
      response.writeHead(404);
      response.end(body);
    });
    expect(await failureOf(client.transcript(EVALUATION_ID, ASKED))).toMatchObject({ kind: 'refused', status: 404 });
  });

  test('counts only with that status', async () => {
    const { store, client } = await openStore();
    store.override(/./, (_request, response) => sendError(response, 410, 'NOT_FOUND'));
    expect(await failureOf(client.evaluation(EVALUATION_ID, ASKED))).toMatchObject({ kind: 'refused', status: 410 });
  });
});

describe('every other status is a refusal that keeps it', () => {
  test.each([201, 204, 206, 300, 301, 302, 303, 307, 308, 400, 401, 403, 429, 500, 502, 503, 504])(
    '%i',
    async (status) => {
      const { store, client, calls } = await openStore();
      store.put({ transcripts: [aTranscript()] });
      store.fail(status, { location: '/internal/v1/evaluations/other' });
      const failure = await failureOf(client.transcript(EVALUATION_ID, ASKED));
      expect(failure).toMatchObject({ kind: 'refused', status, retryAfterMs: null });
      expect(calls).toMatchObject([{ resource: 'transcript', outcome: 'refused', status, requestId: 'request-1' }]);
      expect(store.calls(), 'neither followed nor tried again').toBe(1);
    },
  );

  test("the message tells the store's code", async () => {
    const { client } = await openStore({ token: 'wrong' });
    const failure = await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(failure.message).toBe('the store answered evaluation with 401 UNAUTHENTICATED');
  });

  test('Retry-After in seconds is kept', async () => {
    const { store, client } = await openStore();
    store.fail(503, { 'retry-after': '7' });
    expect((await failureOf(client.evaluation(EVALUATION_ID, ASKED))).retryAfterMs).toBe(7000);
  });

  test("Retry-After as a date counts from the gateway's own clock", async () => {
    const nowMs = Date.UTC(2026, 0, 1, 0, 0, 0);
    const { store, client } = await openStore({ clock: { nowMs: () => nowMs, nowMicros: () => 0 } });
    store.fail(429, { 'retry-after': 'Thu, 01 Jan 2026 00:01:30 GMT' });
    expect((await failureOf(client.evaluation(EVALUATION_ID, ASKED))).retryAfterMs).toBe(90_000);
  });
});

test('the duration of a call is the time by the clock that was handed in', async () => {
  let nowMicros = 5_000_000;
  const { store, client, calls } = await openStore({ clock: { nowMs: () => 0, nowMicros: () => nowMicros } });
  store.override(/./, (_request, response) => {
    nowMicros += 120_500;
    response.end(JSON.stringify(anEvaluation()));
  });
  await client.evaluation(EVALUATION_ID, ASKED);
  expect(calls).toEqual([
    {
      resource: 'evaluation',
      outcome: 'found',
      status: 200,
      failure: null,
      durationMs: 120.5,
      requestId: 'request-1',
    },
  ]);
});

test('without hooks everything works the same', async () => {
  const { store } = await openStore();
  store.put({ evaluations: [anEvaluation(), anEvaluation({ _id: 'ev_2', title: 'x' })] });
  store.evaluations.set('ev_3', { ...anEvaluation({ _id: 'ev_3' }), title: null });
  const { client } = openClient({ baseUrl: store.url, token: store.token, hooks: {} });
  expect((await foundOf(client.list(QUERY, ASKED))).record.items.map((item) => item['_id'])).toEqual(['ev_2', 'ev_1']);
});
