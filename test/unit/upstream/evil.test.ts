import { inspect } from 'node:util';

import { describe, expect, test } from 'vitest';

import type { StoreErrorKind } from '../../../src/upstream/store.ts';
import { EVIL_BEHAVIOURS, type Evil } from '../../support/evil-store.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../../support/records.ts';
import { ASKED, failureOf, openClient, openEvilStore, openStore, recordOf } from './harness.ts';

const QUERY = { workspaceIds: [WORKSPACE_A], search: null, scorecardId: null, offset: 0, limit: 50 };

/** Every behaviour that ends in a failure of the call, and what is known of it. */
const FAILURES: readonly (readonly [Evil, StoreErrorKind, number | null, string])[] = [
  ['gzip bomb', 'garbled', 200, 'the body is larger than 8388608 bytes'],
  ['endless body', 'garbled', 200, 'the body is larger than 8388608 bytes'],
  ['endless error body', 'refused', 503, 'the store answered evaluation with 503'],
  ['deep arrays', 'garbled', 200, "the store's answer is nested deeper than 64 levels"],
  ['deep objects', 'garbled', 200, "the store's answer is nested deeper than 64 levels"],
  ['deep insights', 'garbled', 200, "the store's answer is nested deeper than 64 levels"],
  ['millions of values', 'garbled', 200, "the store's answer has more than 250000 values"],
  ['a hundred thousand faults', 'malformed', 200, "the store's evaluation ev_1 is malformed at people"],
  ['half a body with a length', 'unreachable', 200, 'the connection to the store failed half-way through the answer'],
  ['half a chunked body', 'unreachable', 200, 'the connection to the store failed half-way through the answer'],
  ['half a gzip body', 'garbled', 200, 'the body cannot be decoded (Z_BUF_ERROR)'],
  ['broken gzip', 'garbled', 200, 'the body cannot be decoded (Z_DATA_ERROR)'],
  ['an unasked coding', 'garbled', 200, 'the body has a content coding that was not asked for'],
  ['cut-off JSON', 'garbled', 200, "the store's answer is not JSON"],
  ['an HTML page', 'garbled', 200, "the store's answer is markup, not JSON"],
  ['an empty body', 'garbled', 200, "the store's answer is empty"],
  ['reset before headers', 'unreachable', null, 'the connection to the store failed before the answer (ECONNRESET)'],
  ['reset half-way', 'unreachable', 200, 'the connection to the store failed half-way through the answer'],
  [
    'closed without an answer',
    'unreachable',
    null,
    'the connection to the store failed before the answer (ECONNRESET)',
  ],
  ['redirect', 'refused', 302, 'the store answered evaluation with 302'],
  ['redirect to itself', 'refused', 307, 'the store answered evaluation with 307'],
  ['header garbage', 'garbled', null, 'the answer is not HTTP (HPE_INVALID_HEADER_TOKEN)'],
  ['another protocol', 'garbled', null, 'the answer is not HTTP (HPE_INVALID_CONSTANT)'],
  ['headers without end', 'garbled', null, 'the answer is not HTTP (HPE_HEADER_OVERFLOW)'],
  ['endless gzip of nothing', 'garbled', 200, 'the body has far more bytes than what it holds'],
  ['endless interim responses', 'garbled', null, 'the store sent more than 16 interim responses'],
  ['wrong id', 'malformed', 200, 'the store answered for another id than evaluation ev_1 (at _id)'],
];

/** What goes on until the deadline ends it. */
const TIMEOUTS: readonly Evil[] = [
  'slow drip of a body',
  'slow drip of headers',
  'hang before headers',
  'hang half-way',
];

/** What does no harm to the call. */
const HARMLESS: readonly Evil[] = ['well', 'wrong workspace', 'two answers to one request', 'a late second answer'];

test('every behaviour of the evil store is tried here', () => {
  const tried = [...FAILURES.map(([evil]) => evil), ...TIMEOUTS, ...HARMLESS, 'slow drip of an error body'];
  expect(tried.toSorted()).toEqual(Object.keys(EVIL_BEHAVIOURS).toSorted());
});

describe('a failure has its kind and its message, and the client is well at once after', () => {
  test.each(FAILURES)('%s is %s', async (evil, kind, status, message) => {
    const { store, client, calls } = await openEvilStore(evil);
    const failure = await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(failure).toMatchObject({ kind, status });
    expect(failure.message).toContain(message);
    expect(calls).toMatchObject([{ resource: 'evaluation', outcome: kind, status }]);
    expect(store.requestLines).toEqual(['GET /internal/v1/evaluations/ev_1 HTTP/1.1']);
    store.behave('well');
    expect(await recordOf(client.evaluation(EVALUATION_ID, ASKED))).toEqual(anEvaluation());
  });

  test.each([
    'gzip bomb',
    'endless body',
    'endless gzip of nothing',
    'endless interim responses',
    'endless error body',
    'headers without end',
  ] as const)('the connection that carries %s is closed', async (evil) => {
    const { store, client } = await openEvilStore(evil);
    await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    await store.allClosed();
    expect(store.connections).toBe(1);
  });

  test.each(['deep arrays', 'millions of values'] as const)('%s is garbled in a list too', async (evil) => {
    const { client } = await openEvilStore(evil);
    expect((await failureOf(client.list(QUERY, ASKED))).kind).toBe('garbled');
  });
});

