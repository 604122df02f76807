import { describe, expect, test } from 'vitest';
import { buildOpenApiDocument } from '../../src/http/openapi/document.ts';
import { createResponseChecker, type Exchange } from '../support/openapi-check.ts';
import { type DocumentedExchange, exampleExchanges } from '../support/openapi-examples.ts';

const document = buildOpenApiDocument({ limits: { perMinute: 120, perHour: 3000 } });
const checker = createResponseChecker(document);
const examples = exampleExchanges(document);

function example(operationId: string, status: number): DocumentedExchange {
  const found = examples.find((exchange) => exchange.operationId === operationId && exchange.status === status);
  if (found === undefined) throw new Error(`no example of ${operationId} ${status}`);
  return found;
}

function withHeaders(exchange: DocumentedExchange, headers: Record<string, string | undefined>): Exchange {
  return { ...exchange, headers: { ...exchange.headers, ...headers } };
}

function withBody(exchange: DocumentedExchange, body: unknown): Exchange {
  return { ...exchange, body: JSON.stringify(body) };
}

const list = example('listReports', 200);
const call = example('getCall', 200);

describe('a response that is as documented passes', () => {
  test.each(examples)('$operationId $status', (exchange) => {
    expect(checker.faults(exchange)).toEqual([]);
    expect(() => {
      checker.check(exchange);
    }).not.toThrow();
  });

  test('with a query string, with headers of fetch, and with headers that the document does not know', () => {
    const headers = new Headers({ ...list.headers, 'Content-Security-Policy': "default-src 'none'" });
    expect(checker.faults({ ...list, path: `${list.path}?page=2`, headers })).toEqual([]);
  });

  test('HEAD: the headers of GET and no body', () => {
    expect(checker.faults({ ...list, method: 'HEAD', body: '' })).toEqual([]);
  });
});

describe('a response that is not as documented is caught', () => {
  const faulty: readonly (readonly [string, Exchange, string])[] = [
    ['a path that is not there', { ...list, path: '/v1/reports' }, 'the path /v1/reports is not documented'],
    ['a path with an empty parameter', { ...call, path: '/v2/calls/' }, 'the path /v2/calls/ is not documented'],
    ['a status that is not there', { ...list, status: 404 }, 'the status 404 is not documented'],
    ['405 to a GET', { ...example('getCall', 405), method: 'GET' }, 'the status 405 is no answer to GET'],
    ['200 to a POST', { ...call, method: 'POST' }, 'the status 200 is no answer to POST'],
    [
      'a missing header',
      withHeaders(list, { 'X-RateLimit-Hour-Reset': undefined }),
      'the header X-RateLimit-Hour-Reset is missing',
    ],
    [
      'a number that is none',
      withHeaders(list, { Age: '1.5' }),
      'the header Age: 1.5: the value must be integer (integer)',
    ],
    [
      'a number out of range',
      withHeaders(list, { 'X-RateLimit-Limit': '0' }),
      'the header X-RateLimit-Limit: 0: the value must be >= 1 (>=, 1)',
    ],
    [
      'a window of another name',
      withHeaders(list, { 'X-RateLimit-Active-Window': 'day' }),
      'the header X-RateLimit-Active-Window: day: the value must be equal to one of the allowed values (minute,hour)',
    ],
    [
      'another Vary',
      withHeaders(list, { Vary: 'Authorization' }),
      'the header Vary: Authorization: the value must be equal to constant (Authorization, Accept-Encoding)',
    ],
    [
      'a header of another status',
      withHeaders(example('getCall', 404), { ETag: '"x"' }),
      'the header etag is not documented for this response',
    ],
    [
      'rate-limit headers without a key',
      withHeaders(example('getCall', 401), { 'X-RateLimit-Limit': '120' }),
      'the header x-ratelimit-limit is not documented for this response',
    ],
    ['no content type', withHeaders(list, { 'Content-Type': undefined }), 'the header content-type is missing'],
    [
      'another content type',
      withHeaders(list, { 'Content-Type': 'text/html; charset=utf-8' }),
      'the content type text/html is not documented',
    ],
    ['a body that is no JSON', { ...list, body: '<html>' }, 'the body is not JSON'],
    ['no body', { ...list, body: '' }, 'the body is not JSON'],
    ['a body to HEAD', { ...list, method: 'HEAD' }, 'there is a body where none may be'],
    ['a body with 304', { ...example('getCall', 304), body: '{}' }, 'there is a body where none may be'],
    [
      'a content type with 304',
      withHeaders(example('getCall', 304), { 'Content-Type': 'application/json' }),
      'the content type application/json without a body',
    ],
    [
      'a body with an extra member',
      withBody(list, { reports: [], page: 1, total_count: 0, costCents: 4 }),
      'the body: the value must NOT have additional properties (costCents)',
    ],
    [
      'a body without a required member',
      withBody(list, { reports: [], page: 1 }),
      "the body: the value must have required property 'total_count' (total_count)",
    ],
    [
      'a body with a member of another type',
      withBody(list, { reports: [], page: '1', total_count: 0 }),
      'the body: /page must be integer (integer)',
    ],
    [
      'a body with a number out of range',
      withBody(list, { reports: [], page: 0, total_count: 0 }),
      'the body: /page must be >= 1 (>=, 1)',
    ],
    [
      'the error body of the other surface',
      withBody(example('getCall', 404), { error: 'There is no such call.' }),
      'the body: /error must be object (object)',
    ],
    [
      'reports beside an error',
      withBody(example('listReports', 500), { reports: [{}], error: 'x' }),
      'the body: /reports must NOT have more than 0 items (0)',
    ],
  ];

  test.each(faulty)('%s', (_, exchange, fault) => {
    expect(checker.faults(exchange)).toContain(fault);
  });

  test('an extra member, a time without milliseconds and an e-mail address that is none, deep inside a body', () => {
    const body: unknown = JSON.parse(list.body, (key, value: unknown) => {
      if (key === 'crm_deals') return [{ id: 'D', name: 'Deal', url: null, stage: 'won' }];
      if (key === 'created_at') return '2026-03-04T15:30:00Z';
      return key === 'email' ? 'nobody' : value;
    });
    const faults = checker.faults(withBody(list, body)).join('\n');
    expect(faults).toContain('/reports/0/crm_deals/0 must NOT have additional properties (stage)');
    expect(faults).toContain('/reports/0/created_at must match pattern');
    expect(faults).toContain('/reports/0/evaluatee_user/email must match format "email"');
  });

  test('check throws one error that lists every fault', () => {
    const exchange = withHeaders({ ...list, body: '[]' }, { Age: '-1', ETag: undefined });
    expect(() => {
      checker.check(exchange);
    }).toThrow(
      new Error(
        [
          `GET ${list.path} -> 200 is not as documented:`,
          '- the header ETag is missing',
          '- the header Age: -1: the value must be >= 0 (>=, 0)',
          '- the body: the value must be object (object)',
        ].join('\n'),
      ),
    );
  });
});
