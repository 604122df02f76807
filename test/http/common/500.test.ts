/**
 * The errors that consumers get if the store fails, at every endpoint; store-faults.test.ts and store-answers.test.ts have all
 * its faults.
 */
import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/http/problem.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import { anEvaluation } from '../../support/records.ts';
import type { StoreServer } from '../../support/store-server.ts';
import {
  ENDPOINTS,
  type EndpointRow,
  errorText,
  GET_CALL,
  LIST_REPORTS,
  SINGLE_READS,
  TABLES,
  TEXTS,
} from './endpoints.ts';
import { RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { newSubject, putSubject, readerOf, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway({ env: { UPSTREAM_TIMEOUT: '500ms' } }));

interface Failure {
  readonly code?: ErrorCode;
  readonly text: string;
  /** Null if trying again can't be expected to help. */
  readonly retryAfter?: string | null;
}

/** Makes the store misbehave; returns what ends it. */
type Cause = (store: StoreServer) => () => void;
/** Every answer of the store is this text. */
const says =
  (text: string, status = 200): Cause =>
  (store) =>
    store.answer(/^/, text, status);

const MALFORMED: Failure = { code: 'record_malformed', text: TEXTS.malformed, retryAfter: null };
const TROUBLES: readonly (readonly [what: string, cause: Cause, failure: Failure])[] = [
  ['is down', (store) => store.resetConnections(), { text: TEXTS.unreachable }],
  ['answers 500', (store) => store.fail(500), { text: TEXTS.failing }],
  ['limits the gateway', (store) => store.fail(429, { 'retry-after': '90' }), { text: TEXTS.failing }],
  ['Q9: answers 404 with another code', (store) => store.fail(404), { text: TEXTS.failing }],
  ['sends a page with 200', says('<!doctype html><title>store.internal</title>'), { text: TEXTS.garbled }],
  ['sends an empty object', says('{}'), MALFORMED],
];

function expectFailed(
  reply: Reply,
  endpoint: EndpointRow,
  { code = 'store_unavailable', text, retryAfter = '5' }: Failure,
): void {
  expect([reply.status, reply.headers['x-error-code']]).toEqual([500, code]);
  expect(reply.text).toBe(errorText(endpoint, 500, text));
  const { 'retry-after': told = null, ...rateLimit } = rateLimitOf(reply);
  expect([told, Object.keys(rateLimit)]).toEqual([retryAfter, RATE_LIMIT_NAMES]);
}

async function askDuring(endpoint: EndpointRow, cause: Cause, subject: Subject): Promise<Reply> {
  const { ask } = await readerOf(gateway, endpoint, { subject });
  const end = cause(gateway.store);
  const reply = await ask();
  end();
  return reply;
}

test('S2: the store does not answer in time', async () => {
  const end = gateway.store.override(/^/, () => {});
  const replies = await Promise.all(
    ENDPOINTS.map(async (endpoint) => (await readerOf(gateway, endpoint, { subject: newSubject() })).ask()),
  );
  end();
  expect(replies).toHaveLength(ENDPOINTS.length);
  for (const [index, reply] of replies.entries()) {
    expectFailed(reply, ENDPOINTS[index] ?? GET_CALL, { text: TEXTS.timeout });
  }
});

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test.each(TROUBLES)('S1, S2, S3: the store %s', async (_what, cause, failure) => {
    const reply = await askDuring(endpoint, cause, putSubject(gateway.store));
    expectFailed(reply, endpoint, failure);
  });
});

describe.each(SINGLE_READS)('$name', (endpoint) => {
  const table = gateway.store[endpoint.resource === 'list' ? 'evaluations' : TABLES[endpoint.resource]];
  const idOf = ({ id, scorecardId }: Subject): string => (endpoint.resource === 'rubric' ? scorecardId : id);

  test('C4: a record of another id than was asked for is never served', async () => {
    const [subject, other] = [newSubject(), putSubject(gateway.store)];
    table.set(idOf(subject), table.get(idOf(other)));
    const workspaceIds = [subject.workspaceId, other.workspaceId];
    const { ask } = await readerOf(gateway, endpoint, { subject, workspaceIds });
    expectFailed(await ask(), endpoint, { text: TEXTS.garbled });
  });

  test('a record that does not say whose it is fails for its reader', async () => {
    const { subject, ask } = await readerOf(gateway, endpoint);
    table.set(idOf(subject), { ...Object(table.get(idOf(subject))), workspaceId: undefined });
    expectFailed(await ask(), endpoint, MALFORMED);
  });
});

test('a single read of a malformed evaluation is a 500 again and again, and whole as soon as it is mended', async () => {
  const { subject, ask } = await readerOf(gateway, GET_CALL, { subject: newSubject() });
  const whole = anEvaluation({ _id: subject.id, workspaceId: subject.workspaceId });
  gateway.store.evaluations.set(subject.id, { ...whole, overallScore: '72.5' });
  for (let attempt = 0; attempt < 2; attempt += 1) {
    expectFailed(await ask(), GET_CALL, MALFORMED);
    gateway.clock.advance(1000);
  }
  gateway.store.put({ evaluations: [whole] });
  expect((await ask()).status).toBe(200);
});

test.each([
  ['null', 'null'],
  ['an array', '[]'],
  ['5,000 deep', '['.repeat(5000) + ']'.repeat(5000)],
  ['without items', '{"total":0}'],
  ['with items that are no array', '{"items":{},"total":0}'],
  ['without a total', '{"items":[]}'],
  ['with a negative total', '{"items":[],"total":-1}'],
  ['with a total that is a text', '{"items":[],"total":"0"}'],
])('a list that is %s is malformed', async (_what, text) => {
  expectFailed(await askDuring(LIST_REPORTS, says(text), newSubject()), LIST_REPORTS, MALFORMED);
});

test('a list has no 404: one with a code of the store is a failure', async () => {
  const none = says('{"code":"NOT_FOUND","message":"none"}', 404);
  expectFailed(await askDuring(LIST_REPORTS, none, newSubject()), LIST_REPORTS, { text: TEXTS.failing });
});

test('S2: no body and no header of a failure names the store, an id or a place in the code', async () => {
  const subject = putSubject(gateway.store);
  const { port } = new URL(gateway.store.url);
  const secrets = [
    port,
    '127.0.0.1',
    'store.internal',
    '/internal/',
    gateway.store.token,
    subject.id,
    '    at ',
    '.ts',
  ];
  for (const [, cause] of TROUBLES) {
    for (const endpoint of ENDPOINTS) {
      const { text, headers } = await askDuring(endpoint, cause, subject);
      gateway.clock.advance(1000);
      const all = JSON.stringify([text, headers]);
      expect(secrets.filter((secret) => all.includes(secret))).toEqual([]);
    }
  }
});

test('S2: Retry-After is a minute at most, however long it takes', async () => {
  const { ask } = await readerOf(gateway, GET_CALL, { subject: newSubject() });
  expect((await gateway.admin('PUT', '/api/cache/maintenance', { for: '1h' })).status).toBe(200);
  const reply = await ask();
  expect([reply.status, reply.headers['retry-after']]).toEqual([500, '60']);
  expect((await gateway.admin('DELETE', '/api/cache/maintenance')).status).toBe(200);
});
