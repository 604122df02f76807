import { describe, expect, test } from 'vitest';
import { buildOpenApiDocument } from '../../src/http/openapi/document.ts';
import { documentFor } from '../../src/http/openapi/surface.ts';
import { DocumentSchemas, memberOf } from '../support/openapi-schemas.ts';

const document = buildOpenApiDocument({ limits: { perMinute: 7, perHour: 11 } });
const schemas = new DocumentSchemas(document);

const LIST_V1 = ['200', '304', '400', '401', '403', '405', '429', '500'];
const SINGLE_V1 = ['200', '304', '401', '403', '404', '405', '429', '500'];
const LIST_V2 = LIST_V1;
const SINGLE_V2 = ['200', '304', '400', '401', '403', '404', '405', '429', '500'];
const REPORT = '/v1/workspaces/{workspaceId}/reports/{reportId}';

const KEY = ['200', '400', '401', '403', '405', '500'];

/** Path, operationId, scope, statuses, query parameters. Where the scope is null, requests are not counted. */
const operations: readonly (readonly [string, string, string | null, readonly string[], readonly string[]])[] = [
  [
    '/v1/workspaces/{workspaceId}/reports',
    'listReports',
    'reports.read',
    LIST_V1,
    ['page', 'limit', 'search', 'scorecardId'],
  ],
  [REPORT, 'getReport', 'reports.read', SINGLE_V1, []],
  [`${REPORT}/scorecard`, 'getReportScorecard', 'reports.read', SINGLE_V1, []],
  [`${REPORT}/deal-insights`, 'getReportDealInsights', 'reports.read', SINGLE_V1, []],
  [`${REPORT}/transcript`, 'getReportTranscript', 'reports.read', SINGLE_V1, []],
  ['/v1/key', 'getWorkspaceKey', null, KEY, []],
  ['/v2/calls', 'listCalls', 'calls.read', LIST_V2, ['workspaceId', 'page', 'pageSize', 'search', 'scorecardId']],
  ['/v2/calls/{callId}', 'getCall', 'calls.read', SINGLE_V2, []],
  [
    '/v2/calls/{callId}/transcript',
    'getCallTranscript',
    'calls.read',
    SINGLE_V2,
    ['page', 'pageSize', 'maxChars', 'raw'],
  ],
  ['/v2/calls/{callId}/scorecard', 'getCallScorecard', 'calls.read', SINGLE_V2, []],
  ['/v2/scorecards/{scorecardId}/rubric', 'getScorecardRubric', 'coaching.read', SINGLE_V2, []],
  ['/v2/key', 'getCallsKey', null, KEY, []],
];

const TEN_HEADERS = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-RateLimit-Active-Window',
  'X-RateLimit-Minute-Limit',
  'X-RateLimit-Minute-Remaining',
  'X-RateLimit-Minute-Reset',
  'X-RateLimit-Hour-Limit',
  'X-RateLimit-Hour-Remaining',
  'X-RateLimit-Hour-Reset',
];
const RATE_HEADERS = [...TEN_HEADERS, 'RateLimit', 'RateLimit-Policy'];

function parametersOf(path: string, location: string): unknown[] {
  const place = ['paths', path, 'get', 'parameters'];
  const parameters = schemas.keysAt(place).map((index) => schemas.at([...place, index]).value);
  return parameters.filter((parameter) => memberOf(parameter, 'in') === location);
}

function headersOf(path: string, status: string, isRequired: boolean): string[] {
  const place = ['paths', path, 'get', 'responses', status, 'headers'];
  const response = schemas.at(place.slice(0, -1)).place;
  return schemas
    .keysAt([...response, 'headers'])
    .filter((name) => (memberOf(schemas.at([...response, 'headers', name]).value, 'required') === true) === isRequired);
}

