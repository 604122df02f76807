/** The document of a started gateway: its examples are as it says itself, and what departs from it is found. */
import { describe, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { z } from 'zod';
import { buildOpenApiDocument } from '../../src/http/openapi/document.ts';
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

test('the codes of the feed of changes are there if there is a feed', () => {
  const options = { limits: { perMinute: 7, perHour: 11 }, deprecations: [] };
  const [without, withFeed] = [false, true].map((hasFeed) =>
    JSON.stringify(buildOpenApiDocument({ ...options, hasFeed })),
  );
  for (const text of ['cursor_expired', 'changes_unavailable', '/v2/changes']) {
    expect(without).not.toContain(text);
    expect(withFeed).toContain(text);
  }
  expect(without).toContain('cursor_invalid');
});

test('the document says the limits in force', () => {
  expect(description).toContain('7 requests in any 60 seconds');
  expect(description).toContain('11 requests in any 3600 seconds');
});

const nodeSchema = z.looseObject({
  type: z.unknown().optional(),
  format: z.string().optional(),
  maxLength: z.number().optional(),
  name: z.string().optional(),
  schema: z.looseObject({ maxLength: z.number().optional(), format: z.string().optional() }).optional(),
});
type Node = z.output<typeof nodeSchema>;

/** Every object in the document, by its path. */
function nodesOf(value: unknown, at = ''): readonly (readonly [at: string, node: Node])[] {
  if (typeof value !== 'object' || value === null) return [];
  const { data } = nodeSchema.safeParse(value);
  const inner = Object.entries(value).flatMap(([name, member]) => nodesOf(member, `${at}/${name}`));
  return data === undefined ? inner : [[at, data], ...inner];
}

const ID_MEMBERS = /\/(?:Report|Call|Rubric|Key)\/properties\/id$|\/properties\/evaluation_id$/;
const ID_PARAMETERS = ['reportId', 'callId', 'scorecardId'];

test('every integer has a format, and every id of a record its longest length', () => {
  const nodes = nodesOf(json);
  const integers = nodes.filter(([, { type }]) => [type].flat().includes('integer'));
  expect(integers.length).toBeGreaterThan(30);
  expect(integers.filter(([, { format }]) => format !== 'int32' && format !== 'int64')).toEqual([]);
  const members = nodes.filter(([at]) => ID_MEMBERS.test(at)).map(([at, { maxLength }]) => [at, maxLength]);
  const parameters = nodes.flatMap(([at, { name = '', schema = {} }]) =>
    // v1 takes UUIDs for its filter.
    ID_PARAMETERS.includes(name) && schema.format !== 'uuid' ? [[at, schema.maxLength]] : [],
  );
  expect([members.length, parameters.length]).toEqual([5, 9]);
  for (const [at, maxLength] of [...members, ...parameters]) expect([at, maxLength]).toEqual([at, 64]);
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
