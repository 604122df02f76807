import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildOpenApiDocument } from '../../src/http/openapi/document.ts';
import { EXAMPLE_EVALUATION_ID, EXAMPLE_SCORECARD_ID, EXAMPLE_WORKSPACE_ID } from '../../src/http/openapi/examples.ts';
import { listenOnLoopback, type RunningServer } from '../support/loopback.ts';
import { readWithTypedClient, type TypedClientOptions } from '../support/openapi-client.ts';
import { type DocumentedExchange, exampleExchanges } from '../support/openapi-examples.ts';

const document = buildOpenApiDocument({ limits: { perMinute: 120, perHour: 3000 } });
const examples = exampleExchanges(document);
const KEYS = { v1Key: 'key-of-v1', v2Key: 'key-of-v2' };

const requests: string[] = [];
let served = JSON.stringify(document);
let server: RunningServer;

/** A server that has nothing but the document and its examples. */
beforeAll(async () => {
  server = await listenOnLoopback(
    createServer((request, response) => {
      const [path = ''] = (request.url ?? '').split('?');
      if (path === '/openapi.json') {
        response.end(served);
        return;
      }
      requests.push(request.url ?? '');
      const isKnown = request.headers.authorization === `Bearer ${path.startsWith('/v1/') ? KEYS.v1Key : KEYS.v2Key}`;
      const found = examples.find((exchange) => exchange.path === path && exchange.status === (isKnown ? 200 : 401));
      send(found);

      function send(exchange: DocumentedExchange | undefined): void {
        response.writeHead(exchange?.status ?? 404, { 'Content-Type': 'application/json' });
        response.end(exchange?.body);
      }
    }),
  );
});

afterAll(async () => {
  await server.close();
});

function options(overrides: Partial<TypedClientOptions> = {}): TypedClientOptions {
  const ids = {
    workspaceId: EXAMPLE_WORKSPACE_ID,
    reportId: EXAMPLE_EVALUATION_ID,
    callId: EXAMPLE_EVALUATION_ID,
    scorecardId: EXAMPLE_SCORECARD_ID,
  };
  return { baseUrl: server.url, ...KEYS, ids, ...overrides };
}

test('a client generated from the document reads all ten endpoints', async () => {
  expect(await readWithTypedClient(options())).toEqual({
    listReports: { names: ['Discovery with Northwind Logistics'], page: 1, total: 1 },
    getReport: {
      email: 'dana.whitfield@example.com',
      deals: ['Northwind renewal'],
      sharedSince: null,
      minutes: 30.57,
    },
    getReportScorecard: { scores: ['4'], tryThis: 'Offer two dates before the last five minutes.' },
    getReportDealInsights: {
      evaluation: EXAMPLE_EVALUATION_ID,
      link: `https://coaching.example/evaluations/${EXAMPLE_EVALUATION_ID}`,
      topics: ['risk', 'blockers'],
    },
    getReportTranscript: { length: 92, isSupported: true },
    listCalls: { names: ['Discovery with Northwind Logistics'], pages: 1, total: 1 },
    getCall: {
      evaluatee: 'usr_dana',
      objects: ['deal Northwind renewal https://crm.example/deals/D-1042', 'account Northwind Logistics -'],
      best: 82,
    },
    getCallTranscript: { turns: [0, 1], hasMore: false, isTruncated: false },
    getCallScorecard: { sections: ['Opening'], strengths: ['Listening'] },
    getScorecardRubric: { name: 'Discovery call', keys: ['sections'] },
  });
  const workspace = `/v1/workspaces/${EXAMPLE_WORKSPACE_ID}/reports`;
  expect(requests).toEqual([
    `${workspace}?page=1&limit=5`,
    `${workspace}/${EXAMPLE_EVALUATION_ID}`,
    `${workspace}/${EXAMPLE_EVALUATION_ID}/scorecard`,
    `${workspace}/${EXAMPLE_EVALUATION_ID}/deal-insights`,
    `${workspace}/${EXAMPLE_EVALUATION_ID}/transcript`,
    `/v2/calls?workspaceId=${EXAMPLE_WORKSPACE_ID}&pageSize=5`,
    `/v2/calls/${EXAMPLE_EVALUATION_ID}`,
    `/v2/calls/${EXAMPLE_EVALUATION_ID}/transcript?pageSize=2&raw=false`,
    `/v2/calls/${EXAMPLE_EVALUATION_ID}/scorecard`,
    `/v2/scorecards/${EXAMPLE_SCORECARD_ID}/rubric`,
  ]);
});

test('the program fails where a key is refused, with the message of the error', async () => {
  await expect(readWithTypedClient(options({ v2Key: 'another' }))).rejects.toThrow(
    'listCalls: 401: The API key is not valid.',
  );
});

test('the program is refused by the compiler where the document promises less', async () => {
  served = JSON.stringify(document).replaceAll(',"crm_deals"]', ']');
  await expect(readWithTypedClient(options())).rejects.toThrow("TS18048: 'crm_deals' is possibly 'undefined'");
});

test('the program has no casts, no assertions and nothing untyped', async () => {
  const folder = new URL('client/', import.meta.url);
  for (const name of await readdir(folder)) {
    const code = (await readFile(new URL(name, folder), 'utf8')).replaceAll(/\/\*[\s\S]*?\*\//g, '');
    expect(code.match(/\bas (?!api\b)|\bany\b|@ts-|[\w)\]]!(?!=)|<\w+>\w/g)).toBeNull();
  }
});