describe('the document', () => {
  test('is OpenAPI 3.1 and describes the ten endpoints of the specification, the two of keys, and no others', () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(schemas.keysAt(['paths'])).toEqual(operations.map(([path]) => path));
  });

  test('tells the limits in force and where the server is', () => {
    expect(document.info.description).toContain('7 requests in any 60 seconds');
    expect(document.info.description).toContain('11 requests in any 3600 seconds');
    expect(document.servers).toEqual([{ url: '/', description: 'This gateway' }]);
    const elsewhere = buildOpenApiDocument({ limits: { perMinute: 1, perHour: 1 }, serverUrl: 'https://api.example' });
    expect(elsewhere.servers?.[0]?.url).toBe('https://api.example');
  });

  test('can be written as JSON without loss', () => {
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
  });

  test('names each schema of a body, and every object in it is closed', () => {
    const names = schemas.keysAt(['components', 'schemas']);
    expect(names).toEqual(expect.arrayContaining(['Report', 'EvaluateeUser', 'Share', 'CrmDeal', 'Call', 'CrmObject']));
    for (const name of names) {
      expect(memberOf(schemas.at(['components', 'schemas', name]).value, 'additionalProperties')).toBe(false);
    }
  });
});

describe.each(operations)('%s', (...row) => {
  const [path, operationId, scope, statuses, queryParameters] = row;
  const operation = schemas.at(['paths', path, 'get']).value;
  const surface = path.slice(1, 3);

  test('S1: documents its statuses and no others', () => {
    expect(memberOf(operation, 'operationId')).toBe(operationId);
    expect(schemas.keysAt(['paths', path, 'get', 'responses'])).toEqual(statuses);
  });

  test('documents its parameters; those in the path have an example that their schema allows', () => {
    const query = parametersOf(path, 'query');
    expect(query.map((parameter) => memberOf(parameter, 'name'))).toEqual(queryParameters);
    const inPath = parametersOf(path, 'path').map((parameter) => `{${String(memberOf(parameter, 'name'))}}`);
    expect(inPath).toEqual(path.match(/\{\w+\}/g) ?? []);
    const place = ['paths', path, 'get', 'parameters'];
    for (const index of schemas.keysAt(place)) {
      const parameter = schemas.at([...place, index]);
      const check = schemas.checkAt([...parameter.place, 'schema']);
      const example = memberOf(parameter.value, 'example');
      const isInPath = memberOf(parameter.value, 'in') === 'path';
      expect(isInPath ? check(example) : example).toEqual(isInPath ? [] : undefined);
      expect(memberOf(parameter.value, 'description')).toMatch(/\.$/);
    }
  });

  test('K5, K6: asks for a bearer key and names the scope', () => {
    const scheme = surface === 'v1' ? 'WorkspaceKey' : 'CallsKey';
    expect(memberOf(operation, 'security')).toEqual([{ [scheme]: [] }]);
    expect(schemas.at(['components', 'securitySchemes', scheme]).value).toMatchObject({
      type: 'http',
      scheme: 'bearer',
    });
    expect(memberOf(operation, 'x-required-scope')).toBe(scope ?? undefined);
    expect(memberOf(operation, 'description')).toContain(
      scope === null ? 'Any active key may ask, whatever its scopes.' : `Scope: \`${scope}\``,
    );
  });

  test('R2, R4: promises the rate-limit headers on every counted answer, and none where no key was recognised', () => {
    for (const status of statuses) {
      const where = { promised: headersOf(path, status, true), possible: headersOf(path, status, false) };
      const rateHeaders = {
        promised: RATE_HEADERS.filter((name) => where.promised.includes(name)),
        possible: RATE_HEADERS.filter((name) => where.possible.includes(name)),
      };
      expect([status, rateHeaders]).toEqual([status, expectedRateHeaders(status)]);
    }
  });

  test('A3, K4, K7, C5, S3: promises the other headers where they belong', () => {
    const cached = ['ETag', 'Age', 'Cache-Status'];
    for (const status of statuses) {
      const promised = headersOf(path, status, true);
      expect(promised).toEqual(expect.arrayContaining(['X-Request-Id', 'Vary', 'Cache-Control']));
      const isRead = scope !== null && (status === '200' || status === '304');
      expect(promised.filter((name) => cached.includes(name)).toSorted()).toEqual(isRead ? cached.toSorted() : []);
      expect(promised.includes('WWW-Authenticate')).toBe(status === '401');
      expect(promised.includes('Retry-After')).toBe(status === '429');
      expect(promised.includes('Allow')).toBe(status === '405');
    }
  });

  test('S3: its errors have the form of its surface', () => {
    for (const status of statuses.filter((candidate) => Number(candidate) >= 400)) {
      const { place } = schemas.at(['paths', path, 'get', 'responses', status]);
      const schema = memberOf(schemas.at([...place, 'content', 'application/json']).value, 'schema');
      const isListForm = operationId === 'listReports' && (status === '400' || status === '500');
      const expected = surface === 'v2' ? 'CallError' : isListForm ? 'ReportListError' : 'ReportError';
      expect(schema).toEqual({ $ref: `#/components/schemas/${expected}` });
    }
  });
});

