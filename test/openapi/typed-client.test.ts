/** A client that a public generator makes from the document of a running gateway, and a program that uses it. */
import { readdir, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { readWithTypedClient } from '../support/openapi-client.ts';
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights, WORKSPACE_A } from '../support/records.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
  gateway.store.put({
    evaluations: [anEvaluation()],
    transcripts: [aTranscript()],
    scoredCards: [aScoredCard()],
    dealInsights: [dealInsights()],
    scorecards: [aScorecard()],
  });
});
afterAll(() => gateway.close());

test('reads all ten endpoints, typed without casts', async () => {
  const v1Key = await gateway.issueKey({ scopes: ['reports.read'] });
  const v2Key = await gateway.issueKey({ scopes: ['calls.read', 'coaching.read'] });
  const ids = { workspaceId: WORKSPACE_A, reportId: 'ev_1', callId: 'ev_1', scorecardId: 'sc_1' };
  expect(await readWithTypedClient({ baseUrl: gateway.publicUrl, v1Key, v2Key, ids })).toEqual({
    listReports: { names: ['Discovery call with Northwind'], page: 1, total: 1 },
    getReport: { email: 'riley.ortega@example.com', deals: ['Northwind renewal'], sharedSince: null, minutes: 30.57 },
    getReportScorecard: { scores: ['4', 'n/a'], tryThis: 'Ask what happens if nothing changes.' },
    getReportDealInsights: {
      evaluation: 'ev_1',
      link: 'https://app.example.com/evaluations/ev_1',
      topics: ['risk', 'blockers'],
    },
    getReportTranscript: { length: 78, isSupported: true },
    listCalls: { names: ['Discovery call with Northwind'], pages: 1, total: 1 },
    getCall: {
      evaluatee: 'user_rep',
      objects: ['deal Northwind renewal https://crm.example.com/deal_1', 'account Northwind -'],
      best: 80,
    },
    getCallTranscript: { turns: [0, 1], hasMore: false, isTruncated: false },
    getCallScorecard: { sections: ['Opening'], strengths: ['Rapport'] },
    getScorecardRubric: { name: 'Discovery scorecard', keys: ['sections'] },
  });
}, 60_000);

test('the program has no casts, no assertions and nothing untyped', async () => {
  const folder = new URL('client/', import.meta.url);
  for (const name of await readdir(folder)) {
    const code = (await readFile(new URL(name, folder), 'utf8')).replaceAll(/\/\*[\s\S]*?\*\//g, '');
    expect(code.match(/\bas (?!api\b)|\bany\b|@ts-|[\w)\]]!(?!=)|<\w+>\w/g)).toBeNull();
  }
});
