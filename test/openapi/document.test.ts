/** The document of a started gateway: its examples are as it says itself, and what departs from it is found. */
import { describe, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { z } from 'zod';
import { startTestGateway } from '../support/gateway.ts';
import { createResponseChecker, type Exchange } from '../support/openapi-check.ts';
import { type DocumentedExchange, exampleExchanges } from '../support/openapi-examples.ts';

const gateway = await forFile(startTestGateway({ env: { RATE_LIMIT_PER_MINUTE: '7', RATE_LIMIT_PER_HOUR: '11' } }));
const { json } = await gateway.get('/openapi.json', { isUndocumented: true });
const document = z.looseObject({ info: z.object({ description: z.string() }) }).parse(json);
const checker = createResponseChecker(document);
const examples = exampleExchanges(document);
const { description } = document.info;

test('every status of every operation has an example that is as documented', () => {
  expect(examples.length).toBeGreaterThan(80);
  for (const example of examples)
    expect([example.path, example.status, checker.faults(example)]).toEqual([example.path, example.status, []]);
});

test('the document says the limits in force', () => {
  expect(description).toContain('7 requests in any 60 seconds');
  expect(description).toContain('11 requests in any 3600 seconds');
});

type Change = (example: DocumentedExchange) => Partial<Exchange>;
const header =
  (name: string, value: string | undefined): Change =>
  ({ headers }) => ({ headers: { ...headers, [name]: value } });
const body =
  (value: unknown): Change =>
  () => ({ body: JSON.stringify(value) });

describe('a response that is not as documented is caught', () => {
  const rows: readonly (readonly [string, string, number, Change, string])[] = [
    ['another path', 'getCall', 200, () => ({ path: '/v2/calls/' }), 'the path /v2/calls/ is not documented'],
    ['another status', 'listReports', 200, () => ({ status: 404 }), 'the status 404 is not documented'],
    ['405 to a GET', 'getCall', 405, () => ({ method: 'GET' }), 'the status 405 is no answer to GET'],
    ['a missing header', 'getCall', 200, header('ETag', undefined), 'the header ETag is missing'],
    ['another value', 'getCall', 200, header('Age', '-1'), 'the header Age: -1: the value must be >= 0 (>=, 0)'],
    [
      'a header of another status',
      'getCall',
      404,
      header('ETag', '"x"'),
      'the header etag is not documented for this response',
    ],
    [
      'another type',
      'getCall',
      200,
      header('Content-Type', 'text/html'),
      'the content type text/html is not documented',
    ],
    ['no JSON', 'getCall', 200, () => ({ body: '<html>' }), 'the body is not JSON'],
    ['a body to HEAD', 'getCall', 200, () => ({ method: 'HEAD' }), 'there is a body where none may be'],
    ['a body with 304', 'getCall', 304, () => ({ body: '{}' }), 'there is a body where none may be'],
    [
      'an extra member',
      'listReports',
      200,
      body({ reports: [], page: 1, total_count: 0, costCents: 4 }),
      'the body: the value must NOT have additional properties (costCents)',
    ],
    [
      'a missing member',
      'listReports',
      200,
      body({ reports: [], page: 1 }),
      "the body: the value must have required property 'total_count' (total_count)",
    ],
    [
      'the error form of the other surface',
      'getCall',
      404,
      body({ error: 'x' }),
      'the body: /error must be object (object)',
    ],
  ];

  test.each(rows)('%s', (...row) => {
    const [, operationId, status, change, fault] = row;
    const example = examples.find((one) => one.operationId === operationId && one.status === status);
    if (example === undefined) throw new Error(`no example of ${operationId} ${status}`);
    const exchange = { ...example, ...change(example) };
    expect(checker.faults(exchange)).toContain(fault);
    expect(() => {
      checker.check(exchange);
    }).toThrow(`- ${fault}`);
  });
});