describe('integer parameters have the bounds and defaults of their rules', () => {
  test.each([
    ['/v1/workspaces/{workspaceId}/reports', 'page', { type: 'integer', minimum: 1, default: 1 }],
    ['/v1/workspaces/{workspaceId}/reports', 'limit', { type: 'integer', minimum: 1, maximum: 50, default: 50 }],
    ['/v2/calls', 'page', { type: 'integer', minimum: 1, maximum: 999_999_999, default: 1 }],
    ['/v2/calls', 'pageSize', { type: 'integer', minimum: 1, maximum: 100, default: 50 }],
    ['/v2/calls/{callId}/transcript', 'pageSize', { type: 'integer', minimum: 1, maximum: 200, default: 100 }],
    ['/v2/calls/{callId}/transcript', 'maxChars', { type: 'integer', minimum: 1, maximum: 50_000, default: 50_000 }],
  ])('%s %s', (path, name, schema) => {
    const parameter = parametersOf(path, 'query').find((candidate) => memberOf(candidate, 'name') === name);
    expect(memberOf(parameter, 'schema')).toEqual(schema);
  });
});

describe('documentFor', () => {
  test.each([
    ['v1', '/v1/', ['Workspace reports (v1)'], 'Report', 'Call'],
    ['v2', '/v2/', ['Calls (v2)'], 'Call', 'Report'],
  ] as const)('%s: the paths of that surface with what they need and nothing of the other', (...row) => {
    const [surface, prefix, tags, own, foreign] = row;
    const part = documentFor(document, surface);
    const partSchemas = new DocumentSchemas(part);
    const paths = partSchemas.keysAt(['paths']);
    expect(paths).toHaveLength(6);
    expect(paths.every((path) => path.startsWith(prefix))).toBe(true);
    expect(part.tags?.map((tag) => tag.name)).toEqual(tags);
    expect(partSchemas.keysAt(['components', 'securitySchemes'])).toHaveLength(1);
    const names = partSchemas.keysAt(['components', 'schemas']);
    expect(names).toContain(own);
    expect(names).not.toContain(foreign);
    expect(referencesIn(part).filter((reference) => missing(partSchemas, reference))).toEqual([]);
    const named = partSchemas
      .keysAt(['components'])
      .flatMap((kind) =>
        kind === 'securitySchemes' ? [] : partSchemas.keysAt(['components', kind]).map((name) => `${kind}/${name}`),
      );
    const used = new Set(referencesIn(part).map((reference) => reference.replace('#/components/', '')));
    expect(named.filter((name) => !used.has(name))).toEqual([]);
  });

  test('the two parts together have every path and schema', () => {
    const parts = [documentFor(document, 'v1'), documentFor(document, 'v2')].map((part) => new DocumentSchemas(part));
    for (const place of [['paths'], ['components', 'schemas'], ['components', 'responses']]) {
      const together = new Set(parts.flatMap((part) => part.keysAt(place)));
      expect([...together].toSorted()).toEqual(schemas.keysAt(place).toSorted());
    }
  });
});

function referencesIn(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, value]: [string, unknown]) =>
    key === '$ref' && typeof value === 'string' ? [value] : referencesIn(value),
  );
}

function missing(within: DocumentSchemas, reference: string): boolean {
  return within.at(reference.replace('#/', '').split('/')).value === undefined;
}

/** A key is always recognised before most statuses, never before 401, and sometimes before the rest. */
function expectedRateHeaders(status: string): { promised: string[]; possible: string[] } {
  if (status === '401') return { promised: [], possible: [] };
  const isSometimes = ['403', '405', '500'].includes(status);
  return isSometimes ? { promised: [], possible: RATE_HEADERS } : { promised: RATE_HEADERS, possible: [] };
}
