import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { GET_CALL, GET_REPORT, GET_REPORT_SCORECARD, LIST_CALLS, LIST_REPORTS } from './endpoints.ts';
import { pickHeaders } from './headers.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const SETTINGS = {
  upstream: { breakerPercent: null, retryPercent: 0 },
  api: {
    deprecations: [
      'v1 from 2027-01-01 until 2028-01-01 see https://docs.example/v1',
      'getReportScorecard from 2026-07-01T12:00:00Z',
      'listCalls from 2025-12-31 until 2026-12-31',
    ],
  },
};
const OF_V1 = {
  deprecation: '@1798761600',
  sunset: 'Sat, 01 Jan 2028 00:00:00 GMT',
  link: '<https://docs.example/v1>; rel="deprecation"',
};

const gateway = await forFile(startTestGateway({ config: JSON.stringify(SETTINGS) }));

function noticesOf(reply: Reply): Record<string, unknown> {
  const notices = pickHeaders(reply, ['deprecation', 'sunset']);
  // A list also links to its other pages.
  const links = (reply.headers['link'] ?? '').toString().split(', ');
  const read = links.filter((link) => link.endsWith('rel="deprecation"'));
  return read.length === 0 ? notices : { ...notices, link: read.join(', ') };
}

test('every answer of a deprecated surface says so, whatever its status', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  const limited = await keyFor(gateway, subject, { perMinute: 1 });
  const path = LIST_REPORTS.path(subject);
  const first = await gateway.get(path, { key: limited });
  const asked: readonly (readonly [number, Promise<Reply>])[] = [
    [200, gateway.get(path, { key })],
    [200, gateway.get(path, { key, method: 'HEAD' })],
    [200, gateway.get('/v1/key', { key })],
    [304, gateway.get(path, { key, headers: { 'if-none-match': '*' } })],
    [400, gateway.get(`${path}?scorecardId=x`, { key })],
    [401, gateway.get(path)],
    [403, gateway.get(LIST_REPORTS.path(newSubject()), { key })],
    [404, gateway.get(GET_REPORT.path({ ...subject, id: 'none' }), { key })],
    [405, gateway.get(path, { key, method: 'POST' })],
    [429, gateway.get(path, { key: limited })],
    // A POST has no route, and is limited all the same.
    [429, gateway.get(path, { key: limited, method: 'POST' })],
  ];
  expect(noticesOf(first)).toEqual(OF_V1);
  for (const [status, reply] of asked) {
    expect([(await reply).status, noticesOf(await reply)]).toEqual([status, OF_V1]);
  }
});

test('an operation’s own announcement takes the place of its surface’s', async () => {
  const subject = putSubject(gateway.store);
  const reply = await gateway.get(GET_REPORT_SCORECARD.path(subject), { key: await keyFor(gateway, subject) });
  expect(noticesOf(reply)).toEqual({ deprecation: '@1782907200' });
});

test('an operation can be announced alone; what is not deprecated says nothing', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  expect(noticesOf(await gateway.get(LIST_CALLS.path(subject), { key }))).toEqual({
    deprecation: '@1767139200',
    sunset: 'Thu, 31 Dec 2026 00:00:00 GMT',
  });
  for (const path of [GET_CALL.path(subject), '/v2/key', '/openapi.json', '/v1/nowhere', '/v2/nowhere']) {
    expect(noticesOf(await gateway.get(path, { key, isUndocumented: true }))).toEqual({});
  }
});

const operationSchema = z.object({
  operationId: z.string(),
  deprecated: z.boolean().optional(),
  description: z.string(),
});
const documentSchema = z.object({ paths: z.record(z.string(), z.object({ get: operationSchema })) });

test('the document marks what is deprecated, and says until when it is there', async () => {
  const { json } = await gateway.get('/openapi.json', { isUndocumented: true });
  const operations = Object.values(documentSchema.parse(json).paths).map(({ get }) => get);
  const deprecated = operations.filter((operation) => operation.deprecated === true);
  const firstLines = deprecated.map(({ operationId, description }) => [operationId, description.split('\n')[0]]);
  const ofV1 = 'Deprecated from 2027-01-01 on and may be gone from 2028-01-01 on. See <https://docs.example/v1>.';
  expect(Object.fromEntries(firstLines)).toEqual({
    listReports: ofV1,
    getReport: ofV1,
    getReportScorecard: 'Deprecated from 2026-07-01 on.',
    getReportDealInsights: ofV1,
    getReportTranscript: ofV1,
    getWorkspaceKey: ofV1,
    listCalls: 'Deprecated from 2025-12-31 on and may be gone from 2026-12-31 on.',
  });
  expect(operations).toHaveLength(12);
});
