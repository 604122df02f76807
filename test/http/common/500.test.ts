import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { listenOnLoopback } from '../../support/loopback.ts';
import { anEvaluation } from '../../support/records.ts';
import { sendError, type StoreServer } from '../../support/store-server.ts';
import { ENDPOINTS, type EndpointRow, errorText, GET_CALL, LIST_REPORTS, SINGLE_READS } from './endpoints.ts';
import { cachingOf, RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { keyFor, newSubject, putSubject, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway({ env: { UPSTREAM_TIMEOUT: '500ms' } }));

const TIMEOUT = 'The evaluation store did not answer in time. Try again later.';
const UNREACHABLE = 'The evaluation store cannot be reached at the moment. Try again later.';
const FAILING = 'The evaluation store is failing at the moment. Try again later.';
const INVALID = 'The evaluation store sent an invalid answer. Try again later.';
const MALFORMED = 'The evaluation store sent an answer that cannot be used.';

interface Trouble {
  readonly what: string;
  /** Makes the store misbehave; returns what ends it. */
  readonly cause: (store: StoreServer) => () => void;
  readonly message: string;
  /** Null if trying again can't be expected to help. */
  readonly retryAfter: string | null;
}

/** Every answer of the store is this text, with status 200. */
function says(text: string, type = 'application/json'): (store: StoreServer) => () => void {
  return (store) =>
    store.override(/^/, (_request, response) => {
      response.writeHead(200, { 'content-type': type });
      response.end(text);
    });
}

const TROUBLES: readonly Trouble[] = [
  { what: 'is down', cause: (store) => store.resetConnections(), message: UNREACHABLE, retryAfter: '5' },
  { what: 'answers 500', cause: (store) => store.fail(500), message: FAILING, retryAfter: '5' },
  {
    what: 'answers 503 and when to try again',
    cause: (store) => store.fail(503, { 'retry-after': '7' }),
    message: FAILING,
    retryAfter: '7',
  },
  {
    what: 'answers 503 and that it may be tried at once',
    cause: (store) => store.fail(503, { 'retry-after': '0' }),
    message: FAILING,
    retryAfter: '1',
  },
  {
    what: 'limits the gateway with 429',
    cause: (store) => store.fail(429, { 'retry-after': '90' }),
    message: FAILING,
    retryAfter: '90',
  },
  { what: 'refuses its token with 401', cause: (store) => store.fail(401), message: FAILING, retryAfter: '5' },
  { what: 'refuses the question with 400', cause: (store) => store.fail(400), message: FAILING, retryAfter: '5' },
  { what: 'answers 403', cause: (store) => store.fail(403), message: FAILING, retryAfter: '5' },
  { what: 'answers 204', cause: (store) => store.fail(204), message: FAILING, retryAfter: '5' },
  { what: 'answers 304 though nothing is held', cause: (store) => store.fail(304), message: FAILING, retryAfter: '5' },
  { what: 'Q9: answers 404 with another code', cause: (store) => store.fail(404), message: FAILING, retryAfter: '5' },
  {
    what: 'Q9: answers 404 with a page',
    cause: (store) =>
      store.override(/^/, (_request, response) => {
        response.writeHead(404, { 'content-type': 'text/html' });
        response.end('<h1>NOT_FOUND</h1>');
      }),
    message: FAILING,
    retryAfter: '5',
  },
  {
    what: 'sends a page with 200',
    cause: says('<!doctype html><title>store.internal</title>', 'text/html'),
    message: INVALID,
    retryAfter: '5',
  },
  { what: 'sends nothing with 200', cause: says(''), message: INVALID, retryAfter: '5' },
  { what: 'sends JSON that is cut off', cause: says('{"items":[{"_id":'), message: INVALID, retryAfter: '5' },
  {
    what: 'sends JSON 5,000 deep',
    cause: says('['.repeat(5000) + ']'.repeat(5000)),
    message: MALFORMED,
    retryAfter: null,
  },
  { what: 'sends null', cause: says('null'), message: MALFORMED, retryAfter: null },
  { what: 'sends an array', cause: says('[]'), message: MALFORMED, retryAfter: null },
  { what: 'sends an empty object', cause: says('{}'), message: MALFORMED, retryAfter: null },
];

function expectFailed(
  reply: Reply,
  endpoint: EndpointRow,
  { message, retryAfter }: Pick<Trouble, 'message' | 'retryAfter'>,
): void {
  expect(reply.status).toBe(500);
  expect(reply.text).toBe(errorText(endpoint, 500, message));
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(reply.headers['retry-after']).toBe(retryAfter ?? undefined);
  expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
  const { 'retry-after': _retryAfter, ...rateLimit } = rateLimitOf(reply);
  expect(Object.keys(rateLimit)).toEqual(RATE_LIMIT_NAMES);
}

/** Nothing shows whose a record is that cannot be read at all, nor its evaluation (K7a: a foreign record looks like none). */
function expectNone(reply: Reply, { notFound }: EndpointRow): void {
  expect([reply.status, reply.text]).toEqual([404, notFound]);
  expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
}

async function askDuring(endpoint: EndpointRow, cause: Trouble['cause'], subject: Subject): Promise<Reply> {
  const key = await keyFor(gateway, subject);
  const end = cause(gateway.store);
  const reply = await gateway.get(endpoint.path(subject), { key });
  end();
  return reply;
}

test('S2: the store does not answer in time', async () => {
  const end = gateway.store.override(/^/, () => {});
  const replies = await Promise.all(
    ENDPOINTS.map(async (endpoint) => {
      const subject = newSubject();
      return { endpoint, reply: await gateway.get(endpoint.path(subject), { key: await keyFor(gateway, subject) }) };
    }),
  );
  end();
  for (const { endpoint, reply } of replies) expectFailed(reply, endpoint, { message: TIMEOUT, retryAfter: '5' });
});

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test.each(TROUBLES)('S1, S2, S3: the store $what', async ({ cause, message, retryAfter }) => {
    const reply = await askDuring(endpoint, cause, putSubject(gateway.store));
    if (message === MALFORMED && endpoint.resource !== 'list') expectNone(reply, endpoint);
    else expectFailed(reply, endpoint, { message, retryAfter });
  });

  test.each([301, 302, 303, 307, 308])('C7: a redirect %i is a failure and not followed', async (status) => {
    let visits = 0;
    const elsewhere = await listenOnLoopback(
      createServer((_request, response) => {
        visits += 1;
        response.end('{}');
      }),
    );
    const before = gateway.store.calls();
    const redirect = (store: StoreServer): (() => void) =>
      store.override(/^/, (_request, response) => {
        response.writeHead(status, { location: `${elsewhere.url}/internal/v1/evaluations` });
        response.end();
      });
    const reply = await askDuring(endpoint, redirect, putSubject(gateway.store));
    await elsewhere.close();
    expectFailed(reply, endpoint, { message: FAILING, retryAfter: '5' });
    expect(visits).toBe(0);
    expect(gateway.store.calls() - before).toBe(1);
  });

  test('S2: a failure is answered to HEAD without its body', async () => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    const end = gateway.store.fail(503);
    const reply = await gateway.get(endpoint.path(subject), { key, method: 'HEAD' });
    end();
    expect(reply.status).toBe(500);
    expect(reply.headers['content-length']).toBe(String(errorText(endpoint, 500, FAILING).length));
    expect(reply.bytes.length).toBe(0);
  });
});