describe('one deadline covers the whole exchange', () => {
  test.each(TIMEOUTS)('%s', async (evil) => {
    const { store, client, calls } = await openEvilStore(evil, { timeoutMs: 250 });
    const failure = await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(failure).toMatchObject({ kind: 'timeout', isTransient: true });
    expect(failure.message).toBe('the store gave no whole answer within 250 ms');
    expect(calls).toMatchObject([{ outcome: 'timeout', requestId: 'request-1' }]);
    await store.allClosed();
  });

  test('waiting for a free connection', async () => {
    const { store, client } = await openStore({ timeoutMs: 250, maxConnections: 1 });
    const gate = store.gate();
    const kinds = (await Promise.all([1, 2].map(() => failureOf(client.evaluation(EVALUATION_ID, ASKED))))).map(
      (failure) => failure.kind,
    );
    expect(kinds).toEqual(['timeout', 'timeout']);
    expect(store.calls()).toBe(1);
    gate.release();
  });

  test('the body of an error is not waited for that long', async () => {
    const { client } = await openEvilStore('slow drip of an error body', { timeoutMs: 60_000 });
    const failure = await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(failure).toMatchObject({ kind: 'refused', status: 503, retryAfterMs: 7000 });
  });
});

describe('C4: an answer to nobody is never taken for one', () => {
  test.each(['two answers to one request', 'a late second answer'] as const)('%s', async (evil) => {
    const { store, client } = await openEvilStore(evil, { maxConnections: 1 });
    for (const id of ['ev_1', 'ev_2', 'ev_3']) {
      expect((await recordOf(client.evaluation(id, ASKED)))['_id']).toBe(id);
      // Whenever the second one comes, it costs the connection, so the next call cannot meet it.
      await store.allClosed();
    }
  });

  test('a record of another workspace is not in a list', async () => {
    const { client, leftOut } = await openEvilStore('wrong workspace');
    expect((await recordOf(client.list(QUERY, ASKED))).items).toEqual([]);
    expect(leftOut).toEqual([{ resource: 'list', id: 'ev_1', path: 'workspaceId', requestId: 'request-1' }]);
  });
});

describe('no connection at all is unreachable', () => {
  test('nothing listens there', async () => {
    const { store, client } = await openEvilStore('well');
    await store.close();
    const failure = await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(failure).toMatchObject({ kind: 'unreachable', status: null });
    expect(failure.message).toBe('the connection to the store failed before the answer (ECONNREFUSED)');
  });

  test('what listens there speaks no TLS', async () => {
    const { store } = await openStore();
    const { client } = openClient({ baseUrl: store.url.replace('http:', 'https:') });
    const failure = await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    expect(failure).toMatchObject({ kind: 'unreachable', status: null });
  });

  test('a header that cannot be sent', async () => {
    const { store, client } = await openStore();
    const failure = await failureOf(client.evaluation(EVALUATION_ID, { requestId: 'a\r\nb: c' }));
    expect(failure).toMatchObject({ kind: 'unreachable', status: null });
    expect(store.calls()).toBe(0);
  });
});

test('a call whose answer nobody waits for any more is not sent', async () => {
  const { store, client, calls } = await openStore();
  const failure = await failureOf(client.evaluation(EVALUATION_ID, { ...ASKED, isWanted: () => false }));
  expect(failure.kind).toBe('aborted');
  expect([store.calls(), calls]).toEqual([0, []]);
});

describe('closing', () => {
  test('ends what is in flight, and later calls are not sent', async () => {
    const { store, client } = await openEvilStore('hang before headers');
    const failure = failureOf(client.evaluation(EVALUATION_ID, ASKED));
    await client.close();
    expect((await failure).kind).toBe('aborted');
    expect((await failureOf(client.evaluation(EVALUATION_ID, ASKED))).kind).toBe('aborted');
    await store.allClosed();
    expect(store.requestLines.length).toBeLessThanOrEqual(1);
  });

  test.each(['hang before headers', 'slow drip of a body'] as const)('ends what the store is at: %s', async (evil) => {
    const { store, client } = await openEvilStore(evil);
    const failure = failureOf(client.evaluation(EVALUATION_ID, ASKED));
    await expect.poll(() => store.requestLines.length).toBe(1);
    await client.close();
    expect((await failure).kind).toBe('aborted');
    await store.allClosed();
  });

  test('closes idle connections', async () => {
    const { store, client } = await openEvilStore('well');
    await recordOf(client.evaluation(EVALUATION_ID, ASKED));
    await client.close();
    await store.allClosed();
    expect(store.connections).toBe(1);
  });
});

test('K2: no failure shows the token or the address of the store, to whatever depth it is written out', async () => {
  const evils = FAILURES.map(([evil]) => evil);
  const { store, client } = await openEvilStore('well', { token: 'S3CRET-token', timeoutMs: 2000 });
  const { host } = new URL(store.url);
  for (const evil of [...evils, 'hang half-way' as const]) {
    store.behave(evil);
    const failure = await failureOf(client.evaluation(EVALUATION_ID, ASKED));
    const written =
      inspect(failure, { depth: null, showHidden: true }) + JSON.stringify(failure) + failure.publicMessage;
    expect(written).not.toContain('S3CRET');
    expect(written).not.toContain(host);
    expect(written).not.toContain('/internal/v1');
    expect(failure.publicMessage).not.toContain(EVALUATION_ID);
  }
});