describe.each(SINGLE_READS)('$name', (endpoint) => {
  const records = {
    evaluation: 'evaluations',
    transcript: 'transcripts',
    scorecard: 'scoredCards',
    dealInsights: 'dealInsights',
    rubric: 'scorecards',
  } as const;
  const tableOf = (store: StoreServer): Map<string, unknown> => {
    if (endpoint.resource === 'list') throw new Error('a list is no single read');
    return store[records[endpoint.resource]];
  };

  test('C4: a record of another id than was asked for is never served', async () => {
    const [subject, other] = [newSubject(), putSubject(gateway.store)];
    const table = tableOf(gateway.store);
    const isRubric = endpoint.resource === 'rubric';
    const [wanted, given] = isRubric ? [subject.scorecardId, other.scorecardId] : [subject.id, other.id];
    table.set(wanted, table.get(given));
    const key = await keyFor(gateway, subject, { workspaceIds: [subject.workspaceId, other.workspaceId] });
    const reply = await gateway.get(endpoint.path(subject), { key });
    expectFailed(reply, endpoint, { message: INVALID, retryAfter: '5' });
  });

  test('a record that does not say whose it is: a part is its evaluation’s, anything else nobody’s', async () => {
    const subject = putSubject(gateway.store);
    const table = tableOf(gateway.store);
    const id = endpoint.resource === 'rubric' ? subject.scorecardId : subject.id;
    table.set(id, { ...Object(table.get(id)), workspaceId: undefined });
    const reply = await gateway.get(endpoint.path(subject), { key: await keyFor(gateway, subject) });
    if (['evaluation', 'rubric'].includes(endpoint.resource)) expectNone(reply, endpoint);
    else expectFailed(reply, endpoint, { message: MALFORMED, retryAfter: null });
  });
});

test('a single read of a malformed evaluation is a 500 again and again, and whole as soon as it is mended', async () => {
  const subject = newSubject();
  const key = await keyFor(gateway, subject);
  const whole = anEvaluation({ _id: subject.id, workspaceId: subject.workspaceId });
  gateway.store.evaluations.set(subject.id, { ...whole, overallScore: '72.5' });
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const reply = await gateway.get(GET_CALL.path(subject), { key });
    expectFailed(reply, GET_CALL, { message: MALFORMED, retryAfter: null });
    gateway.clock.advance(1000);
  }
  gateway.store.put({ evaluations: [whole] });
  expect((await gateway.get(GET_CALL.path(subject), { key })).status).toBe(200);
});

test.each([
  ['has no items', { total: 0 }],
  ['has items that are no array', { items: {}, total: 0 }],
  ['has no total', { items: [] }],
  ['has a negative total', { items: [], total: -1 }],
  ['has a total that is a text', { items: [], total: '0' }],
])('a list that %s is malformed', async (_what, list) => {
  const reply = await askDuring(LIST_REPORTS, says(JSON.stringify(list)), newSubject());
  expectFailed(reply, LIST_REPORTS, { message: MALFORMED, retryAfter: null });
});

test('S2: no body and no header of a failure names the store, an id or a place in the code', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  const storePort = new URL(gateway.store.url).port;
  for (const { cause } of TROUBLES) {
    for (const endpoint of ENDPOINTS) {
      const end = cause(gateway.store);
      const reply = await gateway.get(endpoint.path(subject), { key });
      end();
      gateway.clock.advance(1000);
      const all = JSON.stringify([reply.text, reply.headers]);
      for (const secret of [
        storePort,
        '127.0.0.1',
        'store.internal',
        '/internal/',
        gateway.store.token,
        subject.id,
        '    at ',
        '.ts',
      ]) {
        expect(all).not.toContain(secret);
      }
    }
  }
  // A 404 with a known code of the store's is an answer, not a failure.
  const end = gateway.store.override(/^/, (_request, response) => sendError(response, 404, 'NOT_FOUND'));
  const lists = await gateway.get(LIST_REPORTS.path(subject), { key });
  end();
  expectFailed(lists, LIST_REPORTS, { message: FAILING, retryAfter: '5' });
});
